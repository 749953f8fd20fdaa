//! ClickHouse in this very process: the few functions of `libchdb.so` that start it and wait for its end.

#![allow(unsafe_code, reason = "the library has a C interface")]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::Path,
    ptr,
};

use anyhow::{Context, Result, bail};
use libloading::Library;

type SetSignalHandlersEnabled = unsafe extern "C" fn(c_int);
type QueryCmdline = unsafe extern "C" fn(c_int, *mut *mut c_char) -> *mut c_void;
type ResultError = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// The functions used of the library, which stays loaded for the rest of the process's life.
pub(super) struct Chdb {
    set_signal_handlers_enabled: SetSignalHandlersEnabled,
    query_cmdline: QueryCmdline,
    result_error: ResultError,
}

impl Chdb {
    /// Loads the library at `path`.
    pub(super) fn load(path: &Path) -> Result<Self> {
        // SAFETY: the library's initialisers are those of ClickHouse, made to be run inside other programs.
        let library = unsafe { Library::new(path) }.with_context(|| {
            format!(
                "cannot load {} as libchdb (LIBCHDB can name another file; one in the cache is fetched anew once it \
                 is deleted)",
                path.display()
            )
        })?;
        // Never unloaded: ClickHouse's threads may outlive every call into it.
        let library: &'static Library = Box::leak(Box::new(library));
        let functions = || {
            // SAFETY: the types are those in chdb.h of the pinned version.
            let chdb = unsafe {
                Self {
                    set_signal_handlers_enabled: *library.get(b"chdb_set_signal_handlers_enabled\0")?,
                    query_cmdline: *library.get(b"chdb_query_cmdline\0")?,
                    result_error: *library.get(b"chdb_result_error\0")?,
                }
            };
            Ok::<_, libloading::Error>(chdb)
        };
        functions().with_context(|| format!("{} is not the libchdb of chdb's Node.js package", path.display()))
    }

    /// Runs the program `clickhouse local` with `arguments` until it ends. Only one run a process succeeds.
    ///
    /// ClickHouse tells the reason of most failures on stderr alone, and then no error is returned.
    pub(super) fn run_local(&self, arguments: &[CString]) -> Result<()> {
        let count = c_int::try_from(arguments.len())?;
        let mut argv: Vec<*mut c_char> = arguments.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
        argv.push(ptr::null_mut());

        // SAFETY: takes a flag and touches nothing of ours.
        unsafe { (self.set_signal_handlers_enabled)(0) };
        // SAFETY: `argv` holds `count` strings that end in NUL, then a null pointer, and outlives the call;
        // ClickHouse reads the strings and does not write to them.
        let result = unsafe { (self.query_cmdline)(count, argv.as_mut_ptr()) };
        if result.is_null() {
            bail!("no result");
        }
        // SAFETY: `result` is the non-null result of the call above and is not freed.
        let error = unsafe { (self.result_error)(result) };
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: a non-null error is a string that ends in NUL and lives as long as its result.
        let error = unsafe { CStr::from_ptr(error) }.to_string_lossy();
        let (reason, _) = error.split_once(", Stack trace").unwrap_or((&error, ""));
        bail!("{reason}");
    }
}

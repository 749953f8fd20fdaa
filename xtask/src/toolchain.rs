//! The compilation target of the component.

use std::{
    io::ErrorKind,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// The target that the component's core module is compiled for.
const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// Makes sure that the active toolchain can compile for [`WASM_TARGET`]; asks rustup to add it where it is missing.
pub(crate) fn ensure_wasm_target() -> Result<()> {
    if has_target(WASM_TARGET)? {
        return Ok(());
    }
    eprintln!("the target {WASM_TARGET} is not installed: rustup target add {WASM_TARGET}");
    let added = Command::new("rustup")
        .args(["target", "add", WASM_TARGET])
        .current_dir(workspace::root())
        .stdout(Stdio::null())
        .status();
    match added {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("rustup target add {WASM_TARGET} failed ({status})"),
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "the Rust target {WASM_TARGET} is missing and there is no rustup to add it: \
             install rustup, or the package of your distribution that holds this target's standard library"
        ),
        Err(error) => Err(error).context("cannot run rustup"),
    }
}

/// Asks rustc and not rustup, so that a toolchain that does not come from rustup will do.
fn has_target(target: &str) -> Result<bool> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(workspace::root())
        .output()
        .context("cannot run rustc")?;
    let libdir = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && Path::new(libdir.trim()).is_dir())
}

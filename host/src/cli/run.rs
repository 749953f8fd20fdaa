//! From the command line to the exit code.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use meltano_state_host::settings::Sources;
use meltano_state_host::{Cache, Limits, Plugin, PooledClient, Settings, Tls};

use super::arguments::{Arguments, Format, Global, Verb};
use super::failure::Failure;
use super::{commands, ending, logging, verbs};

const URI: &str = "state_backend.uri";

pub(crate) fn run() -> ExitCode {
    let Arguments { global, verb } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return not_parsed(&without_secrets(error)),
    };
    logging::start(global.verbose);
    let format = global.format;
    let result = ending::listen(format)
        .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build())
        .map_err(|error| Failure::io(format!("the command does not start: {error}")))
        .and_then(|runtime| {
            let result = runtime.block_on(carry_out(global, verb));
            // Not after a name that is still being looked up.
            runtime.shutdown_background();
            result
        });
    let (code, died_of) = match result {
        Ok(None) => (0, ending::told()),
        Ok(Some(status)) => (exit_code(status), ending::told().filter(|signal| status.signal() == Some(*signal))),
        Err(failure) => {
            if !failure.is_shown() {
                failure.report(format);
            }
            (failure.exit_code, ending::told())
        }
    };
    if let Some(signal) = died_of {
        ending::die_of(signal);
    }
    ExitCode::from(code)
}

async fn carry_out(global: Global, verb: Verb) -> Result<Option<ExitStatus>, Failure> {
    let settings = settings(&global)?;
    if matches!(verb, Verb::Config) {
        return verbs::config(&settings, global.format).map(|()| None);
    }
    let plugin = plugin(settings, &global)?;
    commands::execute(&plugin, verb, global.format).await
}

/// As a shell has it: of a command that a signal ended 128 and the signal.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Without the arguments that it quotes, where they may hold a password: a URI or a setting, or what a blank cut off them.
fn without_secrets(mut error: clap::Error) -> clap::Error {
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand] {
        let Some(ContextValue::String(text)) = error.get(kind) else { continue };
        let is_setting = kind == ContextKind::InvalidValue
            && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(flag)) if flag.starts_with("--set"));
        if is_setting || text.contains("://") || text.contains(['@', '=', '#']) && !text.starts_with('-') {
            error.insert(kind, ContextValue::String("***".to_owned()));
        }
    }
    error
}

/// Help and version are no failures. Otherwise the format was not parsed either, so it is looked for.
fn not_parsed(error: &clap::Error) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let asked = arguments.iter().any(|argument| argument == "--format=json")
        || arguments.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    if error.kind() == ErrorKind::InvalidUtf8 {
        let failure = Failure::no_text();
        failure.report(if asked { Format::Json } else { Format::Text });
        return ExitCode::from(failure.exit_code);
    }
    if !error.use_stderr() || !asked {
        // There is no other place to complain.
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
    }
    let failure = Failure::command_line(error);
    failure.report(Format::Json);
    ExitCode::from(failure.exit_code)
}

fn settings(global: &Global) -> Result<Settings, Failure> {
    let mut sources = Sources::of_process();
    for (name, value) in &global.settings {
        sources = sources.with_flag(name, value);
    }
    if let Some(uri) = &global.uri {
        sources = sources.with_flag(URI, uri);
    }
    if let Some(directory) = &global.project {
        sources = sources.with_project(directory);
    }
    let settings = sources.gather()?;
    tracing::debug!("settings: {settings:?}");
    Ok(settings)
}

fn plugin(settings: Settings, global: &Global) -> Result<Plugin, Failure> {
    let mut limits = Limits::default();
    limits.response = global.max_response_mib << 20;
    limits.memory = global.max_memory_mib << 20;
    let transport = PooledClient::new(tls(global)?);
    let mut builder = Plugin::builder().settings(settings).limits(limits).transport(transport);
    if let Some(cache) = Cache::of_user() {
        builder = builder.cache(cache);
    }
    Ok(builder.build()?)
}

fn tls(global: &Global) -> Result<Tls, Failure> {
    let mut tls = Tls::default();
    fn given(file: Option<&PathBuf>) -> Option<&PathBuf> {
        file.filter(|file| !file.as_os_str().is_empty())
    }
    if let Some(file) = given(global.ca_file.as_ref()) {
        tls = tls.with_authorities(file)?;
    }
    match (given(global.client_cert.as_ref()), given(global.client_key.as_ref())) {
        (Some(certificate), Some(key)) => tls = tls.with_identity(certificate, key)?,
        (None, None) => {}
        _ => {
            let message = "a client certificate and its private key are needed together";
            return Err(Failure::unusable(message, "give both --client-cert and --client-key"));
        }
    }
    if global.insecure {
        // Also where nobody reads along: it has to stand in the log.
        let warning = "warning: --insecure: the server's certificate is not checked; whoever stands between can read \
                       and change everything, the password too";
        let _ = writeln!(io::stderr(), "{warning}");
        tls = tls.without_verification();
    }
    Ok(tls)
}

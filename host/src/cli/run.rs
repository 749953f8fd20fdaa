//! From the command line to the exit code.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use meltano_state_host::settings::Sources;
use meltano_state_host::{Cache, Plugin, PooledClient, Settings, Tls};

use super::arguments::{Arguments, Format, Global, Verb};
use super::failure::Failure;
use super::{commands, config, logging};

const URI: &str = "state_backend.uri";

pub(crate) fn run() -> ExitCode {
    let Arguments { global, verb } = Arguments::parse();
    logging::start(global.verbose);
    let format = global.format;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(async {
            let settings = settings(&global)?;
            if matches!(verb, Verb::Config) {
                return config::show(&settings, format).map(|()| 0);
            }
            let plugin = plugin(settings, &global)?;
            commands::execute(&plugin, verb, format).await
        }),
        Err(error) => Err(Failure::io(format!("the asynchronous runtime does not start: {error}"))),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if !failure.is_shown() {
                report(&failure, format);
            }
            ExitCode::from(failure.exit_code)
        }
    }
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
    let mut builder = Plugin::builder().settings(settings).transport(PooledClient::new(tls(global)?));
    if let Some(cache) = Cache::of_user() {
        builder = builder.cache(cache);
    }
    Ok(builder.build()?)
}

fn tls(global: &Global) -> Result<Tls, Failure> {
    let mut tls = Tls::default();
    if let Some(file) = &global.ca_file {
        tls = tls.with_authorities(file)?;
    }
    if let (Some(certificate), Some(key)) = (&global.client_cert, &global.client_key) {
        tls = tls.with_identity(certificate, key)?;
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

fn report(failure: &Failure, format: Format) {
    let text = match format {
        Format::Text => failure.to_string(),
        Format::Json => failure.json().to_string(),
    };
    // There is no other place to complain.
    let _ = writeln!(io::stderr(), "{text}");
}

//! `export`.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use meltano_state_host::CallError;
use tempfile::NamedTempFile;

use super::list::Pages;
use crate::cli::arguments::Export;
use crate::cli::call::Call;
use crate::cli::exchange;
use crate::cli::failure::Failure;
use crate::cli::{output, progress};

pub(in crate::cli) async fn export(call: &mut Call, export: Export) -> Result<(), Failure> {
    let Export { pattern, output } = export;
    let pages = Pages::of(pattern.as_deref());
    let unreadable = match &output {
        None => write(call, pages, &mut io::stdout().lock()).await?,
        Some(path) => {
            let file = beside(path)?;
            let unreadable = write(call, pages, file.as_file()).await?;
            finish(file, path)?;
            unreadable
        }
    };
    match unreadable {
        0 => Ok(()),
        count => Err(Failure::refused(
            format!("{count} states cannot be read and were left out"),
            "meltano-state get --raw shows what is stored of them",
        )),
    }
}

/// A file that takes the place of the named one when it is complete.
fn beside(path: &Path) -> Result<NamedTempFile, Failure> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    NamedTempFile::new_in(directory).map_err(|error| unwritable(path, &error))
}

fn finish(file: NamedTempFile, path: &Path) -> Result<(), Failure> {
    file.as_file().sync_all().map_err(|error| unwritable(path, &error))?;
    file.persist(path).map_err(|error| unwritable(path, &error.error))?;
    Ok(())
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("{} cannot be written: {error}", path.display()))
}

/// An entry a line. How many states could not be read; each is named.
async fn write(call: &mut Call, mut pages: Pages<'_>, out: impl Write) -> Result<u64, Failure> {
    let mut out = BufWriter::new(out);
    let bar = progress::counter("states exported");
    let (mut count, mut unreadable) = (0_u64, 0);
    out.write_all(b"{").map_err(output::unwritten)?;
    while let Some(page) = pages.next(call).await? {
        for entry in page {
            match entry.content {
                Ok(state) => {
                    let before = if count == 0 { "\n" } else { ",\n" };
                    write!(out, "{before}{}", exchange::entry(&state)).map_err(output::unwritten)?;
                    count += 1;
                }
                Err(error) => {
                    unreadable += 1;
                    bar.suspend(|| Failure::from(CallError::Error(error)).report(call.format));
                }
            }
        }
        bar.set_position(count);
    }
    bar.finish_and_clear();
    let end = if count == 0 { "}\n" } else { "\n}\n" };
    out.write_all(end.as_bytes()).and_then(|()| out.flush()).map_err(output::unwritten)?;
    Ok(unreadable)
}

//! `export`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use indicatif::ProgressBar;
use meltano_state_host::CallError;
use tempfile::NamedTempFile;

use super::list::Pages;
use crate::cli::arguments::Export;
use crate::cli::call::Call;
use crate::cli::ending::Leftover;
use crate::cli::exchange;
use crate::cli::failure::Failure;
use crate::cli::{output, progress};

pub(in crate::cli) async fn export(call: &mut Call, export: Export) -> Result<(), Failure> {
    let Export { pattern, output } = export;
    let pages = Pages::of(pattern.as_deref());
    let unreadable = match &output {
        None => {
            // Not into the result on the same terminal.
            let bar = if output::on_terminal() { ProgressBar::hidden() } else { counter() };
            write(call, pages, io::stdout().lock(), &bar).await?
        }
        // Such as a pipe, which no file can take the place of.
        Some(path) if fs::metadata(path).is_ok_and(|there| !there.is_file()) => {
            let file = File::options().write(true).open(path).map_err(|error| unwritable(path, &error))?;
            write(call, pages, file, &counter()).await?
        }
        Some(path) => {
            // Where it is a link, the file that it leads to is replaced.
            let path = &fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            let file = beside(path)?;
            let half = file.path().to_owned();
            let _leftover = Leftover::new(move || drop(fs::remove_file(&half)));
            let unreadable = write(call, pages, file.as_file(), &counter()).await?;
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

fn counter() -> ProgressBar {
    progress::counter("states exported")
}

/// A file that takes the place of the named one when it is complete.
fn beside(path: &Path) -> Result<NamedTempFile, Failure> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // States are nobody else's business, so a new file is for the user alone, as temporary ones are.
    NamedTempFile::new_in(directory).map_err(|error| unwritable(path, &error))
}

fn finish(file: NamedTempFile, path: &Path) -> Result<(), Failure> {
    // Whoever could read the file that is replaced, and nobody else, can read this one.
    if let Ok(replaced) = fs::metadata(path) {
        file.as_file().set_permissions(replaced.permissions()).map_err(|error| unwritable(path, &error))?;
    }
    file.as_file().sync_all().map_err(|error| unwritable(path, &error))?;
    file.persist(path).map_err(|error| unwritable(path, &error.error))?;
    Ok(())
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("{} cannot be written: {error}", path.display()))
}

/// An entry a line. How many states could not be read; each is named.
async fn write(call: &mut Call, mut pages: Pages<'_>, out: impl Write, bar: &ProgressBar) -> Result<u64, Failure> {
    let mut out = BufWriter::new(out);
    let (mut count, mut unreadable) = (0_u64, 0);
    // Nothing before the first answer: without one there is no result.
    let mut page = pages.next(call).await?;
    out.write_all(b"{").map_err(output::unwritten)?;
    while let Some(entries) = page {
        for entry in entries {
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
        page = pages.next(call).await?;
    }
    bar.finish_and_clear();
    let end = if count == 0 { "}\n" } else { "\n}\n" };
    out.write_all(end.as_bytes()).and_then(|()| out.flush()).map_err(output::unwritten)?;
    Ok(unreadable)
}

//! Standard output.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use super::failure::Failure;

/// Writes a line. The reader of a pipe may have gone: that is [`io::ErrorKind::BrokenPipe`].
pub(super) fn line(text: &str) -> io::Result<()> {
    lines(std::iter::once(text))
}

/// Writes lines, byte for byte into a pipe or a file; on a terminal, control characters are made visible.
pub(super) fn lines<'a>(lines: impl Iterator<Item = &'a str>) -> io::Result<()> {
    let stdout = io::stdout();
    let on_terminal = on_terminal();
    let mut out = io::BufWriter::new(stdout.lock());
    for line in lines {
        let line = if on_terminal { visible(line) } else { line.into() };
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// Whether a person reads standard output.
pub(super) fn on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// A reader that has gone, such as `head`, is no failure: it has what it wanted.
pub(super) fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::io(format!("the result cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// The text with control characters escaped, but for the end of a line and tabs.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_hidden) {
        return text.into();
    }
    let escaped = text.chars().flat_map(|c| {
        let (hidden, shown) = if is_hidden(c) { (Some(c.escape_default()), None) } else { (None, Some(c)) };
        hidden.into_iter().flatten().chain(shown)
    });
    escaped.collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(visible("dev:tap-ä"), "dev:tap-ä");
        assert_eq!(visible("a\u{1b}[31mb\rc\u{9b}"), "a\\u{1b}[31mb\\rc\\u{9b}");
    }
}

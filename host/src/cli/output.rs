//! Standard output.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use super::arguments::Format;
use super::failure::Failure;

/// Writes a line. The reader of a pipe may have gone: that is [`io::ErrorKind::BrokenPipe`].
pub(super) fn line(text: &str) -> io::Result<()> {
    lines(std::iter::once(text))
}

/// Writes lines, byte for byte into a pipe or a file; on a terminal, control characters are made visible.
pub(super) fn lines(lines: impl Iterator<Item = impl AsRef<str>>) -> io::Result<()> {
    let stdout = io::stdout();
    let on_terminal = on_terminal();
    let mut out = io::BufWriter::new(stdout.lock());
    for line in lines {
        let line = line.as_ref();
        let line = if on_terminal { visible(line) } else { line.into() };
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// A result of many items: lines in text, one array in JSON. Each is written as it comes.
pub(super) struct Items {
    format: Format,
    out: io::BufWriter<io::StdoutLock<'static>>,
    /// What stands above the lines, until the first is written: not before there is a result.
    heading: Option<String>,
    any: bool,
}

impl Items {
    pub(super) fn new(format: Format) -> Self {
        Self { format, out: io::BufWriter::new(io::stdout().lock()), heading: None, any: false }
    }

    /// What stands above the lines.
    pub(super) fn heading(&mut self, text: String) {
        self.heading = Some(text).filter(|_| self.format == Format::Text);
    }

    fn write_heading(&mut self) -> Result<(), Failure> {
        self.heading.take().map_or(Ok(()), |text| writeln!(self.out, "{text}").map_err(unwritten))
    }

    pub(super) fn add(&mut self, text: impl FnOnce() -> String, json: &impl Serialize) -> Result<(), Failure> {
        self.write_heading()?;
        let written = match self.format {
            Format::Text if on_terminal() => writeln!(self.out, "{}", visible(&text())),
            Format::Text => writeln!(self.out, "{}", text()),
            Format::Json => {
                let before = if self.any { ",\n" } else { "[\n" };
                self.any = true;
                let json = serde_json::to_string(json).map_err(io::Error::from);
                json.and_then(|json| write!(self.out, "{before}{json}"))
            }
        };
        written.map_err(unwritten)
    }

    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.write_heading()?;
        let last = match (self.format, self.any) {
            (Format::Text, _) => "",
            (Format::Json, true) => "\n]\n",
            (Format::Json, false) => "[]\n",
        };
        self.out.write_all(last.as_bytes()).and_then(|()| self.out.flush()).map_err(unwritten)
    }
}

/// Whether a person reads standard output.
pub(super) fn on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether what was written last ends the command.
pub(super) fn written(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(unwritten)
}

/// A reader that has gone, such as `head`, is no failure: it has what it wanted.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn unwritten(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::unheard()
    } else {
        Failure::io(format!("the result cannot be written: {error}"))
    }
}

/// The text with control characters escaped, but for the end of a line and tabs.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_control() && c != '\n' && c != '\t')
}

/// A name as a part of a line: with every control character escaped.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    escaped(text, char::is_control)
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
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
        assert_eq!(visible("a\u{1b}[31mb\rc\u{9b}\n"), "a\\u{1b}[31mb\\rc\\u{9b}\n");
        assert_eq!(name("a\tb\n\u{1b}ä"), "a\\tb\\n\\u{1b}ä");
    }
}

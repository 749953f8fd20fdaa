//! Tables for people.

use std::{fmt, io};

use comfy_table::{ContentArrangement, presets};
use terminal_size::{Width, terminal_size_of};

use super::output;

/// A table without lines, which fits the terminal and wraps nowhere else.
pub(super) struct Table(comfy_table::Table);

impl Table {
    pub(super) fn new<const N: usize>(header: [&str; N]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING).set_header(header);
        // Of standard output; a pipe or a file has no width.
        if let Some((Width(width), _)) = terminal_size_of(io::stdout()) {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        Self(table)
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        // What comes from a server or a file must not control the terminal.
        self.0.add_row(cells.map(|cell| output::visible(cell).into_owned()));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.trim_fmt())
    }
}

//! A table: aligned for people, a line with fields for each row for collectors.

use comfy_table::{CellAlignment, Table as Drawn, presets};
use serde_json::Value;

use super::line::{Line, Severity};

/// A table for the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What it is about, in a sentence for people.
    pub title: String,
    /// The columns' names; with `_` for blanks, those of fields too.
    pub columns: Vec<&'static str>,
    /// Its rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What people read.
    pub shown: String,
    /// The same for machines; of a number, the number.
    pub value: Value,
}

impl Cell {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let shown = text.into();
        Self { value: Value::from(shown.clone()), shown }
    }

    /// A number, as people read it.
    #[must_use]
    pub fn number(value: impl Into<Value>, shown: impl Into<String>) -> Self {
        Self { shown: shown.into(), value: value.into() }
    }
}

impl Table {
    /// The table for people; numbers stand below each other at their ends.
    pub(super) fn for_people(&self) -> String {
        let mut drawn = Drawn::new();
        drawn.load_style(presets::NOTHING).set_header(&self.columns);
        for row in &self.rows {
            drawn.add_row(row.iter().map(|cell| &cell.shown));
        }
        for (index, column) in drawn.column_iter_mut().enumerate() {
            let is_number = |row: &Vec<Cell>| row.get(index).is_none_or(|cell| !cell.value.is_string());
            if self.rows.iter().all(is_number) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines = drawn.lines().map(|line| format!("  {}\n", line.trim_end())).collect::<String>();
        format!("{}\n{lines}", self.title)
    }

    /// A line for the title, and one for each row.
    pub(super) fn for_collectors(&self) -> Vec<Line> {
        let row = |row: &Vec<Cell>| {
            let cells = || self.columns.iter().zip(row);
            let filled = cells().filter(|(_, cell)| !cell.shown.is_empty());
            let shown: Vec<_> = filled.map(|(column, cell)| format!("{column} {}", cell.shown)).collect();
            let line = Line::new(Severity::Info, shown.join(" · "));
            cells().fold(line, |line, (column, cell)| line.with(&column.replace(' ', "_"), cell.value.clone()))
        };
        let title = Line::new(Severity::Info, self.title.clone());
        std::iter::once(title).chain(self.rows.iter().map(row)).collect()
    }
}

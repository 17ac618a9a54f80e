//! What was decided about how files are read, for people and programs to see and to correct.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

/// The columns that a text names; there may be thousands.
const SHOWN_COLUMNS: usize = 20;

/// What was decided about how text files are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReading {
    /// The format: `csv` or `json`.
    pub format: String,
    /// The sheet of a workbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sheet: Option<String>,
    /// The sheets beside it, where none was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_sheets: Vec<String>,
    /// The cells that hold an error, which are null.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error_cells: u64,
    /// The cells that hold a formula without its value, which are null.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncalculated_cells: u64,
    /// Whether the first record names the columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// The header's line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_line: Option<u64>,
    /// What separates columns, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// What quotes a field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// What stands before a quote in a quoted field, if it is not doubled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escape: Option<String>,
    /// What comments begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Lines that were skipped before the first record.
    #[serde(default)]
    pub skip: u64,
    /// The encoding, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// What stands before the fractions of numbers, where it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal_separator: Option<String>,
    /// What stands between thousands, where it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thousands: Option<String>,
    /// What means null, besides nothing.
    #[serde(default)]
    pub null: Vec<String>,
    /// The columns.
    pub columns: Vec<ReadColumn>,
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A column of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadColumn {
    /// Its name.
    pub name: String,
    /// Its type, as SQL names it.
    #[serde(rename = "type")]
    pub sql_type: String,
    /// The format of its dates, where it is not that of SQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Why it is text, where one might expect another type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Display for SourceReading {
    /// Writes one line, and one more for each column with a note.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.sheet.as_deref().map(|sheet| format!("sheet `{sheet}`")));
        match (self.header, self.header_line) {
            (Some(true), None) => parts.push("header".to_owned()),
            (Some(true), Some(line)) => parts.push(format!("header in line {line}")),
            (Some(false), _) => parts.push("no header".to_owned()),
            _ => {}
        }
        let shown = |text: &str| if text == "\t" { "tab".to_owned() } else { format!("`{text}`") };
        parts.extend(self.delimiter.as_deref().map(|delimiter| format!("delimiter {}", shown(delimiter))));
        parts.extend(
            self.quote.as_deref().filter(|quote| *quote != "\"").map(|quote| format!("quote {}", shown(quote))),
        );
        parts.extend(self.escape.as_deref().map(|escape| format!("escape {}", shown(escape))));
        parts.extend(self.comment.as_deref().map(|comment| format!("comments after {}", shown(comment))));
        parts.extend((self.skip > 0).then(|| counted(self.skip, "line skipped", "lines skipped")));
        parts.extend(self.encoding.as_deref().map(|encoding| format!("encoding {encoding}")));
        parts.extend(self.decimal_separator.as_deref().map(|point| format!("decimal separator {}", shown(point))));
        parts.extend(self.thousands.as_deref().map(|thousands| format!("{} between thousands", shown(thousands))));
        parts.extend((!self.null.is_empty()).then(|| format!("null is {}", self.null.join(", "))));
        parts.extend(
            (self.error_cells > 0)
                .then(|| counted(self.error_cells, "cell is an error and null", "cells are errors and null")),
        );
        parts.extend((self.uncalculated_cells > 0).then(|| {
            let formulas = counted(self.uncalculated_cells, "formula has no value", "formulas have no value");
            format!("{formulas} in the file and null (save it in Excel or LibreOffice, which calculate)")
        }));
        if !self.other_sheets.is_empty() {
            let others = self.other_sheets.iter().take(SHOWN_COLUMNS).map(|sheet| format!("`{sheet}`"));
            parts.push(format!("not read: sheets {}", others.collect::<Vec<_>>().join(", ")));
        }
        let mut columns: Vec<String> = self
            .columns
            .iter()
            .take(SHOWN_COLUMNS)
            .map(|column| match &column.format {
                Some(format) => format!("{} {} ({format})", column.name, column.sql_type),
                None => format!("{} {}", column.name, column.sql_type),
            })
            .collect();
        if self.columns.len() > SHOWN_COLUMNS {
            columns.push(format!("and {} more", self.columns.len() - SHOWN_COLUMNS));
        }
        parts.push(format!("columns {}", columns.join(", ")));
        write!(formatter, "{}: {}", self.format, parts.join("; "))?;
        for column in self.columns.iter().filter(|column| column.note.is_some()).take(SHOWN_COLUMNS) {
            write!(formatter, "\n{}: text, for it holds {}", column.name, column.note.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }
}

//! The part of a sheet that is read: `A1:F10`, and open ends such as `B3:`, `B:F` and `B3:F`.

use crate::error::Result;
use crate::tables::external::reader_options::bad_option;

/// Rows and columns of a sheet, counted from 0; without an end they go as far as there are cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SheetArea {
    pub first_row: u32,
    pub last_row: Option<u32>,
    pub first_column: u32,
    pub last_column: Option<u32>,
}

impl SheetArea {
    /// Reads what the option `range` holds.
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        let bad = || bad_option("range", text, "cells of a sheet: A1:F10, B3: or B:F");
        let (from, to) = text.split_once(':').ok_or_else(bad)?;
        let (first_column, first_row) = corner(from).ok_or_else(bad)?;
        let (last_column, last_row) = corner(to).ok_or_else(bad)?;
        let is_backwards = last_row.is_some_and(|last| last < first_row.unwrap_or(0))
            || last_column.is_some_and(|last| last < first_column.unwrap_or(0));
        if is_backwards {
            return Err(bad());
        }
        Ok(Self { first_row: first_row.unwrap_or(0), last_row, first_column: first_column.unwrap_or(0), last_column })
    }

    /// Returns the text that [`Self::from_text`] reads.
    pub(crate) fn text(&self) -> String {
        let from = cell_name(self.first_row, self.first_column);
        let last_column = self.last_column.map(column_letters).unwrap_or_default();
        let last_row = self.last_row.map(|row| (row + 1).to_string()).unwrap_or_default();
        format!("{from}:{last_column}{last_row}")
    }

    /// Returns whether a row is in the area.
    pub(crate) fn has_row(&self, row: u32) -> bool {
        row >= self.first_row && self.last_row.is_none_or(|last| row <= last)
    }

    /// Returns whether a column is in the area.
    pub(crate) fn has_column(&self, column: u32) -> bool {
        column >= self.first_column && self.last_column.is_none_or(|last| column <= last)
    }
}

/// Returns a cell's name, such as `C5`.
pub(crate) fn cell_name(row: u32, column: u32) -> String {
    format!("{}{}", column_letters(column), row.saturating_add(1))
}

fn column_letters(column: u32) -> String {
    let mut letters = Vec::new();
    let mut left = column + 1;
    while left > 0 {
        left -= 1;
        letters.push(char::from(b'A' + u8::try_from(left % 26).unwrap_or_default()));
        left /= 26;
    }
    letters.iter().rev().collect()
}

/// Reads `B3`, `B`, `3` or nothing as a column and a row from 0.
fn corner(text: &str) -> Option<(Option<u32>, Option<u32>)> {
    let text: String = text.trim().chars().filter(|char| *char != '$').collect();
    let digits = text.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(text.len());
    let (letters, row) = text.split_at(digits);
    let column = match letters.len() {
        0 => None,
        1..=3 => {
            let number =
                letters.bytes().fold(0_u32, |sum, letter| sum * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1);
            Some(number - 1)
        }
        _ => return None,
    };
    let row = match row {
        "" => None,
        digits => Some(digits.parse::<u32>().ok()?.checked_sub(1)?),
    };
    Some((column, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_written_as_in_spreadsheets() {
        let area = SheetArea::from_text("B3:AA10").unwrap();
        assert_eq!((area.first_row, area.last_row, area.first_column, area.last_column), (2, Some(9), 1, Some(26)));
        for text in ["B3:AA10", "A1:", "C5:F"] {
            assert_eq!(SheetArea::from_text(text).unwrap().text(), text);
        }
        assert_eq!(SheetArea::from_text("$b:$f").unwrap().text(), "B1:F");
        for wrong in ["", "A1", "B3:A1", "1A:2", "A0:B2", "ABCD1:", "A5:B2"] {
            assert!(SheetArea::from_text(wrong).is_err(), "{wrong}");
        }
        assert_eq!(cell_name(4, 702), "AAA5");
    }
}

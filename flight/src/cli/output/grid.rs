//! Rows as a box of columns, for people. What does not fit the terminal is hidden in the middle, as DuckDB's box has it,
//! and counted: columns, rows, and the ends of long values.
//!
//! Widths are those of the terminal's cells, so that wide and combined characters keep the lines straight. Control
//! characters of values are shown, never sent.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::terminal::{Terminal, TextTone};

/// Columns are not made narrower than this; rather some are hidden.
const LEAST_WIDTH: usize = 12;
/// The most cells of a value where there is no terminal to fit.
const MOST_WIDTH: usize = 120;
/// Lines that stand for hidden rows.
const GAP_LINES: usize = 3;

/// A box of rows.
pub(crate) struct Grid {
    columns: Vec<GridColumn>,
    rows: Vec<Vec<GridCell>>,
    /// The row before which rows are hidden.
    gap: Option<usize>,
}

/// A column's heading.
pub(crate) struct GridColumn {
    pub(crate) name: String,
    /// Shown under the name.
    pub(crate) type_name: Option<String>,
    /// Whether values are aligned to the right.
    pub(crate) is_number: bool,
}

/// A value.
pub(crate) enum GridCell {
    Null,
    Text(String),
}

/// A box as text, and how much of it is shown.
pub(crate) struct RenderedGrid {
    /// Lines, each with its line end.
    pub(crate) text: String,
    /// Columns that are shown.
    pub(crate) columns: usize,
}

/// What a box may cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GridFit {
    /// Nothing: every column and value is whole.
    Whole,
    /// What does not fit the terminal; without one long values only.
    Terminal,
}

/// Which columns are shown, and how wide.
struct Layout {
    /// The index and the width of each column that is shown.
    shown: Vec<(usize, usize)>,
    /// How many of them stand before those that are hidden.
    before_gap: Option<usize>,
}

impl Grid {
    pub(crate) fn new(columns: Vec<GridColumn>) -> Self {
        Self { columns, rows: Vec::new(), gap: None }
    }

    /// A box of texts without types.
    pub(crate) fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let column = |name: &str| GridColumn { name: name.to_owned(), type_name: None, is_number: false };
        Self::new(names.into_iter().map(column).collect())
    }

    /// Aligns the values of a column to the right.
    pub(crate) fn align_right(mut self, column: usize) -> Self {
        if let Some(column) = self.columns.get_mut(column) {
            column.is_number = true;
        }
        self
    }

    /// Adds a row of as many cells as there are columns.
    pub(crate) fn push(&mut self, row: Vec<GridCell>) {
        self.rows.push(row);
    }

    /// Adds a row of texts.
    pub(crate) fn push_texts(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().map(GridCell::Text).collect());
    }

    /// Marks that rows are hidden between those before and those after.
    pub(crate) fn push_gap(&mut self) {
        self.gap = Some(self.rows.len());
    }

    /// Returns the box as text.
    pub(crate) fn render(&self, terminal: &Terminal, fit: GridFit) -> RenderedGrid {
        let texts: Vec<Vec<Cow<'_, str>>> =
            self.rows.iter().map(|row| row.iter().map(GridCell::shown).collect()).collect();
        let names: Vec<Cow<'_, str>> = self.columns.iter().map(|column| visible(&column.name)).collect();
        let widths = (0..self.columns.len()).map(|column| {
            let cells = texts.iter().filter_map(|row| row.get(column)).map(|text| text.width()).max();
            let type_name = self.columns.get(column).and_then(|column| column.type_name.as_deref());
            [cells, type_name.map(UnicodeWidthStr::width), names.get(column).map(|name| name.width())]
                .into_iter()
                .flatten()
                .max()
                .unwrap_or(0)
                .max(1)
        });
        let layout = match (fit, terminal.width) {
            (GridFit::Whole, _) => Layout::whole(widths),
            (GridFit::Terminal, None) => Layout::whole(widths.map(|width| width.min(MOST_WIDTH))),
            (GridFit::Terminal, Some(width)) => Layout::fitting(&widths.collect::<Vec<_>>(), width),
        };
        let mut lines = Lines { out: String::new(), layout: &layout, terminal };
        lines.rule('┌', '┬', '┐');
        lines.row(|column| (names.get(column).map_or("", |name| name), Align::Middle, TextTone::Bold));
        if self.columns.iter().any(|column| column.type_name.is_some()) {
            let type_of = |column: usize| self.columns.get(column).and_then(|column| column.type_name.as_deref());
            lines.row(|column| (type_of(column).unwrap_or_default(), Align::Middle, TextTone::Dim));
        }
        lines.rule('├', '┼', '┤');
        for (index, (row, texts)) in self.rows.iter().zip(&texts).enumerate() {
            if self.gap == Some(index) {
                for _ in 0..GAP_LINES {
                    lines.row(|_| ("·", Align::Middle, TextTone::Dim));
                }
            }
            lines.row(|column| {
                let is_number = self.columns.get(column).is_some_and(|column| column.is_number);
                let align = if is_number { Align::Right } else { Align::Left };
                let tone =
                    if matches!(row.get(column), Some(GridCell::Null)) { TextTone::Dim } else { TextTone::Plain };
                (texts.get(column).map_or("", |text| text), align, tone)
            });
        }
        lines.rule('└', '┴', '┘');
        RenderedGrid { text: lines.out, columns: layout.shown.len() }
    }
}

impl GridCell {
    fn shown(&self) -> Cow<'_, str> {
        match self {
            GridCell::Null => Cow::Borrowed("NULL"),
            GridCell::Text(text) => visible(text),
        }
    }
}

impl Layout {
    fn whole(widths: impl Iterator<Item = usize>) -> Self {
        Self { shown: widths.enumerate().collect(), before_gap: None }
    }

    /// Narrows the widest columns first; where that does not do, hides columns from the middle on.
    fn fitting(widths: &[usize], width: usize) -> Self {
        // A value has a space on each side and a line after it.
        let least = |width: &usize| (*width).min(LEAST_WIDTH) + 3;
        let mut needed = widths.iter().map(least).sum::<usize>() + 1;
        let mut before = widths.len().div_ceil(2);
        let mut after = widths.len() - before;
        let mut gap = 0;
        while before + after > 1 && needed + gap > width {
            gap = 4;
            let hidden = if after >= before { widths.len() - after } else { before - 1 };
            if after >= before {
                after -= 1
            } else {
                before -= 1
            }
            needed -= widths.get(hidden).map_or(0, least);
        }
        let indices: Vec<usize> = (0..before).chain(widths.len() - after..widths.len()).collect();
        let room = width.saturating_sub(3 * indices.len() + 1 + gap);
        let natural: Vec<usize> = indices.iter().filter_map(|index| widths.get(*index).copied()).collect();
        let most = widest_that_fits(&natural, room);
        let shown = indices.into_iter().zip(natural.into_iter().map(|width| width.min(most))).collect();
        Self { shown, before_gap: (gap > 0).then_some(before) }
    }
}

/// Returns the largest width to which columns of these widths can be limited so that their sum is at most `room`.
fn widest_that_fits(widths: &[usize], room: usize) -> usize {
    let mut sorted = widths.to_vec();
    sorted.sort_unstable();
    let mut left = room;
    for (index, width) in sorted.iter().enumerate() {
        let columns = sorted.len() - index;
        if width * columns > left {
            return (left / columns).max(1);
        }
        left -= width;
    }
    sorted.last().copied().unwrap_or(1)
}

#[derive(Clone, Copy)]
enum Align {
    Left,
    Middle,
    Right,
}

struct Lines<'a> {
    out: String,
    layout: &'a Layout,
    terminal: &'a Terminal,
}

impl Lines<'_> {
    fn rule(&mut self, left: char, between: char, right: char) {
        self.out.push(left);
        for (place, (_, width)) in self.layout.shown.iter().enumerate() {
            if place > 0 {
                self.out.push(between);
            }
            self.gap(place, "───", between);
            self.out.extend(std::iter::repeat_n('─', width + 2));
        }
        self.gap_at_end("───", between);
        self.out.push(right);
        self.out.push('\n');
    }

    fn row<'t>(&mut self, cell: impl Fn(usize) -> (&'t str, Align, TextTone)) {
        self.out.push('│');
        for (place, (column, width)) in self.layout.shown.iter().enumerate() {
            if place > 0 {
                self.out.push('│');
            }
            self.gap(place, " … ", '│');
            let (text, align, tone) = cell(*column);
            let text = cut_to_width(text, *width);
            let space = width.saturating_sub(text.width());
            let before = match align {
                Align::Left => 0,
                Align::Middle => space / 2,
                Align::Right => space,
            };
            self.out.push(' ');
            self.out.extend(std::iter::repeat_n(' ', before));
            self.out.push_str(&self.terminal.tone(tone, &text));
            self.out.extend(std::iter::repeat_n(' ', space - before + 1));
        }
        self.gap_at_end(" … ", '│');
        self.out.push_str("│\n");
    }

    fn gap(&mut self, place: usize, text: &str, after: char) {
        if self.layout.before_gap == Some(place) {
            self.out.push_str(text);
            self.out.push(after);
        }
    }

    fn gap_at_end(&mut self, text: &str, before: char) {
        if self.layout.before_gap == Some(self.layout.shown.len()) {
            self.out.push(before);
            self.out.push_str(text);
        }
    }
}

/// Cuts `text` to at most that many of the terminal's cells, and marks the cut.
pub(crate) fn cut_to_width(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut used = 1;
    let end = text.char_indices().find(|(_, char)| {
        // It makes an emoji, of two cells, of the character before it.
        used += if *char == '\u{fe0f}' { 1 } else { char.width().unwrap_or(0) };
        used > width
    });
    let end = end.map_or(text.len(), |(end, _)| end);
    Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default()))
}

/// Returns the text with its control characters as escapes.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// The same of a text of several lines, whose ends and tabs stay.
pub(crate) fn visible_lines(text: &str) -> String {
    escaped(&text.replace("\r\n", "\n"), |char| is_unsafe(char) && !matches!(char, '\n' | '\t')).into_owned()
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().map(|char| match is_escaped(char) {
        true => char.escape_default().to_string(),
        false => char.to_string(),
    });
    Cow::Owned(shown.collect())
}

/// Whether a terminal would act on the character, or turn the line around.
fn is_unsafe(char: char) -> bool {
    char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(width: usize) -> Terminal {
        Terminal { width: Some(width), height: 24, has_colors: false }
    }

    fn lines(grid: &Grid, width: usize) -> Vec<String> {
        let text = grid.render(&terminal(width), GridFit::Terminal).text;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let widths: Vec<usize> = lines.iter().map(|line| line.width()).collect();
        assert!(widths.iter().all(|one| one == &widths[0] && *one <= width), "{widths:?}\n{text}");
        lines
    }

    #[test]
    fn a_box_fits_its_terminal_whatever_it_holds() {
        for columns in [1, 2, 3, 7, 40, 200] {
            let names: Vec<String> = (0..columns).map(|column| format!("column_{column}")).collect();
            let mut grid = Grid::of_names(names.iter().map(String::as_str));
            grid.push_texts((0..columns).map(|column| "é顧🦀 word".repeat(column % 9)));
            grid.push_gap();
            grid.push((0..columns).map(|_| GridCell::Null).collect());
            for width in [20, 21, 40, 79, 80, 133, 400] {
                let lines = lines(&grid, width);
                assert_eq!(lines.len(), 9, "{lines:#?}");
            }
        }
    }

    /// Hiding columns costs a step for each, so that the widest of tables is drawn at once.
    #[test]
    fn a_box_of_very_many_columns_is_drawn_at_once() {
        let names: Vec<String> = (0..100_000).map(|column| format!("column_{column}")).collect();
        let mut grid = Grid::of_names(names.iter().map(String::as_str));
        grid.push_texts(names.iter().cloned());
        let shown = lines(&grid, 80);
        assert!(shown[1].contains("column_0 ") && shown[1].contains("column_99999"), "{shown:#?}");
    }

    #[test]
    fn the_middle_is_hidden_and_long_values_are_cut() {
        let mut grid = Grid::of_names(["id", "first", "second", "third", "last"]);
        grid.push_texts(["1", "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc", "z"].map(str::to_owned));
        let shown = lines(&grid, 40);
        assert!(shown[1].contains("id") && shown[1].contains("last") && !shown[1].contains("second"), "{shown:#?}");
        assert!(shown[3].contains(" … "), "{shown:#?}");
        assert_eq!(grid.render(&terminal(40), GridFit::Whole).columns, 5);
    }

    #[test]
    fn control_characters_are_shown() {
        let mut grid = Grid::of_names(["a"]);
        grid.push_texts(["x\n\u{1b}[31my".to_owned()]);
        assert!(lines(&grid, 40)[3].contains(r"x\n\u{1b}[31my"));
        assert_eq!(visible_lines("a\r\n\tb\u{1b}]0;c\u{7}\r"), "a\n\tb\\u{1b}]0;c\\u{7}\\r");
    }

    #[test]
    fn width_goes_to_those_that_need_it() {
        assert_eq!(widest_that_fits(&[3, 50, 5], 40), 32);
        assert_eq!(widest_that_fits(&[30, 30], 40), 20);
        assert_eq!(widest_that_fits(&[3, 5], 40), 5);
    }
}

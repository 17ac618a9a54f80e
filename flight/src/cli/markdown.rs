//! Markdown as a terminal shows it: headings and strong words bold, code coloured, lists with points, tables as boxes.
//!
//! Text comes in pieces and leaves in whole lines, so that a line is never drawn twice. What is not known is left as it is.

use super::output::grid::{Grid, GridFit, visible};
use super::output::terminal::{Terminal, TextTone};

/// Renders pieces of one text.
pub(super) struct MarkdownLines {
    terminal: Terminal,
    /// The line that is not at its end yet.
    unfinished: String,
    in_code: bool,
    /// The rows of a table that has not ended.
    table: Vec<Vec<String>>,
    /// The line below the names of that table, once it was there: which columns are aligned to the right.
    rule: Option<Vec<bool>>,
}

impl MarkdownLines {
    pub(super) fn new(terminal: Terminal) -> Self {
        Self { terminal, unfinished: String::new(), in_code: false, table: Vec::new(), rule: None }
    }

    /// Takes in a piece. Returns the lines that are whole now, each with its line end.
    pub(super) fn push(&mut self, piece: &str) -> String {
        self.unfinished.push_str(piece);
        let mut out = String::new();
        while let Some(end) = self.unfinished.find('\n') {
            let rest = self.unfinished.split_off(end + 1);
            let line = std::mem::replace(&mut self.unfinished, rest);
            self.line(line.trim_end(), &mut out);
        }
        out
    }

    /// Returns what is left.
    pub(super) fn finish(&mut self) -> String {
        let mut out = String::new();
        let line = std::mem::take(&mut self.unfinished);
        if !line.trim().is_empty() {
            self.line(line.trim_end(), &mut out);
        }
        self.end_table(&mut out);
        self.in_code = false;
        out
    }

    fn line(&mut self, line: &str, out: &mut String) {
        let trimmed = line.trim_start();
        let indent = &line[..line.len() - trimmed.len()];
        if trimmed.starts_with("```") {
            self.end_table(out);
            self.in_code = !self.in_code;
            return;
        }
        if self.in_code {
            out.push_str(&format!("    {}\n", self.terminal.tone(TextTone::Cyan, &visible(line))));
            return;
        }
        if let Some(cells) = table_row(trimmed) {
            let is_rule =
                cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|char| matches!(char, '-' | ':')));
            // Below the names only: a row of `-` further down holds nothing, and is a row.
            match is_rule && self.rule.is_none() && self.table.len() <= 1 {
                true => {
                    self.rule = Some(cells.iter().map(|cell| cell.ends_with(':') && !cell.starts_with(':')).collect())
                }
                false => self.table.push(cells),
            }
            return;
        }
        self.end_table(out);
        let heading = trimmed.trim_start_matches('#');
        let level = trimmed.len() - heading.len();
        if (1..=6).contains(&level) && heading.starts_with(' ') {
            let heading = self.terminal.tone(TextTone::Bold, &visible(&heading.trim().replace("**", "")));
            out.push_str(&format!("{heading}\n"));
            return;
        }
        let item = ["- ", "* ", "+ "].iter().find_map(|mark| trimmed.strip_prefix(mark));
        let text = match (item, trimmed.strip_prefix("> ")) {
            (Some(item), _) => format!("{indent}• {}", self.inline(item)),
            (None, Some(quote)) => format!("{indent}│ {}", self.inline(quote)),
            (None, None) => format!("{indent}{}", self.inline(trimmed)),
        };
        out.push_str(&text);
        out.push('\n');
    }

    fn end_table(&mut self, out: &mut String) {
        let rule = self.rule.take().unwrap_or_default();
        let mut rows = std::mem::take(&mut self.table).into_iter();
        let Some(names) = rows.next() else { return };
        let plain = |cell: String| without_escapes(&cell.replace("**", "").replace('`', ""));
        let names: Vec<String> = names.into_iter().map(plain).collect();
        let mut grid = Grid::of_names(names.iter().map(String::as_str));
        for (column, _) in rule.iter().enumerate().filter(|(_, is_right)| **is_right) {
            grid = grid.align_right(column);
        }
        for row in rows {
            let cells = row.into_iter().map(plain).chain(std::iter::repeat_n(String::new(), names.len()));
            grid.push_texts(cells.take(names.len()));
        }
        out.push_str(&grid.render(&self.terminal, GridFit::Terminal).text);
    }

    /// Renders strong words and code of a line, and characters behind a backslash.
    fn inline(&self, text: &str) -> String {
        const MARKS: [(&str, TextTone); 3] = [("**", TextTone::Bold), ("__", TextTone::Bold), ("`", TextTone::Cyan)];
        let mut out = String::new();
        let mut rest = text;
        let mut is_in_word = false;
        while let Some(char) = rest.chars().next() {
            let marked = MARKS.iter().find_map(|(mark, tone)| {
                let (inner, after) = rest.strip_prefix(mark)?.split_once(mark)?;
                // `stg__orders__old` is a name.
                let is_name = *mark == "__" && (is_in_word || after.starts_with(char::is_alphanumeric));
                (!inner.trim().is_empty() && !is_name).then_some((inner, *tone, after))
            });
            if let Some((inner, tone, after)) = marked {
                out.push_str(&self.terminal.tone(tone, &visible(inner)));
                rest = after;
                is_in_word = false;
                continue;
            }
            let escaped = escaped_character(rest);
            let shown = escaped.unwrap_or(char);
            let taken = usize::from(escaped.is_some()) + shown.len_utf8();
            out.push_str(&visible(shown.encode_utf8(&mut [0; 4])));
            is_in_word = shown.is_alphanumeric() || shown == '_';
            rest = rest.get(taken..).unwrap_or_default();
        }
        out
    }
}

/// The sign that a text begins with behind a backslash, which only says that it marks nothing.
fn escaped_character(text: &str) -> Option<char> {
    text.strip_prefix('\\')?.chars().next().filter(char::is_ascii_punctuation)
}

fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let escaped = escaped_character(rest);
        out.push(escaped.unwrap_or(char));
        rest = rest.get(escaped.map_or(char.len_utf8(), |_| 2)..).unwrap_or_default();
    }
    out
}

/// The cells of a line of a table. `\|` is a part of its cell.
fn table_row(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?;
    let inner = inner.strip_suffix('|').filter(|inner| !inner.ends_with('\\')).unwrap_or(inner);
    let mut cells = Vec::new();
    let mut began = 0;
    for (at, _) in inner.match_indices('|') {
        let cell = inner.get(began..at).unwrap_or_default();
        if !cell.ends_with('\\') {
            cells.push(cell.trim().to_owned());
            began = at + 1;
        }
    }
    cells.push(inner.get(began..).unwrap_or_default().trim().to_owned());
    Some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Flights\n\nThere are **3** of `UA`:\n\n- one\n- two\n\n| carrier | n |\n|---|--:|\n| UA | **2** |\n\n\
                        ```sql\nSELECT 1\n```\n2 * 3 and 4 * 5";

    fn rendered(has_colors: bool, size: usize) -> String {
        let mut lines = MarkdownLines::new(Terminal { width: Some(80), height: 24, has_colors });
        let chars: Vec<char> = TEXT.chars().collect();
        let mut out: String = chars.chunks(size).map(|piece| lines.push(&piece.iter().collect::<String>())).collect();
        out.push_str(&lines.finish());
        out
    }

    #[test]
    fn pieces_may_end_anywhere() {
        let plain = rendered(false, TEXT.len());
        let expected = "Flights\n\nThere are 3 of UA:\n\n• one\n• two\n\n┌─────────┬───┐\n│ carrier │ n │\n├─────────┼───┤\n\
                        │ UA      │ 2 │\n└─────────┴───┘\n\n    SELECT 1\n2 * 3 and 4 * 5\n";
        assert_eq!(plain, expected);
        for size in 1..20 {
            assert_eq!(rendered(false, size), plain, "{size}");
        }
        assert!(rendered(true, 7).contains("There are \x1b[1m3\x1b[0m of \x1b[36mUA\x1b[0m:"));
    }

    fn whole(text: &str) -> String {
        let mut lines = MarkdownLines::new(Terminal { width: Some(80), height: 24, has_colors: false });
        let first = lines.push(text);
        first + &lines.finish()
    }

    #[test]
    fn a_table_keeps_rows_of_dashes_and_bars_in_cells() {
        let text = "| code | n |\n|------|--:|\n| a \\| b | 10 |\n| - | - |\n| x\\_y | 7 |\n";
        let expected = "┌───────┬────┐\n│ code  │ n  │\n├───────┼────┤\n│ a | b │ 10 │\n│ -     │  - │\n│ x_y   │  7 │\n\
                        └───────┴────┘\n";
        assert_eq!(whole(text), expected);
    }

    #[test]
    fn names_keep_their_underscores() {
        for (text, shown) in [
            ("Of stg__orders__old and __all__ of it", "Of stg__orders__old and all of it\n"),
            ("my\\_table has 5 \\* 2 rows in C:\\data", "my_table has 5 * 2 rows in C:\\data\n"),
            ("`a__b__c` and **__init__**", "a__b__c and __init__\n"),
        ] {
            assert_eq!(whole(text), shown);
        }
    }
}

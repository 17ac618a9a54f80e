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
}

impl MarkdownLines {
    pub(super) fn new(terminal: Terminal) -> Self {
        Self { terminal, unfinished: String::new(), in_code: false, table: Vec::new() }
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
            if !is_rule {
                self.table.push(cells);
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
        let mut rows = std::mem::take(&mut self.table).into_iter();
        let Some(names) = rows.next() else { return };
        let plain = |cell: String| cell.replace("**", "").replace('`', "");
        let names: Vec<String> = names.into_iter().map(plain).collect();
        let mut grid = Grid::of_names(names.iter().map(String::as_str));
        for row in rows {
            let cells = row.into_iter().map(plain).chain(std::iter::repeat_n(String::new(), names.len()));
            grid.push_texts(cells.take(names.len()));
        }
        out.push_str(&grid.render(&self.terminal, GridFit::Terminal).text);
    }

    /// Renders strong and emphasised words, code and links of a line.
    fn inline(&self, text: &str) -> String {
        const MARKS: [(&str, TextTone); 3] = [("**", TextTone::Bold), ("__", TextTone::Bold), ("`", TextTone::Cyan)];
        let mut out = String::new();
        let mut rest = text;
        while let Some(char) = rest.chars().next() {
            let marked = MARKS.iter().find_map(|(mark, tone)| {
                let (inner, after) = rest.strip_prefix(mark)?.split_once(mark)?;
                (!inner.trim().is_empty()).then_some((inner, *tone, after))
            });
            if let Some((inner, tone, after)) = marked {
                out.push_str(&self.terminal.tone(tone, &visible(inner)));
                rest = after;
                continue;
            }
            let after = rest.get(char.len_utf8()..).unwrap_or_default();
            out.push_str(&visible(rest.get(..char.len_utf8()).unwrap_or_default()));
            rest = after;
        }
        out
    }
}

/// The cells of a line of a table.
fn table_row(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
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
}

//! Rows that a sentence names one after the other, and the numbers that it says of them in the same order.

use super::rows::{LONGEST_LISTED, ProofRows, TokenPlace};
use super::tokens::{TextToken, TextTokenKind, says, tokens_in};

impl ProofRows {
    /// Returns the rows whose labels stand in a sentence, in the order in which they do, with where they end.
    pub(super) fn labels_in_order(&self, sentence: &str) -> Vec<(usize, usize)> {
        if sentence.len() > LONGEST_LISTED {
            return Vec::new();
        }
        let place = |row| Some((row, self.label_place(row, sentence)?.1));
        let named = self.labelled_by_name(sentence);
        let names_all = named.is_empty() && self.names_every_row(sentence);
        let named = if names_all { (0..self.rows.len()).collect() } else { named };
        let mut found: Vec<(usize, usize)> = named.into_iter().filter_map(place).collect();
        found.sort_by_key(|(_, end)| *end);
        // A text that every row has names none of them.
        let is_shared = names_all && found.windows(2).any(|pair| pair[0].1 == pair[1].1);
        if is_shared { Vec::new() } else { found }
    }

    /// Returns the row that a number is of where a sentence lists names and then as many numbers: of `A and B had 3 and
    /// 5` the first is of A.
    pub(super) fn respective_row(&self, token: &TextToken, place: TokenPlace<'_>) -> Option<usize> {
        let named = self.labels_in_order(place.sentence);
        let (_, last_end) = *named.last().filter(|_| named.len() > 1)?;
        let mut numbers: Vec<TextToken> = tokens_in(place.sentence)
            .into_iter()
            .filter(|one| matches!(one.kind, TextTokenKind::Number(_)))
            .filter(|one| !named.iter().any(|(_, end)| *end == one.end))
            .collect();
        // Rows of one name are no list.
        if named.windows(2).any(|pair| pair[0].1 == pair[1].1) {
            return None;
        }
        // Where every row is named, a list alone is one.
        let is_listed = |pair: &[(usize, usize)]| {
            let start = self.label_place(pair[1].0, place.sentence).map(|(start, _)| start);
            let between = start.and_then(|start| place.sentence.get(pair[0].1..start)).unwrap_or_default().trim();
            [",", "and", ", and", "&", "und", "et", "y", "e"].contains(&between)
        };
        if named.len() == self.rows.len() && !named.windows(2).all(is_listed) {
            return None;
        }
        if numbers.len() != named.len() {
            numbers.retain(|one| !self.is_year_of_query(one));
        }
        let numbers: Vec<usize> = numbers.into_iter().map(|one| one.start).collect();
        let are_behind = numbers.first().is_some_and(|first| *first >= last_end);
        if !are_behind || numbers.len() != named.len() {
            return None;
        }
        let index = numbers.iter().position(|start| *start == place.offset + token.start)?;
        named.get(index).map(|(row, _)| *row)
    }

    /// Returns the row that a number is of where the sentence says that it goes on in the order of its names, else the rows that
    /// the clause or the sentence names.
    pub(super) fn rows_of_number(&self, token: &TextToken, place: TokenPlace<'_>) -> Vec<usize> {
        const IN_ORDER: [&str; 5] =
            ["respectively", "respectivement", "respectivamente", "rispettivamente", "respectievelijk"];
        let is_in_order = says(place.sentence, &IN_ORDER);
        let row = if is_in_order { self.respective_row(token, place) } else { None };
        row.map_or_else(|| self.named_rows(place), |row| vec![row])
    }

    /// Whether a number may be a year that the query asks by, which is no measure of its rows.
    fn is_year_of_query(&self, token: &TextToken) -> bool {
        let is_year = matches!(token.kind, TextTokenKind::Number(_)) && token.text.len() == 4;
        is_year && token.text.starts_with(['1', '2']) && self.query.iter().any(|known| known.kind == token.kind)
    }
}

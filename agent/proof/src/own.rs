//! What of a run's own rows, its question and its query proves a number or a date of a clause.

use chrono::{Datelike, NaiveDate};
use serde_json::Value;

use super::announced::AnnouncedOperation;
use super::arithmetic::{WantedNumber, is_said_as_difference};
use super::arrows::arrow_origin;
use super::bounds::{NumberBound, bound_before, bound_between, bound_origin, count_origin, denies, widened};
use super::changed_row::changed_row_origin;
use super::claims::{claimed_origin, out_of_origin, range_origin, score_origin};
use super::counted_rows::{counts_what_is_bounded, group_count_origin};
use super::derived::derived_origin;
use super::groups::over_period_origin;
use super::listed::listed_count_origin;
use super::period_changes::period_change_origin;
use super::ranks::WordedFactor;
use super::rates::is_of_counts;
use super::rows::{ProofRows, TokenPlace};
use super::scales::scale_of_column;
use super::specific::specific_origin;
use super::tokens::{self, ShareScale, TextToken, TextTokenKind, WrittenNumber, day_of};
use super::units::{MeasureUnit, is_in_other_unit, is_of_other_dimension, unit_beside};
use super::{ProofOrigin, Prover, arithmetic, number_of, ranks};

/// Words before a number by which it is what was found, where there is one number to find.
const BEFORE_FOUND: [&str; 7] = ["are", "were", "had", "has", "have", "found", "counted"];

impl Prover {
    /// Returns what of the run itself proves a number or a date in its clause; `67.8 million` also of a column that is
    /// called so, `population_millions`.
    pub(super) fn own_origin(&self, token: &TextToken, place: TokenPlace<'_>) -> ProofOrigin {
        let own = self.own_origin_as_written(token, place);
        if own != ProofOrigin::Unproven {
            return own;
        }
        if let Some(origin) = self.time_length_origin(token, place) {
            return origin;
        }
        if let Some(origin) = self.beside_columns_origin(token, place) {
            return origin;
        }
        let TextTokenKind::Number(number) = &token.kind else { return own };
        if !number.is_scaled {
            return own;
        }
        let scale = self.results.iter().flat_map(|result| &result.columns).find_map(|name| scale_of_column(name));
        let Some(scale) = scale else { return own };
        let (value, tolerance) = (number.value / scale, number.tolerance / scale);
        let kind = TextTokenKind::Number(WrittenNumber { value, tolerance, other: None, ..*number });
        self.own_origin_as_written(&TextToken { kind, ..token.clone() }, place)
    }

    pub(super) fn own_origin_as_written(&self, token: &TextToken, place: TokenPlace<'_>) -> ProofOrigin {
        let TokenPlace { clause, sentence, .. } = place;
        if let Some(month) = token.month().filter(|_| !self.has_days()) {
            return self.month_origin(token, month, place);
        }
        if let TextTokenKind::YearDay { day, .. } = token.kind {
            return self.year_day_origin(token, day, place);
        }
        let bound = bound_before(clause, token.start);
        let is_bound = bound.is_some_and(NumberBound::is_strict);
        let is_factor = is_said_as_factor(token, clause);
        let is_number = matches!(token.kind, TextTokenKind::Number(_));
        let is_bound_of_rows = denies(sentence) || tokens::says(sentence, &["every", "each"]);
        for result in self.results.iter().rev() {
            let standing = out_of_origin(result, token, place)
                .or_else(|| score_origin(result, token, place))
                .or_else(|| range_origin(result, token, place))
                .or_else(|| arrow_origin(result, token, place))
                .or_else(|| over_period_origin(result, token, place))
                .or_else(|| listed_count_origin(result, token, place));
            if let Some(origin) = standing {
                return origin;
            }
            // `Leeds and York: 312 and 298`.
            let is_behind_list = clause[..token.start].trim_end().ends_with(':');
            let of_list = || result.respective_row(token, place);
            let listed = if is_behind_list { of_list() } else { None };
            let beside = listed.or_else(|| result.row_beside(token, clause)).or_else(of_list);
            let labelled = match beside.or_else(|| result.row_of_period_before(token, place)) {
                Some(row) => vec![row],
                None => match token.kind {
                    // `Emma in December, all others since July`.
                    TextTokenKind::Date(_) => result.other_rows(place).unwrap_or_else(|| result.named_rows(place)),
                    _ => result.named_rows(place),
                },
            };
            let called = called_column(result, token, place);
            let candidates = result.cells().filter(|(row, column, _)| {
                may_be_of(result, *column, token)
                    && !is_count_of_share(result, *column, token, clause)
                    && (labelled.is_empty() || labelled.contains(row))
                    && called.is_none_or(|called| called == *column)
                    && !(is_factor && result.rows.len() > 1 && !is_of_ratios(result, *column))
            });
            // `More than 1.5 million` is no 1.47 million, which is written so.
            let equal = candidates.filter(|(_, column, value)| match is_bound {
                // A percentage is no amount, and the two of `no ward had more than two` no cell of a ward.
                true => {
                    !(is_number && (is_bound_of_rows || labelled.len() == 1))
                        && token.is_exactly(value)
                        && !(token.is_percent() && result.share_scale(*column) == ShareScale::Amount)
                }
                false => {
                    token.equals(value, result.share_scale(*column))
                        || token.is_loss_of(value, sentence)
                        || result.is_hour(token, *column, value)
                }
            });
            // Few cells are equal, and what reads the clause costs more than comparing.
            let mut found = equal.filter(|(_, column, _)| {
                !result.is_other_extreme(*column, clause) && !is_in_other_unit(result, *column, token, clause)
            });
            let found = found.next();
            if let TextTokenKind::Number(number) = &token.kind
                && labelled.is_empty()
                && found.is_some()
                && let Some(origin) = arithmetic::typical_origin(result, number, token, clause)
            {
                return origin;
            }
            // `2022 had 406 more than 2019`: a difference of rows that the sentence names, whatever a row has by chance.
            let compared = match labelled.len() {
                0 | 1 if is_said_as_difference(clause, token) => result.labelled(sentence),
                _ => labelled.clone(),
            };
            if let TextTokenKind::Number(number) = &token.kind
                && compared.len() > 1
                && !is_bound
                && found.is_none()
            {
                let number = &widened(*number, clause, token.start);
                let wanted = WantedNumber::new(number, result, &compared, token, place);
                if let Some((expression, value, cells)) = arithmetic::expression_of(&wanted, result, clause, sentence) {
                    return ProofOrigin::Expression { expression, value, cells };
                }
            }
            if let Some((row, column, value)) = found {
                return result.cell_origin(row, column, value);
            }
            // `South is number 3 by orders`.
            if let (TextTokenKind::Number(number), [row]) = (&token.kind, labelled.as_slice())
                && ranks::is_said_as_rank(clause, token.start)
                && let Some(origin) = ranks::rank_origin(result, *row, number.value as usize, sentence)
            {
                return origin;
            }
        }
        // What the asker said comes before counts and sums, which are equal by chance more often.
        if !self.is_said_as_found(token, place) && (self.is_in_question(token) || self.asks_in_currency(token, clause))
        {
            return ProofOrigin::Question;
        }
        if let TextTokenKind::Number(number) = &token.kind {
            let counted = self.results.iter().rev().find_map(|result| count_origin(result, number, sentence));
            if let Some(origin) = counted.filter(|_| bound.is_none()) {
                return origin;
            }
            if bound.is_none()
                && let Some(origin) =
                    self.results.last().and_then(|result| group_count_origin(result, token, number, place))
            {
                return origin;
            }
            // `Four wards stay above 6 days` counts them, and is no difference of two cells.
            if self.results.last().is_some_and(|result| counts_what_is_bounded(result, token, number, place)) {
                return ProofOrigin::Unproven;
            }
            // What bounds is no difference, although it says `more`.
            if let Some(bound) = bound.filter(|bound| bound.is_strict()) {
                let ratio = self.bounded_ratio(bound, number.value, place);
                // `More than six times as many` is a bound of no number of rows.
                let is_of_each = tokens::says(sentence, &["for every", "for each"]);
                let is_factor =
                    ratio.is_some() && (is_of_each || clause[token.end..].trim_start().starts_with("times as "));
                return match ratio.filter(|origin| is_factor || *origin != ProofOrigin::Unproven) {
                    Some(ratio) if is_factor => Some(ratio),
                    ratio => self.bound(bound, number, unit_beside(token, clause), place).or(ratio),
                }
                // What is said of a column that is there is its rows' to prove.
                .or_else(|| self.of_query(token).filter(|_| !self.is_of_latest_column(token, clause)))
                .unwrap_or(ProofOrigin::Unproven);
            }
            for result in self.results.iter().rev() {
                let rows = result.rows_of_number(token, place);
                let changed = changed_row_origin(result, token, number, place)
                    .or_else(|| period_change_origin(result, token, number, place));
                if let Some(origin) = changed.or_else(|| derived_origin(result, &rows, token, place)) {
                    return origin;
                }
            }
            if let Some(origin) = self.converted_beside(token, number, place) {
                return origin;
            }
        }
        // `Hull has none; the other three have 24`, and in a sentence of its own `The two others have 24`.
        if is_of_others(clause, token)
            && let Some(result) = self.results.last()
            && let Some(named) =
                [sentence, place.before].into_iter().map(|text| result.labelled(text).len()).find(|named| *named > 0)
            && token.is_whole(result.row_count.saturating_sub(named))
        {
            return ProofOrigin::RowCount { call_index: result.call_index };
        }
        // A cell of another row is no proof, whatever else the number could be.
        let equals = |result: &ProofRows| {
            let called = called_column(result, token, place);
            let is_of_group = result.named_rows(place).len() > 1;
            let mut cells = result.cells().filter(|(_, column, _)| called.is_none_or(|called| called == *column));
            cells.any(|(_, column, value)| {
                token.equals(value, result.share_scale(column))
                    && may_be_of(result, column, token)
                    && !is_of_other_dimension(result, column, token, clause)
                    && !(is_of_group && result.numbers_its_rows(column))
            })
        };
        if !is_factor && !is_said_as_difference(clause, token) && self.results.iter().any(equals) {
            return self.between(token, place).unwrap_or(ProofOrigin::Unproven);
        }
        for result in self.results.iter().rev() {
            let is_of_rows = result.rows.len() > 1
                && (result.labelled(clause).is_empty()
                    || is_of_all(clause, token.start)
                    || (result.names_every_row(sentence) && result.labelled(&clause[..token.start]).is_empty()));
            let is_below_rows = is_below_rows(place.sentence, place.offset + token.start, place.offset + token.end);
            let is_counted_there = !is_below_rows && is_of_counting_column(result, token, clause);
            if (is_of_rows || is_below_rows) && !is_counted_there && token.is_whole(result.row_count) {
                return ProofOrigin::RowCount { call_index: result.call_index };
            }
        }
        if let TextTokenKind::Number(number) = &token.kind {
            for result in self.results.iter().rev() {
                let rows = result.rows_of_number(token, place);
                let wanted = WantedNumber::new(number, result, &rows, token, place);
                let said = place.announcing_text();
                if let Some((expression, value, cells)) = arithmetic::expression_of(&wanted, result, clause, &said) {
                    return ProofOrigin::Expression { expression, value, cells };
                }
                if is_of_all(clause, token.start)
                    && let Some(origin) = result.count_of_values(number)
                {
                    return origin;
                }
            }
        }
        if !is_factor
            && !self.is_said_as_found(token, place)
            && let Some(origin) = self.of_query(token)
        {
            return origin;
        }
        let rounded = match (&token.kind, bound) {
            (TextTokenKind::Number(number), Some(bound)) => {
                self.bound(bound, number, unit_beside(token, clause), place)
            }
            _ => None,
        };
        let claimed = || self.results.iter().rev().find_map(|result| claimed_origin(result, token, place));
        let specific = || match &token.kind {
            TextTokenKind::Number(number) => {
                let percents = self.percents_beside(token, place);
                let mut results = self.results.iter().rev();
                results.find_map(|result| specific_origin(result, token, number, place, &percents))
            }
            _ => None,
        };
        let found = rounded.or_else(|| self.between(token, place)).or_else(claimed).or_else(specific);
        found.unwrap_or(ProofOrigin::Unproven)
    }

    fn bound(
        &self,
        bound: NumberBound,
        number: &WrittenNumber,
        unit: Option<MeasureUnit>,
        place: TokenPlace<'_>,
    ) -> Option<ProofOrigin> {
        let mut results = self.results.iter().rev();
        results.find_map(|result| {
            let others = result.rows_but_named(place).or_else(|| result.rows_of_others(place));
            let rows = others.unwrap_or_else(|| result.named_rows(place));
            // Of `three days went above 28 °C, and the wind blew at up to 43 km/h` the wind is another clause's.
            let mut texts = [place.statement(), place.clause].into_iter();
            texts.find_map(|text| bound_origin(result, bound, number, unit, &rows, text))
        })
    }

    /// Returns what proves `more than four to one`, and `more than three times as much`.
    fn bounded_ratio(&self, bound: NumberBound, times: f64, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let lower = place.sentence.to_lowercase();
        let is_ratio = [" times", " to one", " to 1", "-fold", "for every ", "for each "]
            .iter()
            .any(|words| lower.contains(words));
        let result = self.results.last().filter(|_| is_ratio)?;
        let named = result.labels_in_order(place.sentence);
        let factor = WordedFactor { times, bound: Some(bound) };
        ranks::factor_origin(result, &named, factor, place.sentence)
    }

    /// Returns what proves a number that says the one right before it once more in another unit: `39.1 °C (102.4 °F)`.
    fn converted_beside(
        &self,
        token: &TextToken,
        number: &WrittenNumber,
        place: TokenPlace<'_>,
    ) -> Option<ProofOrigin> {
        const OR: [&str; 10] = ["or", "i.e.", "ie", "that is", "about", "oder", "also", "soit", "ou", "o sea"];
        let unit = unit_beside(token, place.clause)?;
        let start = place.offset + token.start;
        let tokens = tokens::tokens_in(place.sentence);
        let before = tokens.iter().rev().find(|one| one.end <= start)?;
        let TextTokenKind::Number(said) = &before.kind else { return None };
        let other = unit_beside(before, place.sentence).filter(|other| other.is_of_kind(unit) && *other != unit)?;
        let between = place.sentence.get(before.end..start)?;
        if !(between.contains(['(', '=', '/', '≈']) || tokens::says(between, &OR)) {
            return None;
        }
        let factor = other.factor_to(unit);
        let allowed = number.tolerance + said.tolerance * factor;
        let is_so = |value: f64| (value - number.value).abs() <= allowed;
        let value = other.convert(said.value, unit);
        let (expression, value) = if is_so(value) {
            (other.conversion(said.value, unit), value)
        } else {
            // A difference of temperatures has no zero.
            let is_difference = !other.shares_zero(unit) && AnnouncedOperation::in_text(place.sentence).difference;
            if !is_difference || !is_so(said.value * factor) {
                return None;
            }
            (format!("1.0e0 * {:?} * {factor:?}", said.value), said.value * factor)
        };
        let cells = match self.own_origin_as_written(before, TokenPlace { clause: place.sentence, offset: 0, ..place })
        {
            ProofOrigin::Cell { cell, .. } => vec![cell],
            ProofOrigin::Expression { cells, .. } => cells,
            ProofOrigin::RowCount { .. } | ProofOrigin::Question | ProofOrigin::Query { .. } => Vec::new(),
            ProofOrigin::Conversation | ProofOrigin::Unproven => return None,
        };
        Some(ProofOrigin::Expression { expression, value, cells })
    }

    /// Returns what proves one of the two numbers of `between 40 and 50`.
    fn between(&self, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let TextTokenKind::Number(number) = &token.kind else { return None };
        let start = place.offset + token.start;
        let bound = bound_between(place.sentence, start)?;
        // Where the other of the two is a value, so is this one.
        let is_value = |other: &TextToken| {
            let mut cells = self.results.iter().flat_map(|result| result.cells());
            bound_between(place.sentence, other.start).is_some() && cells.any(|(_, _, value)| other.is_exactly(value))
        };
        let others = tokens::tokens_in(place.sentence);
        if others.iter().any(|other| other.start != start && is_value(other)) {
            return None;
        }
        self.bound(bound, number, unit_beside(token, place.clause), place)
    }

    /// Whether a number is said to be what was found, where the sentence says nothing that the row holds which it is about:
    /// that the question or the query says the number too is no proof then.
    fn is_said_as_found(&self, token: &TextToken, place: TokenPlace<'_>) -> bool {
        let (TextTokenKind::Number(_), Some(result)) = (&token.kind, self.results.last()) else { return false };
        let row = match (result.rows.len(), result.labelled(place.clause).as_slice()) {
            (1, _) => 0,
            (_, [row]) => *row,
            _ => return false,
        };
        let labels = if result.rows.len() > 1 { result.label_columns() } else { &[] };
        let of_row = result.cells().filter(|(of, column, _)| *of == row && !labels.contains(column));
        let numbers: Vec<f64> = of_row.filter_map(|(_, _, value)| number_of(value)).collect();
        let says_one = tokens::tokens_in(place.sentence).iter().any(|one| match &one.kind {
            TextTokenKind::Number(said) => numbers.iter().any(|number| said.stands_for(*number, ShareScale::Unknown)),
            _ => false,
        });
        if numbers.is_empty() || says_one {
            return false;
        }
        let before = place.clause[..token.start].to_lowercase();
        let last = tokens::last_words(&before, 1);
        let behind = place.clause[token.end..].strip_prefix(' ').unwrap_or_default();
        let next = behind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let is_counted = next.chars().any(char::is_alphabetic) && !["in", "and", "or", "to"].contains(&next);
        let names_result = ["number of", "count", "total", "answer", "result"].iter().any(|word| before.contains(word));
        let is_result = names_result && ["is", "was", "of"].contains(&last.trim_end_matches(':'));
        is_result || (BEFORE_FOUND.contains(&last.as_str()) && is_counted)
    }

    /// Returns the percentages that the question or the rest of the sentence says: `with 10 % off it would cost 19.80`.
    fn percents_beside(&self, token: &TextToken, place: TokenPlace<'_>) -> Vec<f64> {
        const MOST: usize = 3;
        // Percentages of a table are of its rows.
        if place.clause.contains('|') {
            return Vec::new();
        }
        let start = place.offset + token.start;
        let of_sentence = tokens::tokens_in(place.sentence).into_iter().filter(|one| one.start != start);
        let said = self.question.iter().cloned().chain(of_sentence);
        let percent = |one: TextToken| match one.kind {
            TextTokenKind::Number(WrittenNumber { value, is_percent: true, .. }) => Some(value),
            _ => None,
        };
        said.filter_map(percent).take(MOST).collect()
    }

    /// Whether a number stands before the name of a column of the latest rows.
    fn is_of_latest_column(&self, token: &TextToken, clause: &str) -> bool {
        self.results.last().is_some_and(|result| result.column_behind(token, clause).is_some())
    }

    fn of_query(&self, token: &TextToken) -> Option<ProofOrigin> {
        let mut results = self.results.iter().rev();
        let names_it = |result: &ProofRows| {
            token.text.len() == 4
                && token.text.chars().all(|c| c.is_ascii_digit())
                && result.columns.iter().any(|name| name.contains(&token.text))
        };
        let result =
            results.find(|result| result.query.iter().any(|known| token.is_said_by(known)) || names_it(result))?;
        Some(ProofOrigin::Query { call_index: result.call_index })
    }

    /// Whether any cell holds a day.
    pub(super) fn has_days(&self) -> bool {
        self.results.iter().any(|result| result.cells().any(|(_, _, value)| day_of(value).is_some()))
    }

    /// Returns what proves `March 9`: a day of the rows, what the question or the query says, else what proves the number.
    fn year_day_origin(&self, token: &TextToken, day: u32, place: TokenPlace<'_>) -> ProofOrigin {
        for result in self.results.iter().rev() {
            let rows = result.named_rows(place);
            let mut equal = result.cells().filter(|(row, _, value)| {
                (rows.is_empty() || rows.contains(row)) && token.equals(value, ShareScale::Unknown)
            });
            if let Some((row, column, value)) = equal.next() {
                return result.cell_origin(row, column, value);
            }
        }
        if let Some(origin) = self.said_origin(token) {
            return origin;
        }
        let kind = TextTokenKind::Number(WrittenNumber::whole(day as usize));
        self.own_origin(&TextToken { kind, ..token.clone() }, place)
    }

    /// Returns what proves `April 2013` where no cell holds a day: a text, what the question or the query says, and the
    /// year.
    fn month_origin(&self, token: &TextToken, month: NaiveDate, place: TokenPlace<'_>) -> ProofOrigin {
        for result in self.results.iter().rev() {
            if let Some((row, column, value)) =
                result.cells().find(|(_, _, value)| token.equals(value, ShareScale::Unknown))
            {
                return result.cell_origin(row, column, value);
            }
        }
        if let Some(origin) = self.said_origin(token) {
            return origin;
        }
        if self.lacks_month(month) {
            return ProofOrigin::Unproven;
        }
        let year = usize::try_from(month.year()).unwrap_or_default();
        let kind = TextTokenKind::Number(WrittenNumber::whole(year));
        self.own_origin(&TextToken { text: year.to_string(), kind, ..token.clone() }, place)
    }

    /// Whether results have a column of months, and none of them is this one.
    fn lacks_month(&self, month: NaiveDate) -> bool {
        let name = month.format("%b").to_string();
        let is_month = |value: &Value| match (number_of(value), value.as_str().and_then(|text| text.get(..name.len())))
        {
            (Some(number), _) => number == f64::from(month.month()),
            (None, Some(begin)) => begin.eq_ignore_ascii_case(&name),
            (None, None) => false,
        };
        let mut has_months = false;
        for result in &self.results {
            for (_, column, value) in result.cells() {
                if result.columns.get(column).is_some_and(|column| column.to_lowercase().ends_with("month")) {
                    has_months = true;
                    if is_month(value) {
                        return false;
                    }
                }
            }
        }
        has_months
    }

    /// Returns what proves what the question or the query says.
    fn said_origin(&self, token: &TextToken) -> Option<ProofOrigin> {
        if self.is_in_question(token) { Some(ProofOrigin::Question) } else { self.of_query(token) }
    }

    /// Whether the question says a number of coins in their currency: the 32 cents of 0.32.
    fn asks_in_currency(&self, token: &TextToken, clause: &str) -> bool {
        let TextTokenKind::Number(number) = &token.kind else { return false };
        let is_coin = unit_beside(token, clause).is_some_and(MeasureUnit::is_coin);
        let is_same = |known: &TextToken| match &known.kind {
            TextTokenKind::Number(said) => (100.0 * said.value - number.value).abs() <= number.tolerance * 1e-6,
            _ => false,
        };
        is_coin && self.question.iter().any(is_same)
    }

    fn is_in_question(&self, token: &TextToken) -> bool {
        self.question.iter().any(|known| token.is_said_by(known)) || token.stands_in(&self.question_text)
    }
}

/// Returns the column that a number is of by the words behind it, where the sentence names no row: a cell of another is one by
/// chance.
fn called_column(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<usize> {
    let is_number = matches!(token.kind, TextTokenKind::Number(_));
    let column = result.column_behind(token, place.clause).filter(|_| is_number);
    column.filter(|_| result.labelled(place.sentence).is_empty())
}

/// Whether a number is how many times as much something is: `three times as often`, `2.3 times what Wendy earns`, and not
/// `21 times`.
fn is_said_as_factor(token: &TextToken, clause: &str) -> bool {
    const TIMES: [&str; 7] = ["times ", "mal ", "fois ", "veces ", "vezes ", "volte ", "keer "];
    const BEHIND: [&str; 18] = [
        "as", "more", "what", "the", "that", "higher", "larger", "greater", "bigger", "longer", "so", "plus", "más",
        "mais", "più", "zo", "moins", "menos",
    ];
    let behind = clause[token.end..].trim_start_matches([' ', '-']);
    let Some(behind) = TIMES.iter().find_map(|words| behind.strip_prefix(words)) else { return false };
    let next = behind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_owner = ["'s", "’s"].iter().any(|ending| behind[next.len()..].starts_with(ending));
    BEHIND.contains(&next) || next.starts_with(char::is_uppercase) || is_owner
}

/// Whether a column says how many times as much one is as another.
fn is_of_ratios(result: &ProofRows, column: usize) -> bool {
    let name = result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
    ["ratio", "factor", "times", "multiple", "fold", "index"].iter().any(|word| name.contains(word))
}

/// Whether the words right behind a number name a column that counts, `three new listings` of `listings`: that there are as many
/// rows is no proof then.
fn is_of_counting_column(result: &ProofRows, token: &TextToken, clause: &str) -> bool {
    let behind = clause[token.end..].split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(2);
    let words: Vec<String> = behind.map(|word| word.to_lowercase().trim_end_matches('s').to_owned()).collect();
    let is_named = |(column, name): (usize, &String)| {
        let name = name.to_lowercase();
        let is_measured = !result.label_columns().contains(&column) && !result.numbers(column).is_empty();
        is_measured && words.iter().any(|word| word == name.trim_end_matches('s'))
    };
    result.columns.iter().enumerate().any(is_named)
}

/// Whether a number is of all rows by the words before it: `the 3 methods`.
fn is_of_all(clause: &str, start: usize) -> bool {
    ["the", "all", "these", "those", "following"].contains(&tokens::last_words(&clause[..start], 1).as_str())
}

/// Whether a number is of all but those that are named: `the other two`, `the remaining two`, `the two others`.
fn is_of_others(clause: &str, token: &TextToken) -> bool {
    let behind = clause[token.end..].trim_start();
    let next = behind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let before = |count: usize| tokens::last_words(&clause[..token.start], count);
    ["the other", "the remaining"].contains(&before(2).as_str())
        || (before(1) == "the" && ["other", "others"].contains(&next))
}

/// Whether a number is that of rows as results are shown to the model, `(1 row)`, which models repeat.
fn is_below_rows(sentence: &str, start: usize, end: usize) -> bool {
    sentence[..start].ends_with('(') && [" row)", " rows)"].iter().any(|word| sentence[end..].starts_with(word))
}

/// Whether a token may be a cell of a column: three fifths are none of 60 votes.
fn may_be_of(result: &ProofRows, column: usize, token: &TextToken) -> bool {
    let is_share = || matches!(result.share_scale(column), ShareScale::Fraction | ShareScale::Percent);
    !is_part_in_words(token) || is_share()
}

/// Whether a token is a percentage of something, `60 % of their games`, and the column one of counts.
fn is_count_of_share(result: &ProofRows, column: usize, token: &TextToken, clause: &str) -> bool {
    const OF: [&str; 4] = ["of their ", "of its ", "of all ", "of the "];
    let behind = clause[token.end..].trim_start_matches(['%', ' ']);
    let is_short = result.columns.get(column).is_some_and(|name| name.len() <= "points".len());
    let is_of = token.is_percent() && OF.iter().any(|words| behind.starts_with(words));
    is_of && is_short && result.share_scale(column) == ShareScale::Unknown && is_of_counts(result, column)
}

/// Whether a token is a part that is said in words: `three fifths`, but not `sixty percent`.
fn is_part_in_words(token: &TextToken) -> bool {
    if !token.is_percent() {
        return false;
    }
    let text = token.text.to_lowercase();
    text.starts_with(char::is_alphabetic) && !text.contains("percent") && !text.contains("per cent")
}

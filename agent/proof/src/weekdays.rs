//! Days of a week beside a date, and of the only day that rows have.

use chrono::{Datelike, NaiveDate, Weekday};

use super::rows::TokenPlace;
use super::tokens::{ShareScale, TextToken, TextTokenKind, day_of, tokens_in};
use super::{ProofOrigin, Prover};

impl Prover {
    /// Returns what proves the day of a week: the date beside it, or the only day that the rows have. `None` where nobody
    /// can say of which day it is.
    pub(super) fn weekday(&self, weekday: Weekday, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let dates = tokens_in(place.sentence);
        let mut days = dates.iter().filter_map(|one| match &one.kind {
            TextTokenKind::Date(days) if days.len() == 1 => days.first().copied(),
            TextTokenKind::YearDay { month, day } => self.only_day(*month, *day),
            _ => None,
        });
        if let Some(day) = days.next() {
            return (day.weekday() != weekday && days.next().is_none()).then_some(ProofOrigin::Unproven);
        }
        let result = self.latest_rows().filter(|result| result.rows.len() == 1)?;
        let mut days = result.cells().filter(|(_, _, value)| day_of(value).is_some());
        let (Some((row, column, value)), None) = (days.next(), days.next()) else { return None };
        Some(match token.equals(value, ShareScale::Unknown) {
            true => result.cell_origin(row, column, value),
            false => ProofOrigin::Unproven,
        })
    }

    /// Returns the day of the rows that is this day of a year, where there is one of only one year.
    fn only_day(&self, month: u32, day: u32) -> Option<NaiveDate> {
        let cells = self.results.iter().flat_map(|result| result.cells()).filter_map(|(_, _, value)| day_of(value));
        let mut found: Vec<NaiveDate> = cells.filter(|found| (found.month(), found.day()) == (month, day)).collect();
        found.sort_unstable();
        found.dedup();
        if let [only] = found.as_slice() { Some(*only) } else { None }
    }
}

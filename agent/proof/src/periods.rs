//! The row of the period before the one that a sentence names: `14 March was best, ahead of the Saturday before (1,420.60)`, `239
//! in December, after 176 the month before`.

use chrono::{Days, Months, NaiveDate};

use super::rows::{ProofRows, TokenPlace};
use super::tokens::{TextToken, last_words};

/// Words between a period and the number that is of it.
const NEAR: usize = 4;
const BEFORE: [&str; 3] = ["previous", "prior", "preceding"];
const BEHIND: [&str; 2] = ["before", "earlier"];

/// How long a period is.
#[derive(Debug, Clone, Copy)]
enum PeriodLength {
    Days(u64),
    Months(u32),
}

impl PeriodLength {
    fn of_word(word: &str) -> Option<Self> {
        match word.trim_end_matches("'s").trim_end_matches("’s") {
            "day" => Some(Self::Days(1)),
            "week" | "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday" => {
                Some(Self::Days(7))
            }
            "month" => Some(Self::Months(1)),
            "quarter" => Some(Self::Months(3)),
            "year" => Some(Self::Months(12)),
            _ => None,
        }
    }

    fn before(self, day: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::Days(count) => day.checked_sub_days(Days::new(count)),
            Self::Months(count) => day.checked_sub_months(Months::new(count)),
        }
    }
}

/// Returns the length of the period that a text ends with: of `the Saturday before`, and of `the previous month's`.
fn period_before_in(text: &str) -> Option<PeriodLength> {
    let near = last_words(text, NEAR);
    let words: Vec<&str> = near.split(' ').collect();
    words.windows(2).find_map(|pair| match pair {
        [word, period] if BEFORE.contains(word) => PeriodLength::of_word(period),
        [period, word] if BEHIND.contains(word) => PeriodLength::of_word(period),
        _ => None,
    })
}

impl ProofRows {
    /// Returns the row of the period before the only one that is named before a number.
    pub(super) fn row_of_period_before(&self, token: &TextToken, place: TokenPlace<'_>) -> Option<usize> {
        let text = place.sentence.get(..place.offset + token.start)?;
        let text = text.trim_end_matches(|c: char| " (:=$€£".contains(c));
        let length = period_before_in(text)?;
        let [named] = *self.labelled(text).as_slice() else { return None };
        let wanted = length.before(self.day_of_row(named)?)?;
        let mut found = (0..self.rows.len()).filter(|row| self.day_of_row(*row) == Some(wanted));
        found.next().filter(|_| found.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn a_number_may_be_of_the_period_before() {
        let months = json!([["2025-09", 1510], ["2025-10", 1980], ["2025-11", 1760], ["2025-12", 2390]]);
        let is_doubted = |text: &str| !doubted(&["month", "cancelled"], months.clone(), text).is_empty();
        assert!(!is_doubted("December had 2,390 cancellations, well above the previous month (1,760)."));
        assert!(is_doubted("December had 2,390 cancellations, well above the previous month (1,980)."));
    }
}

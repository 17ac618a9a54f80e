//! Which rows a text names: by their labels, by a part of them, in another form, by their time, and by several of these
//! together.

use chrono::{Datelike, NaiveDate, Weekday};
use serde_json::Value;

use super::claims::{has_word, month_of};
use super::common_words::is_common_word;
use super::dates::{self, foreign_names_of_month};
use super::labels::{has_exact_word, other_forms, quarter_of, says_quarter, stands_as_label, year_of};
use super::number_of;
use super::rows::ProofRows;
use super::tokens::{self, ShareScale, TextToken, TextTokenKind, tokens_in};

/// Rows whose names are looked for in part, and by their days.
const MOST_NAMED: usize = 100;
/// Words of a name that is looked for in part.
const MOST_WORDS: usize = 4;
/// The days of a week, and several of each.
const WEEKDAYS: [(&str, &str, Weekday); 7] = [
    ("monday", "mondays", Weekday::Mon),
    ("tuesday", "tuesdays", Weekday::Tue),
    ("wednesday", "wednesdays", Weekday::Wed),
    ("thursday", "thursdays", Weekday::Thu),
    ("friday", "fridays", Weekday::Fri),
    ("saturday", "saturdays", Weekday::Sat),
    ("sunday", "sundays", Weekday::Sun),
];
/// Words of a text that compares one row with another.
const COMPARES: [&str; 9] = ["as", "than", "against", "versus", "vs", "compared", "while", "between", "from"];

impl ProofRows {
    /// Returns the rows whose labels stand in a text; none of a result of one row.
    pub(super) fn labelled(&self, text: &str) -> Vec<usize> {
        self.memo.labelled.get(text, || {
            let named = self.labelled_by_name(text);
            // `Friday to Sunday`.
            let between = if named.len() == 2 { self.rows_between(text) } else { None };
            between.unwrap_or(named)
        })
    }

    /// As [`ProofRows::labelled`], without the rows between two.
    pub(super) fn labelled_by_name(&self, text: &str) -> Vec<usize> {
        let mut found = self.called(text);
        found.extend(self.called_by_measure(text));
        found.sort_unstable();
        found.dedup();
        // `More sheep than cows` of `sheep` and `cow`, and `between Q3 and Q4 2023`.
        if found.len() == 1 && tokens::says(text, &COMPARES) {
            found.extend(self.called_otherwise(text));
            found.sort_unstable();
            found.dedup();
        }
        if found.is_empty() {
            found = self.called_in_part(text);
        }
        if found.is_empty() {
            found = self.called_otherwise(text);
        }
        if found.is_empty() {
            found = self.dated(text);
        }
        if found.is_empty() {
            found = self.of_year(text);
        }
        let found = self.of_every_key(text, found);
        // Labels that every row has tell nothing.
        if found.len() == self.rows.len() { Vec::new() } else { found }
    }

    /// Whether rows are so few that they are looked for by more than their labels.
    fn may_be_named(&self) -> bool {
        (2..=MOST_NAMED).contains(&self.rows.len())
    }

    /// Returns the rows of whose names one word stands in a text that no other row has: `Omar` of `Omar Diaz`.
    fn called_in_part(&self, text: &str) -> Vec<usize> {
        let is_word = |word: &str| {
            let is_long = word.chars().count() > 2 && word.starts_with(char::is_uppercase);
            is_long && !is_common_word(&word.to_lowercase())
        };
        let words_of = |row: &Vec<Value>| -> Vec<String> {
            let names = self.label_columns().iter().filter_map(|column| row.get(*column)?.as_str());
            let several = names.filter(|name| (2..=MOST_WORDS).contains(&name.split_whitespace().count()));
            several.flat_map(str::split_whitespace).filter(|word| is_word(word)).map(str::to_owned).collect()
        };
        if !self.may_be_named() {
            return Vec::new();
        }
        let words: Vec<Vec<String>> = self.rows.iter().map(words_of).collect();
        let is_own = |row: usize, word: &String| {
            // Rows of the very same name are named together.
            let is_other = |list: &Vec<String>| list.contains(word) && *list != words[row];
            let is_shared = words.iter().any(is_other);
            let is_in_capitals = word.chars().all(char::is_uppercase) && word.len() > 3;
            !is_shared && (has_exact_word(text, word) || (is_in_capitals && tokens::find_word(text, word).is_some()))
        };
        (0..self.rows.len()).filter(|row| words[*row].iter().any(|word| is_own(*row, word))).collect()
    }

    /// Returns the rows whose name stands in a text in the other number, `Lamps` of `Lamp`, or as a month: `February` of
    /// `2024-02`, where only one row is of a February.
    pub(super) fn called_otherwise(&self, text: &str) -> Vec<usize> {
        if !self.may_be_named() {
            return Vec::new();
        }
        let labels = self.label_columns();
        let of_months = self.of_months(text);
        let periods = || self.rows.iter().map(|row| row.first());
        let quarters: Vec<Option<u32>> = periods().map(|value| value.and_then(quarter_of)).collect();
        let years: Vec<Option<String>> = periods().map(|value| value.and_then(year_of)).collect();
        let is_called = |row: &usize| {
            let names = labels.iter().filter_map(|column| self.rows[*row].get(*column)?.as_str());
            let is_named = names.flat_map(other_forms).any(|name| tokens::find_word(text, &name).is_some());
            let is_of_quarter = quarters[*row].is_some_and(|quarter| {
                let is_only = quarters.iter().flatten().filter(|other| **other == quarter).count() == 1;
                let is_of_year = years[*row].as_ref().is_some_and(|year| tokens::find_word(text, year).is_some());
                (is_only || is_of_year) && says_quarter(text, quarter)
            });
            is_named || of_months.contains(row) || is_of_quarter
        };
        (0..self.rows.len()).filter(is_called).collect()
    }

    /// Returns the rows whose month stands in a text, where it is one of one year.
    fn of_months(&self, text: &str) -> Vec<usize> {
        let Some((_, months)) = self.times() else { return Vec::new() };
        let is_of_month = |row: &usize| {
            months[*row].is_some_and(|day| {
                let is_only = months.iter().flatten().all(|other| other.month() != day.month() || *other == day);
                // `May`, and no `may`.
                let is_named = has_word(text, &day.format("%B").to_string());
                let is_foreign =
                    || foreign_names_of_month(day.month()).iter().any(|name| tokens::find_word(text, name).is_some());
                is_only && (is_named || is_foreign())
            })
        };
        let found: Vec<usize> = (0..self.rows.len()).filter(is_of_month).collect();
        if found.is_empty() { self.of_months_of_days(text, months) } else { found }
    }

    /// Returns the days of the month that a text says, where the rows are of days of one year.
    fn of_months_of_days(&self, text: &str, days: &[Option<NaiveDate>]) -> Vec<usize> {
        let mut years: Vec<i32> = days.iter().flatten().map(|day| day.year()).collect();
        years.sort_unstable();
        years.dedup();
        let says_month = |day: &NaiveDate| has_word(text, &day.format("%B").to_string());
        match years.as_slice() {
            [_] => (0..days.len()).filter(|row| days[*row].as_ref().is_some_and(says_month)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the first column whose values are days or months.
    pub(super) fn column_of_times(&self) -> Option<usize> {
        self.times().map(|(column, _)| *column)
    }

    /// Returns that column, else the one of years.
    fn column_of_periods(&self) -> Option<usize> {
        self.column_of_times().or_else(|| self.column_of_years())
    }

    /// Returns the column of times, and the day or the first one of the month of each row.
    pub(super) fn times(&self) -> Option<&(usize, Vec<Option<NaiveDate>>)> {
        let find = || {
            (0..self.columns.len()).find_map(|column| {
                let mut times = Vec::with_capacity(self.rows.len());
                for row in &self.rows {
                    let value = row.get(column).filter(|value| !value.is_null());
                    times.push(match value {
                        Some(value) => Some(month_of(value)?),
                        None => None,
                    });
                }
                times.iter().any(Option::is_some).then_some((column, times))
            })
        };
        self.memo.times.get_or_init(find).as_ref()
    }

    /// Returns the day or the first one of the month that a row is of in that column.
    pub(super) fn time_of(&self, row: usize) -> Option<NaiveDate> {
        self.times()?.1.get(row).copied().flatten()
    }

    /// Returns the first column of years that several rows share.
    fn column_of_years(&self) -> Option<usize> {
        const YEARS: [&str; 5] = ["year", "yr", "jahr", "annee", "ano"];
        let is_called = |name: &str| name.to_lowercase().split('_').any(|part| YEARS.contains(&part));
        let is_of_year = |value: &Value| value.as_u64().is_some_and(|year| is_year(&year));
        let are_years = |column: &usize| self.rows.iter().all(|row| row.get(*column).is_some_and(is_of_year));
        (0..self.columns.len()).filter(|column| is_called(&self.columns[*column])).find(are_years)
    }

    /// Returns the rows of the year that a text says, where their names have one: of `full-year 2023` four quarters.
    fn of_year(&self, text: &str) -> Vec<usize> {
        if !self.may_be_named() {
            return Vec::new();
        }
        let column = self.column_of_periods().unwrap_or(0);
        let year = |row: &Vec<Value>| {
            let value = row.get(column)?;
            year_of(value).or_else(|| value.as_u64().filter(is_year).map(|year| year.to_string()))
        };
        let is_said = |row: &usize| year(&self.rows[*row]).is_some_and(|year| tokens::find_word(text, &year).is_some());
        (0..self.rows.len()).filter(is_said).collect()
    }

    /// Returns the rows whose time stands in a text, and those between where it says from which time to which.
    fn of_times(&self, text: &str) -> Vec<usize> {
        const TO: [&str; 5] = ["to", "through", "until", "till", "bis"];
        const NEAR: usize = 3;
        let named_in = |text: &str| -> Vec<usize> {
            let mut named: Vec<usize> = self.dated(text).into_iter().chain(self.of_months(text)).collect();
            if named.is_empty() {
                named = self.of_year(text);
            }
            named.sort_unstable();
            named.dedup();
            named
        };
        let range = TO.iter().find_map(|word| {
            let at = tokens::find_word(text, word)?;
            let behind: Vec<&str> = text[at + word.len()..].split_whitespace().take(NEAR).collect();
            let first = named_in(&tokens::last_words_as_written(&text[..at], NEAR));
            let last = named_in(&behind.join(" "));
            let (first, last) = (
                first.iter().filter_map(|row| self.time_of(*row)).min()?,
                last.iter().filter_map(|row| self.time_of(*row)).max()?,
            );
            (first < last).then_some((first, last))
        });
        match range {
            Some((first, last)) => {
                let is_within = |row: &usize| self.time_of(*row).is_some_and(|day| (first..=last).contains(&day));
                (0..self.rows.len()).filter(is_within).collect()
            }
            None => named_in(text),
        }
    }

    /// Returns the rows that a text names by each of the columns which name rows: those of `the Blue Line`, and of `March`.
    pub(super) fn named_by_each_key(&self, text: &str) -> Vec<Vec<usize>> {
        if !self.may_be_named() {
            return Vec::new();
        }
        self.memo.by_key.get(text, || self.keys_in(text))
    }

    fn keys_in(&self, text: &str) -> Vec<Vec<usize>> {
        let labels = self.label_columns();
        let has_times = self.column_of_periods().is_some_and(|column| !labels.contains(&column));
        let stands = |row: usize, column: usize| {
            let value = self.rows[row].get(column);
            value.is_some_and(|value| {
                let mut others = value.as_str().into_iter().flat_map(other_forms);
                stands_as_label(text, value) || others.any(|name| tokens::find_word(text, &name).is_some())
            })
        };
        let rows_of = |column: usize| (0..self.rows.len()).filter(|row| stands(*row, column)).collect::<Vec<usize>>();
        let of_labels = labels.iter().map(|column| rows_of(*column));
        let of_time = has_times.then(|| self.of_times(text));
        of_labels.chain(of_time).filter(|rows| !rows.is_empty()).collect()
    }

    /// Leaves those of the rows that a text names which every kind of name in it is of, where columns name the rows together:
    /// of `the Blue Line in March` one of four months of the line.
    fn of_every_key(&self, text: &str, found: Vec<usize>) -> Vec<usize> {
        // Who asks by one kind of name alone has found them.
        let named = if found.len() < 2 { Vec::new() } else { self.named_by_each_key(text) };
        if named.len() < 2 {
            return found;
        }
        let of_all: Vec<usize> =
            found.iter().copied().filter(|row| named.iter().all(|rows| rows.contains(row))).collect();
        if of_all.is_empty() { found } else { of_all }
    }

    /// Returns the rows whose day, month or hour stands in a text.
    fn dated(&self, text: &str) -> Vec<usize> {
        if !self.may_be_named() {
            return Vec::new();
        }
        let is_time = |token: &TextToken| match token.kind {
            TextTokenKind::Date(_) | TextTokenKind::YearDay { .. } | TextTokenKind::Hour(_) => true,
            TextTokenKind::Code(_) => token.text.contains(':'),
            _ => false,
        };
        let times: Vec<TextToken> = tokens_in(text).into_iter().filter(is_time).collect();
        if times.is_empty() {
            return self.of_weekdays(text);
        }
        let column = self.column_of_times().unwrap_or(0);
        let has_time = |row: &usize| {
            self.rows[*row].get(column).is_some_and(|value| {
                times.iter().any(|time| time.equals(value, ShareScale::Unknown) || self.is_hour(time, column, value))
            })
        };
        (0..self.rows.len()).filter(has_time).collect()
    }

    /// Returns the rows of the days of a week of which a text speaks as of several: `Saturdays`, `a typical Saturday`.
    fn of_weekdays(&self, text: &str) -> Vec<usize> {
        const OF_SEVERAL: [&str; 4] = ["typical", "average", "every", "each"];
        let is_said = |(one, several, _): &&(&str, &str, Weekday)| {
            let before = |at: usize| tokens::last_words(&text[..at], 1);
            tokens::find_word(text, several).is_some()
                || tokens::find_word(text, one).is_some_and(|at| OF_SEVERAL.contains(&before(at).as_str()))
        };
        let mut said: Vec<Weekday> = WEEKDAYS.iter().filter(is_said).map(|(_, _, day)| *day).collect();
        let is_weekend = |day: Weekday| matches!(day, Weekday::Sat | Weekday::Sun);
        let days = || WEEKDAYS.iter().map(|(_, _, day)| *day);
        if said.is_empty() {
            match (tokens::says(text, &["weekend", "weekends"]), tokens::says(text, &["weekday", "weekdays"])) {
                (true, false) => said.extend(days().filter(|day| is_weekend(*day))),
                (false, true) => said.extend(days().filter(|day| !is_weekend(*day))),
                _ => return Vec::new(),
            }
        }
        let column = self.column_of_times().unwrap_or(0);
        let day_at = |row: &usize| self.rows[*row].get(column).and_then(tokens::day_of);
        (0..self.rows.len()).filter(|row| day_at(row).is_some_and(|day| said.contains(&day.weekday()))).collect()
    }

    /// Returns the rows whose labels stand in a text, all of them where every row's does.
    pub(super) fn called(&self, text: &str) -> Vec<usize> {
        if self.rows.len() < 2 {
            return Vec::new();
        }
        let labels = self.label_columns();
        let has_label = |row: &Vec<Value>| {
            labels.iter().filter_map(|column| row.get(*column)).any(|value| stands_as_label(text, value))
        };
        let found: Vec<usize> =
            self.rows.iter().enumerate().filter(|(_, row)| has_label(row)).map(|(row, _)| row).collect();
        self.of_own_name(text, self.of_quarter(text, found))
    }

    /// Leaves those of several rows whose own name stands in a text, where a column names each row otherwise: of `Jonas, who
    /// sat Physics` the row of Jonas, not all of physics.
    fn of_own_name(&self, text: &str, rows: Vec<usize>) -> Vec<usize> {
        let labels = self.label_columns();
        let key = labels.iter().copied().find(|column| labels.len() > 1 && self.tells_apart(*column));
        let Some(key) = key.filter(|_| rows.len() > 1) else { return rows };
        let stands = |row: usize, column: usize| {
            let value = self.rows.get(row).and_then(|row| row.get(column));
            value.is_some_and(|value| stands_as_label(text, value))
        };
        let is_shared = |row: usize, column: usize| {
            let value = self.rows.get(row).and_then(|row| row.get(column));
            self.rows.iter().filter(|other| other.get(column) == value).count() > 1
        };
        let is_own = |row: &usize| labels.iter().any(|column| stands(*row, *column) && !is_shared(*row, *column));
        if !rows.iter().any(|row| stands(*row, key)) {
            return rows;
        }
        rows.into_iter().filter(is_own).collect()
    }

    /// Whether a column has another text in each row.
    pub(super) fn tells_apart(&self, column: usize) -> bool {
        let mut names: Vec<&str> = self.rows.iter().filter_map(|row| row.get(column)?.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.len() == self.rows.len()
    }

    /// Leaves those of several rows of a year whose quarter, a column of its own, stands in a text as well: of `Q1 2026`
    /// one.
    fn of_quarter(&self, text: &str, rows: Vec<usize>) -> Vec<usize> {
        let is_quarter = |name: &String| ["quarter", "qtr", "q"].contains(&name.to_lowercase().as_str());
        let Some(column) = self.columns.iter().position(is_quarter).filter(|_| rows.len() > 1) else { return rows };
        let quarter = |row: usize| number_of(self.rows.get(row)?.get(column)?);
        let is_said = |row: &usize| {
            let number = (1..=4_u32).find(|number| quarter(*row) == Some(f64::from(*number)));
            number.is_some_and(|number| says_quarter(text, number))
        };
        let said: Vec<usize> = rows.iter().copied().filter(is_said).collect();
        if said.is_empty() { rows } else { said }
    }
}

fn is_year(number: &u64) -> bool {
    u32::try_from(*number).is_ok_and(|number| dates::YEARS.contains(&number))
}

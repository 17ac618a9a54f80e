//! Times that a question asks for and that no row of the tables which it reads is of: a year before the first or after
//! the last, and what will be. Only where the tables have times, and all of them are read as such.

use arrow::array::ArrayRef;
use arrow::util::display::array_value_to_string;
use chrono::{NaiveDate, Utc};
use querent_catalog::{TableInfo, TableKind};

use super::{PROBED_TABLES, Turns};
use crate::coverage::Vocabulary;
use crate::sql_text::{quote_identifier, quoted_table};

/// Columns of times of one table that are looked at.
const MOST_COLUMNS: usize = 8;
/// Years that a number behind `in` is.
const YEARS: std::ops::Range<i32> = 1500..2200;
/// Names of columns that hold what is expected.
const EXPECTED: &str = "forecast forecasts prediction predictions predicted planned expected projected projection scheduled due target budget";
/// Words in the names of texts, and of whole numbers, that may be times in another form.
const TIME_TEXTS: &[&str] = &["date", "time", "year", "day", "month", "period", "season", "timestamp", "ts"];
const KEYS: &[&str] = &["_sk", "_id", "_key", "_fk"];
const TIME_NUMBERS: &[&str] = &["date", "time", "period", "season", "timestamp", "ts"];

/// A time that a question asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AskedTime {
    /// `In 1875`.
    Year(i32),
    /// `Will there be next year`, as the question says it.
    Future(String),
}

/// Returns the time that a question asks for, where it is one that rows may not reach.
fn asked_time(question: &str) -> Option<AskedTime> {
    let words: Vec<String> = question
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let year = |word: &String| word.parse::<i32>().ok().filter(|year| word.len() == 4 && YEARS.contains(year));
    if let Some(future) = future_in(&words) {
        return Some(AskedTime::Future(future));
    }
    let mut years = words.iter().filter_map(year);
    let only = years.next().filter(|_| years.next().is_none())?;
    let is_asked = words
        .windows(2)
        .any(|pair| ["in", "during", "for", "of"].contains(&pair[0].as_str()) && year(&pair[1]).is_some());
    is_asked.then_some(AskedTime::Year(only))
}

/// Returns the words by which a question asks for what will be: nothing that is computed of what was, such as who will
/// turn 50.
fn future_in(words: &[String]) -> Option<String> {
    const ASKED: [&str; 6] = ["forecast", "predict", "predicted", "prediction", "projected", "expect"];
    const BECOMES: [&str; 16] = [
        "be", "win", "grow", "spend", "sell", "earn", "happen", "increase", "decrease", "rise", "fall", "cost", "lose",
        "make", "buy", "need",
    ];
    let at = |wanted: &[&str]| words.iter().position(|word| wanted.contains(&word.as_str()));
    if let Some(found) = at(&ASKED) {
        return words.get(found).cloned();
    }
    let will = at(&["will"])?;
    let becomes = words.iter().skip(will + 1).find(|word| BECOMES.contains(&word.as_str()))?;
    Some(format!("will {becomes}"))
}

impl Turns<'_> {
    /// Returns the time that a question asks for and the rows do not reach, as the question says it and as a sentence.
    pub(super) async fn time_beyond(
        &self,
        question: &str,
        read: &[TableInfo],
        vocabulary: &Vocabulary,
    ) -> Option<(String, String)> {
        let asked = asked_time(question)?;
        if matches!(asked, AskedTime::Future(_)) && vocabulary.has_word(EXPECTED) {
            return None;
        }
        let mut spans: Vec<TimeSpan> = Vec::new();
        for table in read.iter().filter(|table| table.kind != TableKind::View).take(PROBED_TABLES) {
            spans.extend(self.spans_of(table).await?);
        }
        let today = Utc::now().date_naive();
        match asked {
            AskedTime::Year(year) => {
                let first = spans.first()?;
                let is_in = |span: &TimeSpan| (span.first_year()..=span.last_year()).contains(&year);
                let sentence =
                    format!("no row is of {year}; `{}` is from {} to {}", first.column, first.from, first.to);
                (!spans.iter().any(is_in)).then(|| (year.to_string(), sentence))
            }
            AskedTime::Future(words) => {
                let is_beyond = |span: &TimeSpan| span.last_day().is_none_or(|day| day > today);
                let sentence = format!("“{words}” asks for what will be, and no row is of the time after today");
                (!spans.iter().any(is_beyond)).then_some((words, sentence))
            }
        }
    }

    /// Returns the first and the last time of each column of times of a table, and of years; `None` where some column
    /// may hold times in another form, or could not be looked at in time.
    async fn spans_of(&self, table: &TableInfo) -> Option<Vec<TimeSpan>> {
        let name_has = |name: &str, words: &[&str]| {
            let lower = name.to_lowercase();
            // `date_sk` of a table of days tells rows apart.
            let is_key = KEYS.iter().any(|ending| lower.ends_with(ending));
            !is_key && lower.split(|c: char| !c.is_alphanumeric()).any(|part| words.contains(&part))
        };
        let is_time = |data_type: &arrow::datatypes::DataType| {
            use arrow::datatypes::DataType::{Date32, Date64, Timestamp};
            matches!(data_type, Date32 | Date64 | Timestamp(_, _))
        };
        let mut columns = Vec::new();
        for column in &table.columns {
            let is_year = column.data_type.is_integer() && name_has(&column.name, &["year", "yr"]);
            if is_time(&column.data_type) || is_year {
                columns.push(column.name.as_str());
                continue;
            }
            let others = if column.data_type.is_string() { TIME_TEXTS } else { TIME_NUMBERS };
            if !column.data_type.is_temporal() && name_has(&column.name, others) {
                return None;
            }
        }
        columns.truncate(MOST_COLUMNS);
        if columns.is_empty() {
            return Some(Vec::new());
        }
        let selected: Vec<String> = columns
            .iter()
            .map(|column| {
                let column = quote_identifier(column);
                format!("CAST(min({column}) AS VARCHAR), CAST(max({column}) AS VARCHAR)")
            })
            .collect();
        let sql = format!("SELECT {} FROM {}", selected.join(", "), quoted_table(&table.name));
        let row = self.first_row(&sql).await?;
        let text = |column: &ArrayRef| array_value_to_string(column.as_ref(), 0).ok().filter(|text| !text.is_empty());
        let found: Vec<Option<String>> = row.columns().iter().map(text).collect();
        let spans = columns.iter().zip(found.chunks(2)).filter_map(|(column, ends)| match ends {
            [Some(from), Some(to)] => {
                Some(TimeSpan { column: format!("{}.{column}", table.name), from: day(from), to: day(to) })
            }
            _ => None,
        });
        Some(spans.collect())
    }
}

/// The first and the last day, or year, of a column.
#[derive(Debug, Clone)]
struct TimeSpan {
    column: String,
    from: String,
    to: String,
}

impl TimeSpan {
    fn first_year(&self) -> i32 {
        year_of(&self.from).unwrap_or(i32::MIN)
    }

    fn last_year(&self) -> i32 {
        year_of(&self.to).unwrap_or(i32::MAX)
    }

    /// Returns the last day; of a year its last.
    fn last_day(&self) -> Option<NaiveDate> {
        NaiveDate::parse_from_str(&self.to, "%Y-%m-%d")
            .ok()
            .or_else(|| NaiveDate::from_ymd_opt(self.last_year(), 12, 31))
    }
}

fn year_of(text: &str) -> Option<i32> {
    text.split('-').next()?.parse().ok()
}

/// Returns a time as its day.
fn day(time: &str) -> String {
    time.get(..10).unwrap_or(time).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_and_what_will_be_are_asked_for() {
        let year = |question: &str| asked_time(question);
        assert_eq!(year("How many trips were made in 1875?"), Some(AskedTime::Year(1875)));
        assert_eq!(year("Which companies opened after 1990?"), None);
        assert_eq!(year("How many trips in 2013 and in 2014?"), None);
        assert_eq!(year("How many rooms in 12 hotels?"), None);
        assert_eq!(year("What will our revenue be in 2030?"), Some(AskedTime::Future("will be".to_owned())));
        assert_eq!(year("How many claims do you expect?"), Some(AskedTime::Future("expect".to_owned())));
        assert_eq!(year("Who will turn 50 next year?"), None);
        assert_eq!(year("When do the contracts end?"), None);
    }
}

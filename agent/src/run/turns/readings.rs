//! What a question can mean. Two readings are known where the queries of a vote return different rows, and where the query
//! returns something else over another table of the same name that the schema search finds about as likely. They are
//! said with their rows, numbered: a reply with the number is answered by that reading's query (`choice.rs`).

use serde_json::{Value, json};

use super::Turns;
use super::voting::row_set;
use crate::assessment::AnswerReading;
use crate::repair::{names_database, query_of_table, tables_read};
use crate::sql_text::one_line;
use crate::tools;

/// How a text asks which reading is meant; the readings follow, one a line.
pub(super) const WHICH: &str = "Which one?";
/// Between the row of a reading and its query.
pub(super) const BY: &str = ", by ";
/// Characters of a row and of a query.
const ROW_CHARS: usize = 200;
const QUERY_CHARS: usize = 2_000;
/// Ranks of the schema search between tables that are about as likely, and from which rank on none is.
const NEAR_RANKS: usize = 2;
const LIKELY_RANKS: usize = 5;
/// Queries of a run for which a twin is looked for.
const MAX_LOOKS: u32 = 2;

/// The same query over another table of the same name.
#[derive(Debug, Default)]
pub(super) struct TwinSearch {
    /// The query for which it was looked for last.
    query: Option<String>,
    looks: u32,
    /// The query's own reading, and the other one, where their rows differ.
    readings: Vec<AnswerReading>,
}

impl Turns<'_> {
    /// Runs the query that has just succeeded over another table of the same name, where the question leaves open which
    /// one is meant.
    pub(super) async fn look_for_twins(&mut self) {
        let is_open = self.context.open_question.is_some();
        let is_new = self.evidence.result.is_some() && self.sql_used.is_some() && self.twins.query != self.sql_used;
        if !is_open || !is_new || self.twins.looks >= MAX_LOOKS {
            return;
        }
        self.twins.query.clone_from(&self.sql_used);
        self.twins.looks += 1;
        self.twins.readings = self.twin_readings().await.unwrap_or_default();
        self.evidence.other_readings = u32::from(!self.twins.readings.is_empty());
    }

    async fn twin_readings(&self) -> Option<Vec<AnswerReading>> {
        let (sql, own_rows) = (self.sql_used.as_deref()?, self.evidence.result.as_ref()?.row_values());
        let database = self.assessment.sql_database.as_deref();
        let session = self.context.session.clone().in_database(database).await.ok()?;
        let at_hand = &self.context.at_hand;
        let read = tables_read(&session, at_hand, sql).await;
        let [own] = read.as_slice() else { return None };
        let rank = |name: &querent_catalog::TableName| at_hand.tables.iter().position(|table| table.name == *name);
        let own_rank = rank(&own.name)?;
        let question = self.context.open_question.as_deref()?;
        let is_twin = |table: &&querent_catalog::TableInfo| {
            table.name.database != own.name.database
                && table.name.table.eq_ignore_ascii_case(&own.name.table)
                && !names_database(question, &own.name)
                && rank(&table.name)
                    .is_some_and(|rank| rank.abs_diff(own_rank) <= NEAR_RANKS && rank.max(own_rank) < LIKELY_RANKS)
        };
        let twin = at_hand.tables.iter().find(is_twin)?;
        let twin_sql = query_of_table(sql, session.database(), &own.name, &twin.name)?;
        let arguments = json!({ "sql": twin_sql, "database": session.database() });
        let output = tools::call(&self.context, tools::RUN_SQL, &arguments).await.ok()?;
        let rows: Vec<Value> = output.json["rows"].as_array().cloned().unwrap_or_default();
        let differs = row_set(&json!({ "rows": own_rows })) != row_set(&output.json);
        if output.ran.is_some() || rows.is_empty() || !differs {
            return None;
        }
        let reading = |sql: &str, rows: &[Value], row_count: u64| AnswerReading {
            sql: sql.to_owned(),
            first_row: rows.first().cloned().unwrap_or_default(),
            row_count,
            votes: 1,
        };
        let own_count = u64::try_from(own_rows.len()).unwrap_or(u64::MAX);
        let twin_count = output.json["row_count"].as_u64().unwrap_or_default();
        // A reply runs it where bare names may resolve elsewhere.
        let own_sql = match database {
            Some(_) => query_of_table(sql, session.database(), &own.name, &own.name)?,
            None => sql.to_owned(),
        };
        Some(vec![reading(&own_sql, own_rows, own_count), reading(&twin_sql, &rows, twin_count)])
    }

    /// Returns what the question can mean, most votes first; nothing where there is one reading.
    pub(super) fn readings(&self) -> Vec<AnswerReading> {
        let groups = self.evidence.result.as_ref().map(|result| result.groups()).unwrap_or_default();
        if groups.len() < 2 {
            return self.twins.readings.clone();
        }
        let reading = |(candidate, votes): (&Value, u64)| AnswerReading {
            sql: candidate["sql"].as_str().unwrap_or_default().to_owned(),
            first_row: candidate["first_row"].clone(),
            row_count: candidate["row_count"].as_u64().unwrap_or_default(),
            votes,
        };
        groups.into_iter().map(reading).collect()
    }

    /// Returns the readings where none of them is much likelier than the others.
    pub(super) fn tied_readings(&self) -> Vec<AnswerReading> {
        let readings = self.readings();
        let (most, all) =
            (readings.iter().map(|one| one.votes).max(), readings.iter().map(|one| one.votes).sum::<u64>());
        match most {
            Some(most) if most * 2 <= all => readings,
            _ => Vec::new(),
        }
    }

    /// Returns what is said below an answer as it is sent. One that is held until it is complete is said elsewhere.
    pub(super) fn note_below(&mut self, said: &str) -> Option<String> {
        let is_sent = self.structured.is_none() && !self.holds_answers() && !said.is_empty();
        if is_sent { self.note_of(said) } else { None }
    }

    /// Returns what is said below an answer: what of the question is missing, else the other readings of it.
    pub(super) fn note_of(&mut self, said: &str) -> Option<String> {
        let note = self.gap_below(said).or_else(|| {
            let tied = self.tied_readings();
            (tied.len() > 1).then(|| {
                self.assessment.asks_back = true;
                let count = tied.len();
                format!("The question can be read in {count} ways that give different rows. {}", choices(&tied))
            })
        })?;
        let note = format!("\n\n{note}");
        self.note_said.clone_from(&note);
        Some(note)
    }
}

/// Asks which reading is meant: a line for each, with its first row and its query.
pub(super) fn choices(readings: &[AnswerReading]) -> String {
    let line = |(index, reading): (usize, &AnswerReading)| {
        let row = one_line(&reading.first_row.to_string(), ROW_CHARS);
        let more = match reading.row_count {
            0 | 1 => String::new(),
            count => format!(" and {} more rows", count - 1),
        };
        format!("{}. {row}{more}{BY}{}", index + 1, one_line(&reading.sql, QUERY_CHARS))
    };
    let lines: Vec<String> = readings.iter().enumerate().map(line).collect();
    format!("{WHICH}\n{}", lines.join("\n"))
}

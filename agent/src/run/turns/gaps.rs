//! What a question asks for and the data does not have. Once a query has run, the question is held against the databases
//! that it reads; what seems to be missing is looked for in the tables that it read: in their names and values, and by
//! meaning. Only what is found nowhere there is said to be missing. Questions about what is read cost one look at their
//! words. What no words tell is told by [`times`]: a time that the rows do not reach, and by [`use_of_columns`]: what the
//! query does with names that say nothing.

mod times;
mod use_of_columns;

use std::collections::BTreeMap;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use futures::StreamExt;
use querent_catalog::{PageRequest, SearchRequest, TableFilter, TableInfo, TableKind, TableName};

use super::Turns;
use crate::coverage::{
    AskedGap, GapKind, QuestionGaps, Vocabulary, are_english, can_tell, declines, foreign_gaps, gaps_of,
    unfiltered_words,
};
use crate::prompt::{Examples, TaughtKnowledge};
use crate::repair::tables_read;
use crate::request::RunRequest;
use crate::sql_text::{quote_identifier, quoted_table, quoted_texts};
use use_of_columns::{
    SaidByQuery, figure_called_otherwise, repeated_question, takes_all_rows, uses_opaque_column, what_is_said,
};

/// How long the values of one table are looked through, and how long all that is looked for may take.
const TABLE_TIMEOUT: Duration = Duration::from_secs(2);
const ALL_TIMEOUT: Duration = Duration::from_secs(4);
/// Tables and columns whose values are looked through.
const PROBED_TABLES: usize = 4;
const PROBED_COLUMNS: usize = 24;
/// Words and names that are looked for.
const MAX_LOOKED_FOR: usize = 6;
/// Columns that hold one kept value.
const MAX_VALUE_COLUMNS: usize = 100;
/// A value that is a name and no text, in characters; the shortest word that is a part of one, and the longest that is not
/// taken for the beginning of a word.
const SHORT_VALUE: usize = 40;
const SHORTEST_PART: usize = 3;
const SHORTEST_STEM: usize = 4;
/// Tables of a database whose names are looked at.
const DATABASE_TABLES: usize = 200;
/// Words of a KQL query that may name tables.
const MAX_KQL_NAMES: usize = 64;
/// Names that a missing word is compared with by meaning.
const COMPARED_NAMES: usize = 64;
/// From which cosine on two words mean the same. With all-MiniLM-L6-v2, of 62 words that were not there none had a name
/// so near (`flight attendants` and `airlines` 0.70), of 36 that were there in other words 7 had.
const SAME_MEANING: f32 = 0.72;
/// The same of a name of which the question says nothing else: `mayor` is near `city` because it is of one, and `lorries`
/// near `trucks`. Of 25 words that were there otherwise 9 had such a name, of 94 that were not 6.
const NEAR_MEANING: f32 = 0.52;
/// Tables and columns that are named as what is nearest.
const NAMED_TABLES: usize = 3;
const NAMED_COLUMNS: usize = 6;
/// Tables that are searched for a missing word.
const SEARCHED_TABLES: usize = 5;

/// What of the question seems to be missing, until it was looked for.
#[derive(Debug, Default)]
pub(super) struct GapSearch {
    /// Whether the question is judged.
    is_judged: bool,
    /// What the tables that the prompt shows speak of, by their databases.
    databases: BTreeMap<String, Vocabulary>,
    /// What people taught.
    taught: Vocabulary,
    /// The query for which it was looked for last.
    query: Option<String>,
    /// The tables that the queries before it have read: a question may ask for two things.
    read: Vec<TableInfo>,
    /// What the data lacks otherwise than by a name, as a sentence says it.
    otherwise: Option<String>,
    /// What is said below an answer.
    note: Option<String>,
    /// Tables elsewhere that speak of what the query does not read.
    elsewhere: Vec<TableName>,
}

impl GapSearch {
    /// Takes in the tables that the prompt shows, and what people taught.
    pub(super) fn begin(request: &RunRequest, tables: &[(TableInfo, Examples)], taught: &TaughtKnowledge) -> Self {
        // A question in a conversation is about what was said before, and one with the client's tools about those.
        let is_judged = request.history.is_empty() && request.resume.is_empty() && request.client_tools.is_empty();
        let mut search = Self { is_judged, ..Self::default() };
        for (table, examples) in tables.iter().filter(|_| is_judged) {
            let vocabulary = search.databases.entry(table.name.database.clone()).or_default();
            vocabulary.add_table(table);
            examples.values().flatten().for_each(|value| vocabulary.add_value(value));
        }
        for query in &taught.queries {
            search.taught.add_text(&query.question);
        }
        for metric in &taught.metrics {
            search.taught.add_name(&metric.name);
            search.taught.add_text(metric.description.as_deref().unwrap_or_default());
        }
        search
    }

    /// Returns what is to be said below an answer, once.
    pub(super) fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }
}

/// What the data lacks for a question.
#[derive(Debug, Default)]
struct FoundGaps {
    gaps: QuestionGaps,
    /// The tables in which it was looked for.
    searched: Vec<TableInfo>,
    /// The tables that were read.
    read: Vec<TableInfo>,
    /// What it lacks otherwise than by a name: as the question says it, and as a sentence.
    otherwise: Option<(String, String)>,
    /// Whether a table could not be looked through in time.
    is_cut: bool,
}

impl Turns<'_> {
    /// Looks for what seems to be missing, once a query has run, and adds what is missing to what the confidence rests on.
    pub(super) async fn look_for_gaps(&mut self) {
        if !self.gaps.is_judged {
            return;
        }
        let query = self.sql_used.clone().or_else(|| self.kql_used.clone());
        if self.evidence.result.is_none() || query.is_none() || self.gaps.query == query {
            return;
        }
        self.gaps.query.clone_from(&query);
        let query = query.unwrap_or_default();
        let found = tokio::time::timeout(ALL_TIMEOUT, self.gaps_of_query(&query)).await;
        let FoundGaps { gaps, searched, read, otherwise, is_cut } = match found {
            Ok(found) => found,
            Err(_) => FoundGaps { is_cut: true, ..FoundGaps::default() },
        };
        self.evidence.is_search_cut = is_cut;
        if !read.is_empty() {
            self.gaps.read = read;
        }
        // What is missing is said in any case: where else it may be is a search by meaning, which may take long.
        let elsewhere = tokio::time::timeout(TABLE_TIMEOUT, self.tables_elsewhere(&gaps, &searched)).await;
        self.evidence.missing = gaps.asked.iter().map(|gap| gap.phrase.clone()).collect();
        self.gaps.otherwise = None;
        if let Some((phrase, sentence)) = otherwise.filter(|_| gaps.asked.is_empty()) {
            self.evidence.missing = vec![phrase];
            self.gaps.otherwise = Some(sentence);
        }
        // A name that the model has spelled otherwise finds something, by a text in the query.
        let found_nothing = self.evidence.result.as_ref().is_some_and(|result| result.found_nothing());
        let names_matter = found_nothing || self.texts_of(&query).is_empty();
        self.evidence.unknown_names = if names_matter { gaps.names } else { Vec::new() };
        self.evidence.unexplained = gaps.others;
        self.gaps.elsewhere = elsewhere.unwrap_or_default();
        self.gaps.note = self.note_of_gaps(&query).await;
    }

    /// Returns what a query and the tables that it reads leave unexplained.
    async fn gaps_of_query(&self, query: &str) -> FoundGaps {
        let question = self.task.request.question();
        let at_hand = &self.context.at_hand;
        let mut read = match self.sql_used {
            Some(_) => {
                let database = self.assessment.sql_database.as_deref();
                match self.context.session.clone().in_database(database).await {
                    Ok(session) => tables_read(&session, at_hand, query).await,
                    Err(_) => Vec::new(),
                }
            }
            None => self.tables_of_kql(query).await,
        };
        // A query over no table of the catalog is about the server, or computes.
        if read.is_empty() {
            return Default::default();
        }
        let own = read.len();
        for earlier in &self.gaps.read {
            if !read.iter().any(|table| table.name == earlier.name) {
                read.push(earlier.clone());
            }
        }
        let is_read = |database: &str| read.iter().any(|table| table.name.database == database);
        let mut vocabulary = self.gaps.taught.clone();
        let databases = self.gaps.databases.iter().filter(|(database, _)| is_read(database));
        databases.for_each(|(_, known)| vocabulary.add_all(known));
        read.iter().for_each(|table| vocabulary.add_table(table));
        if self.evidence.result.as_ref().is_some_and(|result| !result.found_nothing()) {
            self.texts_of(query).iter().for_each(|text| vocabulary.add_literal(text));
        }
        let is_unfiltered = self.sql_used.is_some() && takes_all_rows(query);
        let said = if self.sql_used.is_some() { what_is_said(query) } else { SaidByQuery::default() };
        let judged = |vocabulary: &Vocabulary| {
            let mut gaps = gaps_of(&question, vocabulary);
            gaps.asked.extend(foreign_gaps(&question, vocabulary));
            // A heart rate that no query computes is nowhere; of KQL nobody knows what it computes.
            if self.sql_used.is_some() {
                gaps.asked.append(&mut gaps.computed);
            }
            gaps.asked.retain(|gap| !said.may_be(gap, &question));
            if gaps.asked.is_empty() && is_unfiltered {
                gaps.asked.extend(unfiltered_words(&question, vocabulary));
            }
            gaps
        };
        let mut gaps = judged(&vocabulary);
        let mut whole = Vec::new();
        if !gaps.asked.is_empty() {
            whole = self.add_databases(&read, &mut vocabulary).await;
            gaps = judged(&vocabulary);
        }
        let otherwise = match &gaps.judgement {
            Some(asked) => Some((asked.clone(), format!("“{asked}” asks for a judgement, and the data has facts"))),
            None => self.time_beyond(&question, &read[..own], &vocabulary).await.filter(|(asked, _)| {
                let found = self.evidence.result.as_ref().is_some_and(|result| !result.found_nothing());
                !(found && has_number(query, asked))
            }),
        };
        let otherwise = otherwise
            .or_else(|| figure_called_otherwise(query, &question, &read[..own]))
            .or_else(|| repeated_question(query, &question));
        if !gaps.is_any() {
            return FoundGaps { gaps, searched: Vec::new(), read, otherwise, is_cut: false };
        }
        let mut tables = read.clone();
        let others = at_hand.tables.iter().filter(|one| is_read(&one.name.database));
        tables.extend(others.filter(|one| !read.iter().any(|known| known.name == one.name)).cloned());
        let is_cut = !self.add_values(&gaps, &tables, &mut vocabulary).await;
        gaps = judged(&vocabulary);
        self.leave_out_named_otherwise(&mut gaps.asked, &question, &tables).await;
        // A query that asks for `avg(ibu)` may well be about bitterness: nobody can tell from such a name, and seldom from one
        // of another language.
        // One table has too few names to tell their language by: those of its database tell more.
        let named = if whole.len() > tables.len() { &whole } else { &tables };
        if !gaps.asked.is_empty() {
            let (all, are_english) = (gaps.asked.len(), are_english(named));
            let is_opaque = uses_opaque_column(query, &question, &read[..own], &tables);
            // A query of all rows has no words, of whatever language, for what is said of them.
            let is_left_out = |gap: &AskedGap| is_unfiltered && gap.kind == GapKind::Said;
            let is_told = |gap: &AskedGap| is_left_out(gap) || can_tell(gap, &question, are_english, &vocabulary);
            gaps.asked.retain(|gap| !is_opaque && is_told(gap));
            gaps.others += u32::try_from(all - gaps.asked.len()).unwrap_or(u32::MAX);
        }
        FoundGaps { gaps, searched: tables, read, otherwise, is_cut }
    }

    /// Returns the tables that would explain what is missing, beside those in which it was looked for.
    async fn tables_elsewhere(&self, gaps: &QuestionGaps, searched: &[TableInfo]) -> Vec<TableName> {
        let mut elsewhere = Vec::new();
        for gap in &gaps.asked {
            elsewhere.extend(self.tables_about(gap, searched).await);
        }
        elsewhere
    }

    /// Returns the tables that words of a KQL query name.
    async fn tables_of_kql(&self, query: &str) -> Vec<TableInfo> {
        let database = self.context.session.database();
        let mut names: Vec<TableName> = Vec::new();
        for word in query.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
            let name = TableName::new(database, word);
            if !names.contains(&name) && names.len() < MAX_KQL_NAMES {
                names.push(name);
            }
        }
        let tables = self.task.catalog.tables();
        let resolved = tables.resolve(self.context.session.principal(), &names).await.unwrap_or_default();
        resolved.into_iter().flatten().map(|table| table.info).collect()
    }

    /// Adds the names of the other tables of the databases that are read, which the prompt may not show. Returns all tables
    /// of these databases, as far as they are looked at.
    async fn add_databases(&self, read: &[TableInfo], vocabulary: &mut Vocabulary) -> Vec<TableInfo> {
        let mut databases: Vec<&str> = read.iter().map(|table| table.name.database.as_str()).collect();
        databases.sort_unstable();
        databases.dedup();
        let who = self.context.session.principal();
        let mut found = Vec::new();
        for database in databases.into_iter().take(PROBED_TABLES) {
            let filter = TableFilter { database: Some(database.to_owned()), ..TableFilter::default() };
            let tables = self.task.catalog.tables();
            let page = tables.list_with_columns(who, &filter, PageRequest::first(DATABASE_TABLES)).await;
            found.extend(page.map(|page| page.items).unwrap_or_default());
        }
        found.iter().for_each(|table| vocabulary.add_table(table));
        found
    }

    /// Adds the words of a question that values of tables have: those that the catalog keeps, and what a bounded look at
    /// the tables finds. Returns whether all of these could be looked through in time; one that could not is taken to have
    /// all words.
    async fn add_values(&self, gaps: &QuestionGaps, tables: &[TableInfo], vocabulary: &mut Vocabulary) -> bool {
        let who = self.context.session.principal();
        let things: Vec<&str> = gaps.asked.iter().flat_map(|gap| &gap.words).map(String::as_str).collect();
        let names = gaps.names.iter().flat_map(|name| name.split(' ')).filter(|word| word.chars().count() > 2);
        let wanted: Vec<(&str, bool)> = things
            .iter()
            .map(|word| (*word, false))
            .chain(names.map(|word| (word, true)))
            .take(MAX_LOOKED_FOR)
            .collect();
        let literals: Vec<String> = wanted.iter().flat_map(|(word, _)| [(*word).to_owned(), singular(word)]).collect();
        let kept = self.task.catalog.values().find(who, None, &literals, MAX_VALUE_COLUMNS).await;
        for hit in kept.map(|(hits, _)| hits).unwrap_or_default() {
            if !hit.is_like && tables.iter().any(|table| table.name == hit.table) {
                vocabulary.add_value(&hit.value);
            }
        }
        let probed = tables.iter().filter(|table| table.kind != TableKind::View).take(PROBED_TABLES);
        let looks = probed.map(|table| self.words_in_values(table, &wanted));
        let mut is_whole = true;
        for held in futures::future::join_all(looks).await {
            is_whole &= held.is_some();
            let held = held.unwrap_or_else(|| vec![true; wanted.len()]);
            let words = wanted.iter().zip(held).filter(|(_, is_held)| *is_held);
            words.for_each(|((word, _), _)| vocabulary.add_value(word));
        }
        is_whole
    }

    /// Returns which words a text column of a table has: a name anywhere in a value, another word as a whole value. `None` of
    /// a table that cannot be looked through in time.
    async fn words_in_values(&self, table: &TableInfo, wanted: &[(&str, bool)]) -> Option<Vec<bool>> {
        let columns: Vec<String> = table
            .columns
            .iter()
            .filter(|column| column.data_type.is_string())
            .map(|column| quote_identifier(&column.name))
            .take(PROBED_COLUMNS)
            .collect();
        if columns.is_empty() || wanted.is_empty() {
            return Some(vec![false; wanted.len()]);
        }
        let condition = |(word, is_name): &(&str, bool)| {
            let (plain, one) = (escaped(word), escaped(&singular(word)));
            let test = |column: &String| match is_name {
                true => format!("{column} ILIKE '%{plain}%'"),
                // `crude oil` is oil, and `Symphony No 5` one of the symphonies; who plays the violin is a violinist.
                false if one.len() >= SHORTEST_PART => format!(
                    "lower({column}) IN ('{plain}', '{one}') OR (length({column}) <= {SHORT_VALUE} AND \
                     (concat(' ', lower({column}), ' ') LIKE '% {one} %' OR (length({column}) > {SHORTEST_STEM} AND \
                     starts_with('{one}', lower({column})))))"
                ),
                false => format!("lower({column}) IN ('{plain}', '{one}')"),
            };
            let tests: Vec<String> = columns.iter().map(test).collect();
            format!("bool_or({})", tests.join(" OR "))
        };
        let conditions: Vec<String> = wanted.iter().map(condition).collect();
        let sql = format!("SELECT {} FROM {}", conditions.join(", "), quoted_table(&table.name));
        let holds = |column: &ArrayRef| {
            let values = column.as_boolean_opt()?;
            Some(values.iter().next().flatten() == Some(true))
        };
        self.first_row(&sql).await?.columns().iter().map(holds).collect()
    }

    /// Returns the row of a look at a table; `None` where it fails, or is not there in time.
    async fn first_row(&self, sql: &str) -> Option<RecordBatch> {
        let look = async { self.context.session.sql(sql).await.ok()?.next().await?.ok() };
        tokio::time::timeout(TABLE_TIMEOUT, look).await.ok().flatten()
    }

    /// Takes out what a name of the tables means: one that is very near, or one that is near and of which the question
    /// says nothing else. All are compared at once: a busy machine computes some seventy vectors a second, and what is not
    /// computed in time is taken to be missing.
    async fn leave_out_named_otherwise(&self, gaps: &mut Vec<AskedGap>, question: &str, tables: &[TableInfo]) {
        if gaps.is_empty() {
            return;
        }
        let mut names: Vec<String> = Vec::new();
        for table in tables {
            let own = std::iter::once(&table.name.table).chain(table.columns.iter().map(|column| &column.name));
            for name in own.map(|name| name.replace('_', " ").to_lowercase()) {
                if !names.contains(&name) && names.len() < COMPARED_NAMES {
                    names.push(name);
                }
            }
        }
        let texts: Vec<String> = gaps.iter().map(|gap| gap.phrase.to_lowercase()).collect();
        let search = self.task.catalog.search();
        let near = tokio::time::timeout(TABLE_TIMEOUT, search.nearness(&texts, &names)).await.ok().flatten();
        let Some(near) = near else { return };
        let is_named = |gap: &AskedGap, cosines: &[f32]| {
            let unsaid = |name: &str| !is_said(name, question, gap) && !is_of_any_table(name);
            names
                .iter()
                .zip(cosines)
                .any(|(name, cosine)| *cosine >= SAME_MEANING || (*cosine >= NEAR_MEANING && unsaid(name)))
        };
        let all = std::mem::take(gaps);
        gaps.extend(
            all.into_iter().zip(&near).filter(|(gap, cosines)| !is_named(gap, cosines.as_slice())).map(|(gap, _)| gap),
        );
    }

    /// Returns tables that speak of what is missing, beside those that are known.
    async fn tables_about(&self, gap: &AskedGap, known: &[TableInfo]) -> Vec<TableName> {
        let request = SearchRequest {
            query: gap.words.join(" "),
            database: self.task.request.database.clone(),
            limit: SEARCHED_TABLES,
        };
        let who = self.context.session.principal();
        let found = self.task.catalog.search().tables_with_columns(who, &request).await.unwrap_or_default();
        let speaks = |table: &TableInfo| {
            let mut vocabulary = Vocabulary::default();
            vocabulary.add_table(table);
            gap.words.iter().all(|word| vocabulary.names(word))
        };
        let found = self.context.at_hand.tables.iter().cloned().chain(found.into_iter().map(|(_, table)| table));
        let others = found.filter(|table| !known.iter().any(|one| one.name == table.name) && speaks(table));
        let mut names: Vec<TableName> = others.map(|table| table.name).collect();
        names.sort();
        names.dedup();
        names.truncate(NAMED_TABLES);
        names
    }

    /// Says what is missing and what is nearest; `None` where there is nothing to say.
    async fn note_of_gaps(&self, query: &str) -> Option<String> {
        let evidence = &self.evidence;
        let listed = |names: &[String]| names.iter().map(|name| format!("“{name}”")).collect::<Vec<_>>().join(" or ");
        let what = match (evidence.missing.is_empty(), !evidence.unknown_names.is_empty()) {
            (false, _) if self.gaps.otherwise.is_some() => self.gaps.otherwise.clone().unwrap_or_default(),
            (false, _) => format!("no table, column or value here is called {}", listed(&evidence.missing)),
            (true, true) => format!("no value here is called {}", listed(&evidence.unknown_names)),
            (true, false) => return None,
        };
        let mut note = format!("The data that was queried cannot answer this as it is asked: {what}.");
        if !self.gaps.elsewhere.is_empty() {
            let names: Vec<String> = self.gaps.elsewhere.iter().map(|name| format!("`{name}`")).collect();
            note.push_str(&format!(" {} may be meant.", names.join(" or ")));
        }
        let session = match self.context.session.clone().in_database(self.assessment.sql_database.as_deref()).await {
            Ok(session) => session,
            Err(_) => return Some(note),
        };
        let mut nearest = match self.sql_used {
            Some(_) => tables_read(&session, &self.context.at_hand, query).await,
            None => self.tables_of_kql(query).await,
        };
        nearest.truncate(NAMED_TABLES);
        if !nearest.is_empty() {
            let names: Vec<String> = nearest.iter().map(table_in_words).collect();
            note.push_str(&format!(" What is there: {}.", names.join("; ")));
        }
        Some(note)
    }

    /// Returns the texts that a query compares with.
    fn texts_of(&self, query: &str) -> Vec<String> {
        match self.sql_used {
            Some(_) => quoted_texts(query, &['\'']),
            None => quoted_texts(query, &['\'', '"']),
        }
    }

    /// Returns what is said below an answer about what is missing, unless the answer says so itself.
    pub(super) fn gap_below(&mut self, said: &str) -> Option<String> {
        self.gaps.take_note().filter(|_| !declines(said))
    }
}

/// Whether a question says a name by other words than those that are missing.
fn is_said(name: &str, question: &str, gap: &AskedGap) -> bool {
    let mut of_name = Vocabulary::default();
    of_name.add_name(name);
    let words = question.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let mut others =
        words.filter(|word| word.chars().count() > 2 && !gap.phrase.to_lowercase().contains(word.as_str()));
    others.any(|word| of_name.names(&word))
}

/// Whether a name goes with any table.
fn is_of_any_table(name: &str) -> bool {
    const WORDS: [&str; 11] =
        ["id", "code", "no", "count", "name", "details", "other", "date", "time", "type", "number"];
    name.split(' ').all(|word| WORDS.contains(&word))
}

fn table_in_words(table: &TableInfo) -> String {
    let columns: Vec<&str> = table.columns.iter().take(NAMED_COLUMNS).map(|column| column.name.as_str()).collect();
    let more = if table.columns.len() > NAMED_COLUMNS { ", ..." } else { "" };
    format!("`{}` ({}{more})", table.name, columns.join(", "))
}

fn singular(word: &str) -> String {
    crate::repair::folded_words(word).pop().unwrap_or_else(|| word.to_owned())
}

/// Returns a word as it stands in a quoted text: words have no special characters but quotes.
fn escaped(word: &str) -> String {
    word.replace('\'', "''").replace(['%', '_', '\\'], "")
}

/// Whether a number stands in a query outside of its texts: what is found by `salary = 2000` is about no year.
fn has_number(query: &str, number: &str) -> bool {
    let outside = query.split('\'').step_by(2);
    outside.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_')).any(|word| word == number)
}

//! What may stand at a place of a statement: databases, tables, columns, functions and keywords, by what stands before it.
//!
//! [`completions`] decides among names that are at hand, as a shell keeps them; [`Session::complete`] looks up those that
//! matter at one place, so that its cost does not grow with the catalog.

mod made_names;
mod place;
mod words;

use std::collections::BTreeMap;

use querent_catalog::{CATALOG_NAME, PageRequest, TableFilter, TableName};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::identifiers::is_reserved_word;
use crate::session::Session;
use crate::sql::show_functions;
use crate::tables::system::{self, is_system_database};
use crate::type_names::sql_name;
use made_names::made_names;
use place::{PlaceOfWord, is_table_expected};
use words::{StatementWord, WordKind, words_of};

/// Suggestions at most.
const MOST: usize = 200;
/// Names of a statement that are looked up as tables.
const MAX_NAMED: usize = 64;
const SQL_KEYWORDS: &str = "SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN LEFT RIGHT FULL INNER OUTER CROSS \
    ON USING AS AND OR NOT IN IS NULL LIKE ILIKE BETWEEN EXISTS CASE WHEN THEN ELSE END DISTINCT UNION ALL INTERSECT EXCEPT \
    WITH RECURSIVE VALUES OVER PARTITION ROWS RANGE FILTER QUALIFY CAST INTERVAL DESC ASC NULLS FIRST LAST CREATE REPLACE \
    TABLE VIEW SCHEMA DATABASE TEMPORARY EXTERNAL STORED LOCATION OPTIONS INSERT INTO OVERWRITE DROP CASCADE IF EXPLAIN \
    ANALYZE DESCRIBE SHOW TABLES DATABASES COLUMNS COMMENT PRIMARY KEY UNIQUE REFERENCES TRUE FALSE";
const KQL_KEYWORDS: &str = "where project extend summarize by sort order top take limit count distinct join union render \
    let print range mv-expand parse project-away project-rename project-reorder make-series datatable evaluate lookup \
    search find sample getschema serialize as on kind ago bin now has contains startswith endswith between and or not in";
const KQL_AGGREGATES: &str = "any arg_max arg_min avg avgif buildschema count countif dcount dcountif hll make_bag make_list \
    make_set max maxif min minif percentile percentiles stdev stdevif sum sumif take_any tdigest variance";
/// The operators of KQL, those that are used most first.
const KQL_OPERATORS: &str = "where summarize extend project take top sort count distinct join union render limit order \
    project-away project-keep project-rename project-reorder mv-expand mv-apply make-series parse parse-kv parse-where \
    lookup sample sample-distinct search serialize getschema evaluate as scan partition reduce top-nested top-hitters \
    make-graph graph-match graph-shortest-paths graph-to-table facet fork consume invoke";
const JOIN_KINDS: &str =
    "inner innerunique leftouter rightouter fullouter leftsemi rightsemi leftanti rightanti anti semi";
const CHART_KINDS: &str =
    "timechart columnchart barchart linechart piechart areachart stackedareachart scatterchart table card";
/// What SQL's statements begin with, and what may follow a relation or an expression.
const STATEMENTS: &str = "SELECT FROM WITH SHOW DESCRIBE EXPLAIN CREATE INSERT UPDATE DELETE COPY";
const CLAUSES: &str = "WHERE GROUP ORDER LIMIT JOIN LEFT AS HAVING UNION AND OR";
/// What stands before an expression.
const BEFORE_VALUES: &str = "SELECT DISTINCT WHERE AND OR NOT ON BY HAVING QUALIFY WHEN THEN ELSE CASE SET RETURNING \
    extend project summarize away keep rename reorder expand";

/// The language of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompletionLanguage {
    /// SQL.
    #[default]
    Sql,
    /// KQL.
    Kql,
    /// Not known yet: what both have.
    Either,
}

/// What a suggestion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SuggestionKind {
    /// A database.
    Database,
    /// A table or a view.
    Table,
    /// A column.
    Column,
    /// A function, with its opening bracket.
    Function,
    /// A word of the language.
    Keyword,
}

/// What may stand at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// The text, in quotes where it must be.
    pub text: String,
    /// What it is.
    pub kind: SuggestionKind,
    /// A column's type, or the table or database that a name is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What may stand in the place of the word that a text ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Where the word begins, in bytes.
    pub start: usize,
    /// What it may become, the likeliest first.
    pub suggestions: Vec<Suggestion>,
    /// Whether there were more.
    pub truncated: bool,
}

/// The names of a catalog, as far as they are offered.
#[derive(Debug, Default)]
pub struct KnownNames {
    /// The databases.
    pub databases: Vec<String>,
    /// The columns of each table, with their types where they are known.
    pub tables: BTreeMap<String, Vec<(String, Option<String>)>>,
    /// The functions of SQL.
    pub functions: Vec<String>,
}

/// Returns what may stand at the end of `before`, the beginning of `statement`. In texts and comments that is nothing.
pub fn completions(
    before: &str,
    statement: &str,
    language: CompletionLanguage,
    names: &KnownNames,
    limit: usize,
) -> Completion {
    let limit = limit.clamp(1, MOST);
    let Some(place) = PlaceOfWord::at_end(before, language) else {
        return Completion { start: before.len(), suggestions: Vec::new(), truncated: false };
    };
    let after = statement.get(before.len()..).unwrap_or_default();
    let finish = |suggestions: Vec<Suggestion>| place.matching(suggestions, after, language, limit);
    let all = words_of(statement, language).words;
    let earlier = words_of(before.get(..place.start).unwrap_or_default(), language).words;
    let made = made_names(&all, language);
    let is_kql = language == CompletionLanguage::Kql;

    let tables = || names.tables.keys().map(|name| suggested(name, SuggestionKind::Table));
    let databases = || names.databases.iter().map(|name| suggested(name, SuggestionKind::Database));
    let made_tables = || made.tables.iter().map(|(name, _)| suggested(name, SuggestionKind::Table));
    let near = || -> Vec<Suggestion> {
        // A table that the statement names, whatever else begins with its name.
        let is_named = |table: &str| all.iter().any(|word| word.is_name() && word.text.eq_ignore_ascii_case(table));
        let of_tables = names.tables.iter().filter(|(table, _)| is_named(table)).flat_map(columns_of);
        let of_queries = made.tables.iter().flat_map(|(_, columns)| columns);
        let made = made.columns.iter().chain(of_queries).map(|name| suggested(name, SuggestionKind::Column));
        of_tables.chain(made).collect()
    };

    if let Some(owner) = &place.owner {
        let of_query =
            made.tables.iter().find(|(name, columns)| name.eq_ignore_ascii_case(owner) && !columns.is_empty());
        if let Some((_, columns)) = of_query {
            return finish(columns.iter().map(|name| suggested(name, SuggestionKind::Column)).collect());
        }
        if let Some(table) = table_of(owner, &all, names) {
            return finish(names.tables.get_key_value(table).map(columns_of).unwrap_or_default());
        }
        if names.databases.iter().any(|database| database.eq_ignore_ascii_case(owner)) {
            return finish(tables().collect());
        }
        return match owner.as_str() {
            "left" | "right" if is_kql => finish(near()),
            owner if owner.eq_ignore_ascii_case(CATALOG_NAME) => finish(databases().collect()),
            _ => finish(Vec::new()),
        };
    }
    if is_table_expected(&earlier, language) {
        return finish(made_tables().chain(tables()).chain(databases()).collect());
    }
    let last = earlier.last();
    if last.is_some_and(|last| last.is("USE")) && !is_kql {
        return finish(databases().collect());
    }
    if is_kql && last.is_some_and(|last| last.is_sign("|")) {
        return finish(keywords(KQL_OPERATORS, true).collect());
    }
    let option = earlier.len().checked_sub(2).and_then(|at| earlier.get(at));
    if is_kql && last.is_some_and(|last| last.is_sign("=")) && option.is_some_and(|option| option.is("kind")) {
        return finish(keywords(JOIN_KINDS, true).collect());
    }
    if is_kql && last.is_some_and(|last| last.is("render")) {
        return finish(keywords(CHART_KINDS, true).collect());
    }
    let is_upper = place.part.chars().next().map_or_else(|| writes_upper(&earlier), char::is_uppercase);
    if place.quote.is_some() {
        let others = tables().chain(names.tables.iter().flat_map(columns_of));
        return finish(near().into_iter().chain(others).collect());
    }
    if place.part.is_empty() {
        return finish(match language {
            // The shell asks here whenever somebody presses Tab.
            CompletionLanguage::Either => Vec::new(),
            CompletionLanguage::Sql if earlier.is_empty() => keywords(STATEMENTS, is_upper).collect(),
            _ if expects_value(last) => near(),
            CompletionLanguage::Sql if earlier.iter().any(|word| word.is("FROM")) => {
                keywords(CLAUSES, is_upper).collect()
            }
            CompletionLanguage::Sql | CompletionLanguage::Kql => Vec::new(),
        });
    }

    // Columns of the tables that the statement names come first.
    let near = near();
    let is_named = !near.is_empty();
    let function = |name: &str| Suggestion { text: format!("{name}("), kind: SuggestionKind::Function, detail: None };
    let mut found: Vec<Suggestion> = near.into_iter().chain(made_tables()).chain(tables()).collect();
    if !is_kql {
        found.extend(keywords(SQL_KEYWORDS, is_upper));
    }
    if language != CompletionLanguage::Sql {
        found.extend(keywords(KQL_KEYWORDS, true));
    }
    // Of a statement that names no table yet any column may be meant, before any function.
    if !is_named {
        found.extend(names.tables.iter().flat_map(columns_of));
    }
    if is_kql {
        found.extend(KQL_AGGREGATES.split_whitespace().chain(querent_kql::function_names()).map(function));
    } else {
        found.extend(names.functions.iter().map(|name| function(name)));
    }
    found.extend(names.tables.iter().flat_map(columns_of));
    found.extend(databases());
    finish(found)
}

fn suggested(name: &str, kind: SuggestionKind) -> Suggestion {
    Suggestion { text: name.to_owned(), kind, detail: None }
}

/// A table's columns, with their types, or the table where those are not known.
fn columns_of((table, columns): (&String, &Vec<(String, Option<String>)>)) -> Vec<Suggestion> {
    let suggestion = |(name, data_type): &(String, Option<String>)| Suggestion {
        text: name.clone(),
        kind: SuggestionKind::Column,
        detail: Some(data_type.clone().unwrap_or_else(|| table.clone())),
    };
    columns.iter().map(suggestion).collect()
}

/// The words of a list, as they are or in small letters.
fn keywords(list: &'static str, is_as_written: bool) -> impl Iterator<Item = Suggestion> {
    let cased = move |word: &str| if is_as_written { word.to_owned() } else { word.to_lowercase() };
    list.split_whitespace().map(move |word| suggested(&cased(word), SuggestionKind::Keyword))
}

/// Whether the words of the language stand in capital letters, as far as there are any.
fn writes_upper(earlier: &[StatementWord]) -> bool {
    let is_lower = |word: &StatementWord| {
        word.kind == WordKind::Name && is_reserved_word(&word.text) && word.text.chars().all(char::is_lowercase)
    };
    !earlier.iter().any(is_lower)
}

/// Whether an expression begins after a word.
fn expects_value(last: Option<&StatementWord>) -> bool {
    last.is_some_and(|last| {
        let is_before = BEFORE_VALUES.split_whitespace().any(|word| last.is(word));
        is_before || ["(", ",", "=", "<", ">", "+", "-", "/", "%", "~"].iter().any(|sign| last.is_sign(sign))
    })
}

/// Returns the table of that name or alias: `flights f`, `flights AS f`.
fn table_of<'a>(owner: &str, words: &[StatementWord], names: &'a KnownNames) -> Option<&'a str> {
    let table = |name: &str| names.tables.keys().find(|table| table.eq_ignore_ascii_case(name)).map(String::as_str);
    if let Some(table) = table(owner) {
        return Some(table);
    }
    let is_table_name = |word: &&StatementWord| {
        word.kind == WordKind::QuotedName || (word.kind == WordKind::Name && !is_reserved_word(&word.text))
    };
    let mut aliases =
        words.iter().enumerate().filter(|(_, word)| word.is_name() && word.text.eq_ignore_ascii_case(owner));
    aliases.find_map(|(at, _)| {
        let before = words.get(..at).unwrap_or_default().iter().rev().find(|word| !word.is("AS"));
        before.filter(is_table_name).and_then(|name| table(&name.text))
    })
}

impl Session {
    /// Returns what may stand at the byte `at` of a statement, at most `limit` suggestions, of what the caller may see.
    pub async fn complete(
        &self,
        statement: &str,
        at: usize,
        language: CompletionLanguage,
        limit: usize,
    ) -> Result<Completion> {
        let before = statement.get(..at).unwrap_or(statement);
        let names = self.names_at(before, statement, language, limit.clamp(1, MOST)).await?;
        Ok(completions(before, statement, language, &names, limit))
    }

    /// Looks up the tables that a statement names, and the tables and databases that begin with its last word.
    async fn names_at(
        &self,
        before: &str,
        statement: &str,
        language: CompletionLanguage,
        limit: usize,
    ) -> Result<KnownNames> {
        let catalog = self.engine().catalog();
        let who = self.principal();
        let functions = show_functions::names(&self.engine().planning_state());
        let mut names = KnownNames { functions, ..KnownNames::default() };
        let Some(PlaceOfWord { owner, part, .. }) = PlaceOfWord::at_end(before, language) else { return Ok(names) };
        let prefix = format!("{}%", part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
        let page = || PageRequest::first(limit);
        if let Some(owner) = owner.as_deref().filter(|owner| is_system_database(owner)) {
            names.databases.push(owner.to_owned());
            names.tables.extend(system::table_names(who, owner).into_iter().map(|name| (name.to_owned(), Vec::new())));
            return Ok(names);
        }
        let owning = match owner.as_deref() {
            Some(owner) => catalog.databases().get(who, owner).await?.map(|database| database.name),
            None => None,
        };
        if owner.is_none() || owning.is_some() {
            let database = owning.clone().unwrap_or_else(|| self.database().to_owned());
            let filter =
                TableFilter { database: Some(database), name_like: Some(prefix.clone()), ..TableFilter::default() };
            for table in catalog.tables().list(who, &filter, page()).await?.items {
                names.tables.entry(table.name.table).or_default();
            }
        }
        match owning {
            Some(owning) => names.databases.push(owning),
            None => {
                let databases = catalog.databases().list(who, Some(&prefix), page()).await?.items;
                names.databases.extend(databases.into_iter().map(|database| database.name));
                if owner.is_none() {
                    names.databases.extend(system::system_databases().map(str::to_owned));
                }
            }
        }
        let named = self.named_tables(&words_of(statement, language).words, language);
        for table in catalog.tables().resolve(who, &named).await?.into_iter().flatten() {
            let columns = table.info.columns.iter();
            let columns = columns.map(|column| (column.name.clone(), Some(sql_name(&column.data_type)))).collect();
            names.tables.insert(table.info.name.table.clone(), columns);
        }
        Ok(names)
    }

    /// The names of a statement that tables may have: `t`, `db.t`.
    fn named_tables(&self, words: &[StatementWord], language: CompletionLanguage) -> Vec<TableName> {
        let mut named: Vec<TableName> = Vec::new();
        // SQL's own words are no names without quotes; those of KQL nearly all are.
        let is_own = |word: &StatementWord| {
            language != CompletionLanguage::Kql && word.kind == WordKind::Name && is_reserved_word(&word.text)
        };
        for (at, word) in words.iter().enumerate().filter(|(_, word)| word.is_name() && !is_own(word)) {
            let is_owned = at.checked_sub(1).and_then(|dot| words.get(dot)).is_some_and(|dot| dot.is_sign("."));
            let owner =
                at.checked_sub(2).and_then(|owner| words.get(owner)).filter(|owner| is_owned && owner.is_name());
            let name = TableName::new(owner.map_or(self.database(), |owner| owner.text.as_str()), word.text.as_str());
            if named.len() < MAX_NAMED && !named.contains(&name) {
                named.push(name);
            }
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> KnownNames {
        let odd = vec!["dep-delay", "order", "2024", "between"];
        let tables = [("flights", vec!["carrier", "dep_delay"]), ("Air Lines", vec!["carrier", "name"]), ("odd", odd)];
        let own = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let columns = |words: Vec<&str>| words.into_iter().map(|word| (word.to_owned(), None)).collect::<Vec<_>>();
        KnownNames {
            databases: own(vec!["default", "sales"]),
            tables: tables.into_iter().map(|(table, words)| (table.to_owned(), columns(words))).collect(),
            functions: own(vec!["date_trunc", "count", "named_struct"]),
        }
    }

    fn first(text: &str, language: CompletionLanguage) -> (usize, Option<String>) {
        let (before, after) = text.split_once('|').unwrap_or((text, ""));
        let statement = format!("{before}{after}");
        let found = completions(before, &statement, language, &names(), 10);
        (found.start, found.suggestions.into_iter().next().map(|first| first.text))
    }

    #[test]
    fn what_stands_before_decides() {
        for (text, at, expected) in [
            ("select * from fl", 14, "flights"),
            ("select * from ai", 14, "\"Air Lines\""),
            ("select dep| from flights", 7, "dep_delay"),
            ("select dep from flights where ca", 30, "carrier"),
            ("select f.d| from flights f", 9, "dep_delay"),
            ("select flights.c", 15, "carrier"),
            ("select sales.fl", 13, "flights"),
            ("select date_t", 7, "date_trunc("),
            ("select nam", 7, "name"),
            ("select ord| from odd", 7, "\"order\""),
            ("select dep-", 7, "\"dep-delay\""),
            ("select 20", 7, "\"2024\""),
            ("sel", 0, "select"),
            ("SEL", 0, "SELECT"),
            ("select * from \"Ai", 14, "\"Air Lines\""),
            ("select * from \"Ai|\" a", 14, "\"Air Lines"),
            ("select a.n| from \"Air Lines\" a", 9, "name"),
            ("select \"Air Lines\".n", 19, "name"),
            ("select s.o| from (select carrier, 1 as one from flights) s", 9, "one"),
            ("with x as (select 1 as one) select x.| from x", 37, "one"),
            ("with made as (select 1) select * from m", 38, "made"),
            ("select count(*) as flown from flights order by fl", 47, "flown"),
            ("select | from flights", 7, "carrier"),
            ("select * from flights where carrier = |", 38, "carrier"),
            ("select * from flights |", 22, "where"),
            ("SELECT * FROM flights, |", 23, "\"Air Lines\""),
            ("", 0, "SELECT"),
            ("select 'it''s' from fl", 20, "flights"),
        ] {
            assert_eq!(first(text, CompletionLanguage::Sql), (at, Some(expected.to_owned())), "{text}");
        }
        let kql = |text: &str| {
            let found = completions(text, text, CompletionLanguage::Kql, &names(), 10);
            found.suggestions.into_iter().next().map(|first| first.text)
        };
        for (text, expected) in [
            ("fl", "flights"),
            ("ai", "['Air Lines']"),
            ("flights | where dep-", "['dep-delay']"),
            ("odd | where betw", "['between']"),
            ("flights | summ", "summarize"),
            ("flights | where d", "dep_delay"),
            ("flights | extend x = startofm", "startofmonth("),
            ("flights | ", "where"),
            ("flights | d", "distinct"),
            ("flights | where ", "carrier"),
            ("flights | summarize avg(", "carrier"),
            ("flights | extend zz = 1 | project z", "zz"),
            ("flights | summarize count(), max(dep_delay) by carrier | where max", "max_dep_delay"),
            ("flights | join kind=", "inner"),
            ("flights | join kind=inner (odd | where d", "dep_delay"),
            ("flights | join kind=inner (o", "odd"),
            ("flights | join odd on $left.c", "carrier"),
            ("flights | render c", "columnchart"),
            ("let T = fl", "flights"),
            ("let Late = flights; Lat", "Late"),
            ("['Ai", "['Air Lines']"),
        ] {
            assert_eq!(kql(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn nothing_is_offered_in_texts_and_comments() {
        for text in ["select 'fl", "select 1 -- fl", "select /* fl", "select * from flights where carrier = 'U|'"] {
            assert_eq!(first(text, CompletionLanguage::Sql).1, None, "{text}");
        }
        for text in ["flights | where carrier == 'U", "flights | where carrier has \"U", "// fl"] {
            let found = completions(text, text, CompletionLanguage::Kql, &names(), 10);
            assert!(found.suggestions.is_empty(), "{text}");
        }
    }

    #[test]
    fn what_is_more_than_the_limit_is_marked() {
        let found = completions("s", "s", CompletionLanguage::Sql, &names(), 1);
        assert_eq!((found.suggestions.len(), found.truncated), (1, true));
    }
}

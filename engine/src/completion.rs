//! What may stand at a place of a statement: databases, tables, columns, functions and keywords, by what stands before it.
//!
//! [`completions`] decides among names that are at hand, as a shell keeps them; [`Session::complete`] looks up those that
//! matter at one place, so that its cost does not grow with the catalog.

use std::collections::BTreeMap;

use querent_catalog::{PageRequest, TableFilter, TableName};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::identifiers::{is_reserved_word, quote_identifier};
use crate::policy::function_names;
use crate::session::Session;
use crate::type_names::sql_name;

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
/// What stands before the name of a table, in SQL.
const BEFORE_TABLES: [&str; 6] = ["FROM", "JOIN", "INTO", "TABLE", "DESCRIBE", "UPDATE"];

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

/// Returns what may stand at the end of `before`, the beginning of `statement`.
pub fn completions(
    before: &str,
    statement: &str,
    language: CompletionLanguage,
    names: &KnownNames,
    limit: usize,
) -> Completion {
    let limit = limit.clamp(1, MOST);
    let (start, word) = last_word(before);
    let earlier = before.get(..start).unwrap_or_default().trim_end();
    let tables =
        || names.tables.keys().map(|name| Suggestion { text: name.clone(), kind: SuggestionKind::Table, detail: None });
    let databases = || {
        names.databases.iter().map(|name| Suggestion {
            text: name.clone(),
            kind: SuggestionKind::Database,
            detail: None,
        })
    };
    let columns = |(table, columns): (&String, &Vec<(String, Option<String>)>)| {
        let detail = |of: &Option<String>| Some(of.clone().unwrap_or_else(|| table.clone()));
        let suggestion = |(name, data_type): &(String, Option<String>)| Suggestion {
            text: name.clone(),
            kind: SuggestionKind::Column,
            detail: detail(data_type),
        };
        columns.iter().map(suggestion).collect::<Vec<_>>()
    };
    if let Some((owner, part)) = word.rsplit_once('.') {
        let at = start + owner.len() + 1;
        let owner = owner.rsplit('.').next().unwrap_or(owner);
        let found: Vec<Suggestion> = match table_of(owner, statement, names) {
            Some(table) => names.tables.get_key_value(table).map(columns).unwrap_or_default(),
            None if names.databases.iter().any(|database| database.eq_ignore_ascii_case(owner)) => tables().collect(),
            None => Vec::new(),
        };
        return matching(at, part, found, language, limit);
    }
    let last = earlier.rsplit(|char: char| !char.is_alphanumeric()).next().unwrap_or_default().to_uppercase();
    let begins_kql = language == CompletionLanguage::Kql && (earlier.is_empty() || earlier.ends_with([';', '(']));
    if begins_kql || BEFORE_TABLES.contains(&last.as_str()) {
        return matching(start, word, tables().chain(databases()), language, limit);
    }
    if word.is_empty() {
        return Completion { start, suggestions: Vec::new(), truncated: false };
    }
    // Columns of the tables that the statement names come first.
    let named_tables = names.tables.iter().filter(|(table, _)| statement.contains(table.as_str()));
    let near: Vec<Suggestion> = named_tables.flat_map(columns).collect();
    let is_named = !near.is_empty();
    let all = names.tables.iter().flat_map(columns);
    let upper = word.chars().next().is_some_and(char::is_uppercase);
    let keyword = |text: String| Suggestion { text, kind: SuggestionKind::Keyword, detail: None };
    let function = |name: &str| Suggestion { text: format!("{name}("), kind: SuggestionKind::Function, detail: None };
    let mut words: Vec<Suggestion> = near.into_iter().chain(tables()).collect();
    if language != CompletionLanguage::Kql {
        let cased = |text: &str| if upper { text.to_owned() } else { text.to_lowercase() };
        words.extend(SQL_KEYWORDS.split_whitespace().map(cased).map(keyword));
    }
    if language != CompletionLanguage::Sql {
        words.extend(KQL_KEYWORDS.split_whitespace().map(str::to_owned).map(keyword));
    }
    // Of a statement that names no table yet any column may be meant, before any function.
    if !is_named {
        words.extend(names.tables.iter().flat_map(columns));
    }
    if language == CompletionLanguage::Kql {
        words.extend(KQL_AGGREGATES.split_whitespace().chain(querent_kql::function_names()).map(function));
    } else {
        words.extend(names.functions.iter().map(|name| function(name)));
    }
    matching(start, word, words.into_iter().chain(all).chain(databases()), language, limit)
}

/// Returns where the word begins that a text ends with, and the word.
fn last_word(before: &str) -> (usize, &str) {
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '-');
    let start = before
        .rfind(|char: char| !is_part(char))
        .map_or(0, |end| end + before.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    (start, before.get(start..).unwrap_or_default())
}

/// Returns the table of that name or alias: `flights f`, `flights AS f`.
fn table_of<'a>(owner: &str, statement: &str, names: &'a KnownNames) -> Option<&'a str> {
    let table = |name: &str| names.tables.keys().find(|table| table.eq_ignore_ascii_case(name)).map(String::as_str);
    if let Some(table) = table(owner) {
        return Some(table);
    }
    let words: Vec<&str> = words_of(statement).collect();
    let places = words.iter().enumerate().filter(|(_, word)| word.eq_ignore_ascii_case(owner));
    places.into_iter().find_map(|(at, _)| {
        let before = words.get(..at).unwrap_or_default().iter().rev();
        before.filter(|word| !word.eq_ignore_ascii_case("as")).take(1).find_map(|name| table(name))
    })
}

fn words_of(statement: &str) -> impl Iterator<Item = &str> {
    statement.split(|char: char| !(char.is_alphanumeric() || char == '_')).filter(|word| !word.is_empty())
}

/// The suggestions that begin with `word` in any case, each once, in quotes where they must be.
fn matching(
    start: usize,
    word: &str,
    suggestions: impl IntoIterator<Item = Suggestion>,
    language: CompletionLanguage,
    limit: usize,
) -> Completion {
    let lower = word.to_lowercase();
    let mut found: Vec<Suggestion> = Vec::new();
    let mut truncated = false;
    for suggestion in suggestions {
        let fits = suggestion.text.to_lowercase().starts_with(&lower);
        if !fits || found.iter().any(|known| known.text == suggestion.text) {
            continue;
        }
        if found.len() >= limit {
            truncated = true;
            break;
        }
        found.push(suggestion);
    }
    for suggestion in &mut found {
        match suggestion.kind {
            SuggestionKind::Database | SuggestionKind::Table | SuggestionKind::Column => {
                suggestion.text = written(&suggestion.text, language);
            }
            SuggestionKind::Function | SuggestionKind::Keyword => {}
        }
    }
    Completion { start, suggestions: found, truncated }
}

/// A name as a statement has it: in SQL's double quotes or KQL's brackets, where it is no plain word.
fn written(name: &str, language: CompletionLanguage) -> String {
    let is_word = name.chars().all(|char| char.is_alphanumeric() || char == '_')
        && name.chars().next().is_some_and(|first| !first.is_numeric());
    match language {
        CompletionLanguage::Kql if is_word && !querent_kql::needs_brackets(name) => name.to_owned(),
        // Double quotes would make a text of it.
        CompletionLanguage::Kql => format!("['{}']", name.replace('\\', "\\\\").replace('\'', "\\'")),
        CompletionLanguage::Sql | CompletionLanguage::Either => {
            if is_word && !is_reserved_word(name) {
                name.to_owned()
            } else {
                quote_identifier(name)
            }
        }
    }
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
        let names = self.names_at(before, statement, limit.clamp(1, MOST)).await?;
        Ok(completions(before, statement, language, &names, limit))
    }

    /// Looks up the tables that a statement names, and the tables and databases that begin with its last word.
    async fn names_at(&self, before: &str, statement: &str, limit: usize) -> Result<KnownNames> {
        let catalog = self.engine().catalog();
        let who = self.principal();
        let mut names = KnownNames { functions: function_names(), ..KnownNames::default() };
        let (_, word) = last_word(before);
        let (owner, part) = word.rsplit_once('.').map_or((None, word), |(owner, part)| (Some(owner), part));
        let prefix = format!("{}%", part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
        let page = || PageRequest::first(limit);
        let owning = match owner {
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
            }
        }
        let mut named: Vec<TableName> = Vec::new();
        for written in statement.split(|char: char| !(char.is_alphanumeric() || matches!(char, '_' | '.'))) {
            let mut parts = written.rsplit('.');
            let (Some(table), database) = (parts.next().filter(|table| !table.is_empty()), parts.next()) else {
                continue;
            };
            let name = TableName::new(database.unwrap_or(self.database()), table);
            if named.len() < MAX_NAMED && !named.contains(&name) {
                named.push(name);
            }
        }
        for table in catalog.tables().resolve(who, &named).await?.into_iter().flatten() {
            let columns = table.info.columns.iter();
            let columns = columns.map(|column| (column.name.clone(), Some(sql_name(&column.data_type)))).collect();
            names.tables.insert(table.info.name.table.clone(), columns);
        }
        Ok(names)
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
        ] {
            assert_eq!(kql(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_more_than_the_limit_is_marked() {
        let found = completions("s", "s", CompletionLanguage::Sql, &names(), 1);
        assert_eq!((found.suggestions.len(), found.truncated), (1, true));
    }
}

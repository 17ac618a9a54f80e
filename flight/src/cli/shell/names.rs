//! Completion in the shell: databases, tables, columns, functions, keywords and commands, by what stands before the word.

use std::collections::BTreeMap;

use super::commands::COMMANDS;

/// Suggestions at most.
const MOST: usize = 200;
const SQL_KEYWORDS: &str = "SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN LEFT RIGHT FULL INNER OUTER CROSS \
    ON USING AS AND OR NOT IN IS NULL LIKE ILIKE BETWEEN EXISTS CASE WHEN THEN ELSE END DISTINCT UNION ALL INTERSECT EXCEPT \
    WITH RECURSIVE VALUES OVER PARTITION ROWS RANGE FILTER QUALIFY CAST INTERVAL DESC ASC NULLS FIRST LAST CREATE REPLACE \
    TABLE VIEW SCHEMA DATABASE TEMPORARY EXTERNAL STORED LOCATION OPTIONS INSERT INTO OVERWRITE DROP CASCADE IF EXPLAIN \
    ANALYZE DESCRIBE SHOW TABLES DATABASES COLUMNS COMMENT PRIMARY KEY UNIQUE REFERENCES TRUE FALSE";
const KQL_KEYWORDS: &str = "where project extend summarize by sort order top take limit count distinct join union render \
    let print range mv-expand parse project-away project-rename project-reorder make-series datatable evaluate lookup \
    search find sample getschema serialize as on kind ago bin now has contains startswith endswith between and or not in";

/// The names of the catalog, as far as they are offered.
#[derive(Debug, Default)]
pub(super) struct ShellNames {
    pub(super) databases: Vec<String>,
    /// The columns of each table.
    pub(super) tables: BTreeMap<String, Vec<String>>,
    pub(super) functions: Vec<String>,
}

/// Returns where the word begins that stands at the end of `before`, and what it may become.
pub(super) fn completions(before: &str, names: &ShellNames) -> (usize, Vec<String>) {
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.get(line_start..).unwrap_or_default();
    if line.starts_with(['\\', '.']) {
        return command_completions(line_start, line, names);
    }
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '-');
    let start = before
        .rfind(|char: char| !is_part(char))
        .map_or(0, |end| end + before.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    let word = before.get(start..).unwrap_or_default();
    let earlier = before.get(..start).unwrap_or_default().trim_end();
    if let Some((owner, part)) = word.rsplit_once('.') {
        let at = start + owner.len() + 1;
        let owner = owner.rsplit('.').next().unwrap_or(owner);
        return (at, matching(part, columns_of(owner, earlier, names)));
    }
    let last = earlier.rsplit(|char: char| !char.is_alphanumeric()).next().unwrap_or_default().to_uppercase();
    let tables = names.tables.keys().cloned();
    if matches!(last.as_str(), "FROM" | "JOIN" | "INTO" | "TABLE" | "DESCRIBE" | "UPDATE") {
        return (start, matching(word, tables.chain(names.databases.iter().cloned())));
    }
    if word.is_empty() {
        return (start, Vec::new());
    }
    // Columns of the tables that the statement names come first.
    let named = names.tables.iter().filter(|(table, _)| before.contains(table.as_str()));
    let near = named.flat_map(|(_, columns)| columns.iter().cloned());
    let all = names.tables.values().flatten().cloned();
    let upper = word.chars().next().is_some_and(char::is_uppercase);
    let keywords = SQL_KEYWORDS.split_whitespace().map(|keyword| match upper {
        true => keyword.to_owned(),
        false => keyword.to_lowercase(),
    });
    let keywords = keywords.chain(KQL_KEYWORDS.split_whitespace().map(str::to_owned));
    let functions = names.functions.iter().map(|name| format!("{name}("));
    let words = near.chain(tables).chain(keywords).chain(functions).chain(all).chain(names.databases.iter().cloned());
    (start, matching(word, words))
}

fn command_completions(start: usize, line: &str, names: &ShellNames) -> (usize, Vec<String>) {
    let Some((command, argument)) = line.split_once(char::is_whitespace) else {
        let words = COMMANDS.iter().flat_map(|command| command.names).map(|name| (*name).to_owned());
        return (start, matching(line, words));
    };
    let word_at = argument.rfind(char::is_whitespace).map_or(0, |end| end + 1);
    let at = start + command.len() + 1 + word_at;
    let word = argument.get(word_at..).unwrap_or_default();
    let known = COMMANDS.iter().find(|known| known.names.contains(&command));
    let words: Vec<String> =
        known.map(|known| known.words.iter().map(|word| (*word).to_owned()).collect()).unwrap_or_default();
    (at, matching(word, words.into_iter().chain(names.tables.keys().cloned()).chain(names.databases.iter().cloned())))
}

/// The columns of the table of that name or alias, or the tables of that database.
fn columns_of(owner: &str, statement: &str, names: &ShellNames) -> Vec<String> {
    let lower = owner.to_lowercase();
    let table = |name: &str| names.tables.iter().find(|(table, _)| table.eq_ignore_ascii_case(name));
    if let Some((_, columns)) = table(owner) {
        return columns.clone();
    }
    // `flights f` and `flights AS f`.
    let words: Vec<String> =
        statement.split(|char: char| !(char.is_alphanumeric() || char == '_')).map(str::to_lowercase).collect();
    for (at, word) in words.iter().enumerate().filter(|(_, word)| **word == lower) {
        let _ = word;
        let before = words.get(..at).unwrap_or_default().iter().rev().filter(|word| !word.is_empty() && *word != "as");
        if let Some((_, columns)) = before.take(1).find_map(|name| table(name)) {
            return columns.clone();
        }
    }
    match names.databases.iter().any(|database| database.eq_ignore_ascii_case(owner)) {
        true => names.tables.keys().cloned().collect(),
        false => Vec::new(),
    }
}

/// The words that begin with `start` in any case, each once, quoted where they must be.
fn matching(start: &str, words: impl IntoIterator<Item = String>) -> Vec<String> {
    let lower = start.to_lowercase();
    let mut found: Vec<String> = Vec::new();
    for word in words {
        if word.to_lowercase().starts_with(&lower) && !found.contains(&word) {
            found.push(word);
        }
        if found.len() >= MOST {
            break;
        }
    }
    found.into_iter().map(quoted).collect()
}

fn quoted(word: String) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '_' | '(' | '.' | '\\' | '-');
    if word.chars().all(is_plain) { word } else { format!("\"{}\"", word.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ShellNames {
        let tables = [("flights", vec!["carrier", "dep_delay"]), ("Air Lines", vec!["carrier", "name"])];
        let own = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
        ShellNames {
            databases: own(vec!["default", "sales"]),
            tables: tables.into_iter().map(|(table, columns)| (table.to_owned(), own(columns))).collect(),
            functions: own(vec!["date_trunc", "count"]),
        }
    }

    #[test]
    fn what_stands_before_decides() {
        for (before, at, first) in [
            ("select * from fl", 14, "flights"),
            ("select * from ai", 14, "\"Air Lines\""),
            ("select dep from flights where ca", 30, "carrier"),
            ("select f.dep from flights f where f.d", 36, "dep_delay"),
            ("select flights.c", 15, "carrier"),
            ("select date_t", 7, "date_trunc("),
            ("sel", 0, "select"),
            ("SEL", 0, "SELECT"),
            (".mo", 0, ".mode"),
            ("\\d fl", 3, "flights"),
            (".mode cs", 6, "csv"),
            ("flights | summ", 10, "summarize"),
        ] {
            let (start, words) = completions(before, &names());
            assert_eq!((start, words.first().map(String::as_str)), (at, Some(first)), "{before}: {words:?}");
        }
    }
}

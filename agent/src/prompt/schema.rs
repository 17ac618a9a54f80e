//! The tables of a prompt, one line each: columns with types and comments, a few values of text columns, the number of
//! rows. What does not fit is cut by rank (columns that the question names, keys and times stay longest), and every cut
//! is marked, so that the model knows to ask.

use std::collections::HashSet;

use querent_catalog::{ColumnInfo, Relationship, TableInfo, looks_like_key};

use super::examples::Examples;
use super::joins::{conditions, join_columns};
use crate::prompt_form::JoinForm;
use crate::sql_text::{one_line, shown_identifier, shown_table, sql_type};
use crate::tokens::estimate_tokens;

const MAX_TABLE_COMMENT_CHARS: usize = 120;
const MAX_COLUMN_COMMENT_CHARS: usize = 48;
const MAX_TYPE_CHARS: usize = 60;
/// A table with more columns is shown with its best [`SHOWN_COLUMNS`], however many tokens there are.
const WIDE_COLUMNS: usize = 40;
const SHOWN_COLUMNS: usize = 20;
const MAX_NOTE_CHARS: usize = 160;
/// A table cut below this many columns is only named.
const MIN_COLUMNS: usize = 3;

/// A table to show.
pub(crate) struct SchemaTable<'a> {
    pub(crate) info: &'a TableInfo,
    pub(crate) examples: &'a Examples,
    /// A note on the table.
    pub(crate) note: Option<&'a str>,
    /// Whether its columns have their types.
    pub(crate) shows_types: bool,
}

/// What the columns of a table are ranked by.
struct Ranking<'a> {
    /// The question's words.
    terms: &'a [String],
    /// Columns that join it to other shown tables.
    joining: HashSet<&'a str>,
}

/// Renders the schema part in at most `budget` tokens; empty when nothing fits.
pub(crate) fn render(
    tables: &[SchemaTable<'_>],
    relationships: &[Relationship],
    joins: JoinForm,
    database: &str,
    question: &str,
    budget: usize,
) -> String {
    let heading = if tables.iter().any(|table| table.info.name.database.eq_ignore_ascii_case(database)) {
        format!("Tables of database {} (example values in parentheses):", shown_identifier(database))
    } else {
        // A small model takes the database of the heading for the one to write.
        "Tables as database.table, which is how a query names them (example values in parentheses):".to_owned()
    };
    let mut left = budget.saturating_sub(estimate_tokens(&heading) + 2);
    let terms = words_of(question);
    let joining = join_columns(relationships);
    let rankings: Vec<Ranking<'_>> = tables
        .iter()
        .map(|table| Ranking { terms: &terms, joining: joining.get(&table.info.name).cloned().unwrap_or_default() })
        .collect();
    let full: Vec<String> =
        tables.iter().zip(&rankings).map(|(table, ranking)| full_line(table, database, ranking)).collect();
    let mut costs: Vec<usize> = full.iter().map(|line| estimate_tokens(line) + 1).collect();
    let mut lines = vec![heading];
    let mut shown: Vec<&TableInfo> = Vec::new();
    let mut only_named: Vec<String> = Vec::new();
    for ((table, ranking), full_line) in tables.iter().zip(&rankings).zip(full) {
        let cost = costs.remove(0);
        // The best table may take the tokens that the others do not need, and at least half of the rest.
        let share = (left / 2).max(left.saturating_sub(costs.iter().sum()));
        let fitting = if cost <= share { Some(full_line) } else { cut_line(table, database, ranking, share) };
        match fitting {
            Some(line) => {
                left = left.saturating_sub(estimate_tokens(&line) + 1);
                lines.push(line);
                shown.push(table.info);
            }
            None => only_named.push(relation_name(table.info, database)),
        }
    }
    if shown.is_empty() && only_named.is_empty() {
        return String::new();
    }
    push_list(&mut lines, &mut left, "Joins: ", "; ", &conditions(&shown, relationships, joins));
    push_list(&mut lines, &mut left, "More tables (describe_table shows their columns): ", ", ", &only_named);
    if lines.len() == 1 { String::new() } else { lines.join("\n") }
}

/// Renders the table with examples; of a wide one the best-ranked columns, so that it costs no more than another.
fn full_line(table: &SchemaTable<'_>, database: &str, ranking: &Ranking<'_>) -> String {
    if table.info.columns.len() <= WIDE_COLUMNS {
        return line(table, database, None, true);
    }
    let mut kept = ranked_columns(table.info, ranking);
    kept.truncate(SHOWN_COLUMNS);
    kept.sort_unstable();
    line(table, database, Some(&kept), true)
}

/// Renders the table within `budget` tokens: without examples, else with the best-ranked columns; `None` if too few
/// fit.
fn cut_line(table: &SchemaTable<'_>, database: &str, ranking: &Ranking<'_>, budget: usize) -> Option<String> {
    let columns = &table.info.columns;
    if columns.len() <= WIDE_COLUMNS {
        let plain = line(table, database, None, false);
        if estimate_tokens(&plain) < budget {
            return Some(plain);
        }
    }
    let (mut kept, mut used) = (Vec::new(), estimate_tokens(&line(table, database, Some(&[]), false)) + 1);
    for index in ranked_columns(table.info, ranking).into_iter().take(SHOWN_COLUMNS.max(WIDE_COLUMNS)) {
        used += estimate_tokens(&column_text(table, &columns[index], false)) + 1;
        if used > budget {
            break;
        }
        kept.push(index);
    }
    kept.sort_unstable();
    (kept.len() >= MIN_COLUMNS.min(columns.len())).then(|| line(table, database, Some(&kept), false))
}

/// Returns the positions of all columns, best first.
fn ranked_columns(info: &TableInfo, ranking: &Ranking<'_>) -> Vec<usize> {
    let mut ranked: Vec<usize> = (0..info.columns.len()).collect();
    // Stable: equals keep the table's own order.
    ranked.sort_by_cached_key(|&index| std::cmp::Reverse(rank(&info.columns[index], ranking)));
    ranked
}

/// Renders a table on one line; `kept` are the columns shown, all unless given.
fn line(table: &SchemaTable<'_>, database: &str, kept: Option<&[usize]>, examples: bool) -> String {
    let info = table.info;
    let mut columns: Vec<String> = match kept {
        None => info.columns.iter().map(|column| column_text(table, column, examples)).collect(),
        Some(kept) => kept.iter().map(|&index| column_text(table, &info.columns[index], examples)).collect(),
    };
    if let Some(kept) = kept {
        columns.push(format!("... {} more columns, see describe_table", info.columns.len() - kept.len()));
    }
    let mut line = format!("{}({})", relation_name(info, database), columns.join(", "));
    let rows = info.row_count.map(|count| format!("{count} rows"));
    let comment = info.comment.as_ref().map(|comment| one_line(comment, MAX_TABLE_COMMENT_CHARS));
    let note = table.note.map(|note| one_line(note, MAX_NOTE_CHARS));
    let notes: Vec<String> = rows.into_iter().chain(comment).chain(note).collect();
    if !notes.is_empty() {
        line.push_str(&format!(" -- {}", notes.join("; ")));
    }
    line
}

fn column_text(table: &SchemaTable<'_>, column: &ColumnInfo, examples: bool) -> String {
    let mut text = shown_identifier(&column.name);
    if table.shows_types {
        text.push_str(&format!(" {}", one_line(&sql_type(&column.data_type), MAX_TYPE_CHARS)));
    }
    if examples && let Some(values) = table.examples.get(&column.name) {
        let quoted: Vec<String> = values.iter().map(|value| format!("'{}'", value.replace('\'', "''"))).collect();
        text.push_str(&format!(" ({})", quoted.join(", ")));
    }
    if let Some(comment) = &column.comment {
        text.push_str(&format!(" /* {} */", one_line(comment, MAX_COLUMN_COMMENT_CHARS)));
    }
    text
}

/// Returns the table's name, bare in the request's database and qualified elsewhere.
fn relation_name(info: &TableInfo, database: &str) -> String {
    if info.name.database.eq_ignore_ascii_case(database) {
        shown_identifier(&info.name.table)
    } else {
        shown_table(&info.name)
    }
}

/// Appends as many items as fit, then the number of the others.
fn push_list(lines: &mut Vec<String>, left: &mut usize, title: &str, separator: &str, items: &[String]) {
    let mut used = estimate_tokens(title) + 8;
    let fitting = items
        .iter()
        .take_while(|item| {
            used += estimate_tokens(item) + 2;
            used <= *left
        })
        .count();
    if fitting == 0 {
        return;
    }
    let mut line = format!("{title}{}", items[..fitting].join(separator));
    if fitting < items.len() {
        line.push_str(&format!("{separator}... {} more", items.len() - fitting));
    }
    *left = left.saturating_sub(estimate_tokens(&line) + 1);
    lines.push(line);
}

/// Ranks a column of a cut table; higher is better.
fn rank(column: &ColumnInfo, ranking: &Ranking<'_>) -> u8 {
    let words = words_of(&column.name);
    let comment = column.comment.as_deref().map(words_of).unwrap_or_default();
    // Names abbreviate: `dep` is what departed.
    let alike = |word: &String, term: &String| word.starts_with(term.as_str()) || term.starts_with(word.as_str());
    let named = |words: &[String]| words.iter().any(|word| ranking.terms.iter().any(|term| alike(word, term)));
    if named(&words) {
        return 5;
    }
    if named(&comment) {
        return 4;
    }
    if ranking.joining.contains(column.name.as_str()) {
        return 3;
    }
    if looks_like_key(column) {
        return 2;
    }
    u8::from(column.data_type.is_temporal())
}

/// Returns the words of three letters and more of a text or an identifier, in lowercase and without the endings of
/// plurals and tenses.
fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous_lowercase = false;
    for c in text.chars().chain(std::iter::once(' ')) {
        let begins_part = c.is_uppercase() && previous_lowercase;
        if (!c.is_alphanumeric() || begins_part) && !word.is_empty() {
            let stem = stem(&word);
            if stem.chars().count() >= 3 {
                words.push(stem.to_owned());
            }
            word.clear();
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        previous_lowercase = c.is_lowercase();
    }
    words
}

fn stem(word: &str) -> &str {
    ["ies", "ing", "ed", "es", "s"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.len() >= 3))
        .unwrap_or(word)
}

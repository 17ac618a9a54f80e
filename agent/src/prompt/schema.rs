//! The tables of a prompt, one line each: columns with types and comments, a few values of text columns, how many
//! rows. What does not fit is cut by rank (columns that the question names, keys and times stay longest), and every
//! cut is marked, so that the model knows to ask.

use querent_catalog::{ColumnInfo, TableInfo};

use super::examples::Examples;
use super::joins::{conditions, looks_like_key};
use super::tokens::estimate_tokens;
use crate::tools::{quote_identifier, sql_type};

const MAX_TABLE_COMMENT_CHARS: usize = 120;
const MAX_COLUMN_COMMENT_CHARS: usize = 48;
const MAX_TYPE_CHARS: usize = 60;
/// A table cut below this many columns is only named.
const MIN_COLUMNS: usize = 3;

/// A table that may be told of.
pub(super) struct SchemaTable<'a> {
    pub(super) info: &'a TableInfo,
    pub(super) examples: &'a Examples,
}

/// The schema part, in at most `budget` tokens; empty when nothing fits.
pub(super) fn render(tables: &[SchemaTable<'_>], database: &str, question: &str, budget: usize) -> String {
    let heading = format!("Tables of database {} (example values in parentheses):", quote_identifier(database));
    let mut left = budget.saturating_sub(estimate_tokens(&heading) + 2);
    let terms = words_of(question);
    let full: Vec<String> = tables.iter().map(|table| line(table, database, None, true)).collect();
    let mut costs: Vec<usize> = full.iter().map(|line| estimate_tokens(line) + 1).collect();
    let mut lines = vec![heading];
    let mut shown: Vec<&TableInfo> = Vec::new();
    let mut only_named: Vec<String> = Vec::new();
    for (table, full_line) in tables.iter().zip(full) {
        let cost = costs.remove(0);
        // The best table may take what the others do not need, and at least half of what is left.
        let share = (left / 2).max(left.saturating_sub(costs.iter().sum()));
        let fitting = if cost <= share { Some(full_line) } else { cut_line(table, database, &terms, share) };
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
    push_list(&mut lines, &mut left, "Joins: ", "; ", &conditions(&shown));
    push_list(&mut lines, &mut left, "More tables (describe_table shows their columns): ", ", ", &only_named);
    if lines.len() == 1 { String::new() } else { lines.join("\n") }
}

/// The table within `budget` tokens: without examples, else with the best-ranked columns; `None` if too few fit.
fn cut_line(table: &SchemaTable<'_>, database: &str, terms: &[String], budget: usize) -> Option<String> {
    let plain = line(table, database, None, false);
    if estimate_tokens(&plain) < budget {
        return Some(plain);
    }
    let columns = &table.info.columns;
    let mut ranked: Vec<usize> = (0..columns.len()).collect();
    // Stable: equals keep the table's own order.
    ranked.sort_by_key(|&index| std::cmp::Reverse(rank(&columns[index], terms)));
    let (mut kept, mut used) = (Vec::new(), estimate_tokens(&line(table, database, Some(&[]), false)) + 1);
    for index in ranked {
        used += estimate_tokens(&column_text(table, &columns[index], false)) + 1;
        if used > budget {
            break;
        }
        kept.push(index);
    }
    kept.sort_unstable();
    (kept.len() >= MIN_COLUMNS.min(columns.len())).then(|| line(table, database, Some(&kept), false))
}

/// One table on one line; `kept` are the columns shown, all unless given.
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
    let notes: Vec<String> = rows.into_iter().chain(comment).collect();
    if !notes.is_empty() {
        line.push_str(&format!(" -- {}", notes.join("; ")));
    }
    line
}

fn column_text(table: &SchemaTable<'_>, column: &ColumnInfo, examples: bool) -> String {
    let mut text =
        format!("{} {}", quote_identifier(&column.name), one_line(&sql_type(&column.data_type), MAX_TYPE_CHARS));
    if examples && let Some(values) = table.examples.get(&column.name) {
        let quoted: Vec<String> = values.iter().map(|value| format!("'{}'", value.replace('\'', "''"))).collect();
        text.push_str(&format!(" ({})", quoted.join(", ")));
    }
    if let Some(comment) = &column.comment {
        text.push_str(&format!(" /* {} */", one_line(comment, MAX_COLUMN_COMMENT_CHARS)));
    }
    text
}

/// Bare in the request's database, qualified elsewhere.
fn relation_name(info: &TableInfo, database: &str) -> String {
    let table = quote_identifier(&info.name.table);
    if info.name.database.eq_ignore_ascii_case(database) {
        table
    } else {
        format!("{}.{table}", quote_identifier(&info.name.database))
    }
}

/// As many items as fit, then how many do not.
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

/// How much a column is worth in a cut table.
fn rank(column: &ColumnInfo, terms: &[String]) -> u8 {
    let words = words_of(&column.name);
    let comment = column.comment.as_deref().map(words_of).unwrap_or_default();
    // Names abbreviate: `dep` is what departed.
    let alike = |word: &String, term: &String| word.starts_with(term.as_str()) || term.starts_with(word.as_str());
    let named = |words: &[String]| words.iter().any(|word| terms.iter().any(|term| alike(word, term)));
    if named(&words) {
        return 4;
    }
    if named(&comment) {
        return 3;
    }
    if looks_like_key(column) {
        return 2;
    }
    u8::from(column.data_type.is_temporal())
}

/// The words of a text or an identifier of three letters and more, lowercase and without the endings that plurals and
/// tenses add.
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

fn one_line(text: &str, max_chars: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(max_chars) {
        None => flat,
        Some((end, _)) => format!("{}…", &flat[..end]),
    }
}

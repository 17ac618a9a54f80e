//! Which columns join the tables of a prompt: declared relationships, and those that names, types and values suggest
//! with enough confidence. Given too many, a small model joins by the year.

use std::collections::{HashMap, HashSet};

use querent_catalog::{Relationship, TableInfo, TableName};

use crate::prompt_form::JoinForm;
use crate::sql_text::{shown_identifier, shown_table};

/// Least confidence of a join that is shown: a model takes it for a fact.
const MIN_CONFIDENCE: f32 = 0.5;

/// Returns `a.x = b.y`, or what `form` asks for, for every pair of tables that a relationship joins, in the order of the tables.
pub(super) fn conditions(tables: &[&TableInfo], relationships: &[Relationship], form: JoinForm) -> Vec<String> {
    if form == JoinForm::Off {
        return Vec::new();
    }
    let sure = |one: &&Relationship| one.confidence >= MIN_CONFIDENCE;
    let mut conditions = Vec::new();
    for (position, left) in tables.iter().enumerate() {
        for right in &tables[position + 1..] {
            let found = relationships.iter().filter(sure).find_map(|one| columns_of(one, &left.name, &right.name));
            let Some((left_columns, right_columns)) = found else { continue };
            let pairs = left_columns.iter().zip(right_columns);
            let pairs: Vec<String> =
                pairs.map(|(l, r)| format!("{} = {}", qualified(left, l), qualified(right, r))).collect();
            let condition = pairs.join(" AND ");
            conditions.push(match form {
                JoinForm::Lines | JoinForm::Off => condition,
                JoinForm::Clauses => format!("{} JOIN {} ON {condition}", relation(left), relation(right)),
            });
        }
    }
    conditions
}

/// Returns the columns of each table that a relationship joins by.
pub(super) fn join_columns(relationships: &[Relationship]) -> HashMap<&TableName, HashSet<&str>> {
    let mut columns: HashMap<&TableName, HashSet<&str>> = HashMap::new();
    for one in relationships.iter().filter(|one| one.confidence >= MIN_CONFIDENCE) {
        columns.entry(&one.from).or_default().extend(one.from_columns.iter().map(String::as_str));
        columns.entry(&one.to).or_default().extend(one.to_columns.iter().map(String::as_str));
    }
    columns
}

fn columns_of<'a>(one: &'a Relationship, left: &TableName, right: &TableName) -> Option<(&'a [String], &'a [String])> {
    if (&one.from, &one.to) == (left, right) {
        Some((&one.from_columns, &one.to_columns))
    } else if (&one.to, &one.from) == (left, right) {
        Some((&one.to_columns, &one.from_columns))
    } else {
        None
    }
}

fn relation(table: &TableInfo) -> String {
    shown_table(&table.name)
}

fn qualified(table: &TableInfo, column: &str) -> String {
    format!("{}.{}", shown_identifier(&table.name.table), shown_identifier(column))
}

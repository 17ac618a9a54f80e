//! Joins by known relationships: of a table whose columns a SELECT names and that its FROM clause lacks, and between
//! tables that it joins without saying by what.

use querent_catalog::{Relationship, TableInfo, TableName};
use sqlparser::ast::{
    BinaryOperator, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Select, TableFactor,
    TableWithJoins,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use super::columns::{NameLookup, lookup};
use super::dialects::{all_of, conjuncts};
use super::scopes::{Scope, ScopeSource, Scopes};
use super::tables::identifier;
use super::{KnownTables, Repair, RepairKind, TablesAtHand};
use crate::sql_text::{has_expr, own_columns, quote_identifier, quoted_table};

/// Least confidence of a relationship by which tables are joined.
const MIN_CONFIDENCE: f32 = 0.5;
/// Tables on from a column to what it refers to.
const MAX_REFERENCES: usize = 3;

/// Adds to a SELECT the joins that it needs.
pub(super) fn repair(
    select: &mut Select,
    scopes: &Scopes<'_>,
    at_hand: &TablesAtHand,
    known: &KnownTables,
    repairs: &mut Vec<Repair>,
) {
    for from in 0..select.from.len() {
        conditions(select, from, scopes, at_hand, repairs);
    }
    for (qualifier, column) in missing_columns(select, scopes) {
        let scope = scopes.scope_of(select);
        let Some(steps) = path_to(&scope, at_hand, known, qualifier.as_deref(), &column) else { continue };
        defer_conditions(select, qualifier.as_deref(), &column);
        for step in steps {
            // The join goes where the table is that it joins to, so that its condition sees that table.
            let place = select.from.iter().position(|from| has_source(from, &step.anchor));
            let Some(from) = place.and_then(|place| select.from.get_mut(place)) else { break };
            let Some(join) = join_of(&step) else { break };
            from.joins.push(join);
            let why = match &qualifier {
                Some(table) => format!("`{table}.{column}` is asked for; the tables are related that way"),
                None => format!("only it has `{column}`, and the tables are related that way"),
            };
            let text = format!("JOIN {} ON {}", quoted_table(&step.table), step.condition);
            repairs.push(Repair::new(RepairKind::Join, "no join", text, why));
        }
    }
}

/// Moves the conditions of inner joins that name a column to WHERE, where the table that has it is joined after them.
fn defer_conditions(select: &mut Select, qualifier: Option<&str>, column: &str) {
    let is_it = |expr: &Expr| match (expr, qualifier) {
        (Expr::Identifier(name), None) => name.value.eq_ignore_ascii_case(column),
        (Expr::CompoundIdentifier(parts), Some(qualifier)) => match parts.as_slice() {
            [.., table, name] => table.value.eq_ignore_ascii_case(qualifier) && name.value.eq_ignore_ascii_case(column),
            _ => false,
        },
        _ => false,
    };
    let names_it = |part: &Expr| has_expr(part, is_it);
    let mut deferred = Vec::new();
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        let (JoinOperator::Join(JoinConstraint::On(on)) | JoinOperator::Inner(JoinConstraint::On(on))) =
            &mut join.join_operator
        else {
            continue;
        };
        let (later, kept): (Vec<Expr>, Vec<Expr>) = conjuncts(on.clone()).into_iter().partition(|part| names_it(part));
        if later.is_empty() {
            continue;
        }
        deferred.extend(later);
        match all_of(kept) {
            Some(kept) => *on = kept,
            None => join.join_operator = JoinOperator::CrossJoin(JoinConstraint::None),
        }
    }
    if !deferred.is_empty() {
        select.selection = all_of(select.selection.take().into_iter().chain(deferred).collect());
    }
}

/// A join to add.
struct JoinStep {
    table: TableName,
    condition: String,
    /// What the table is called that it joins to.
    anchor: String,
}

fn join_of(step: &JoinStep) -> Option<Join> {
    Some(Join {
        relation: table_factor(&step.table),
        global: false,
        join_operator: JoinOperator::Join(JoinConstraint::On(expression(&step.condition)?)),
    })
}

fn table_factor(table: &TableName) -> TableFactor {
    let parts = [identifier(&table.database), identifier(&table.table)];
    TableFactor::Table {
        name: ObjectName(parts.into_iter().map(ObjectNamePart::Identifier).collect()),
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

/// Parses an expression that was made here.
pub(super) fn expression(text: &str) -> Option<Expr> {
    Parser::new(&GenericDialect {}).try_with_sql(text).ok()?.parse_expr().ok()
}

fn has_source(from: &TableWithJoins, name: &str) -> bool {
    let factors = std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
    factors.into_iter().any(|factor| binding_of(factor).is_some_and(|known| known.value.eq_ignore_ascii_case(name)))
}

fn binding_of(factor: &TableFactor) -> Option<&Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(&alias.name)
        }
        TableFactor::Table { name, alias: None, .. } => name.0.last()?.as_ident(),
        _ => None,
    }
}

/// Writes the condition of a join that has none, where the tables are known to be related.
fn conditions(
    select: &mut Select,
    from: usize,
    scopes: &Scopes<'_>,
    at_hand: &TablesAtHand,
    repairs: &mut Vec<Repair>,
) {
    let scope = scopes.scope_of(select);
    let Some(from) = select.from.get_mut(from) else { return };
    let mut before: Vec<String> = binding_of(&from.relation).map(|name| name.value.clone()).into_iter().collect();
    for join in &mut from.joins {
        let Some(name) = binding_of(&join.relation).map(|name| name.value.clone()) else { continue };
        if let JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint) = &mut join.join_operator
            && let Some(joined) = scope.source(&name)
            && let Some(fault) = fault_of(constraint, &scope, at_hand, &before, joined)
        {
            // The tables that the condition names come first.
            let (named, others): (Vec<&String>, Vec<&String>) =
                before.iter().partition(|known| is_compared(constraint, known));
            let found = named.into_iter().chain(others).filter_map(|known| scope.source(known)).find_map(|known| {
                related(at_hand, known.table.as_ref()?, joined.table.as_ref()?)
                    .map(|one| condition(one, known.table.as_ref(), &known.name, &joined.name))
            });
            if let Some((text, expr)) = found.and_then(|text| Some((text.clone(), expression(&text)?))) {
                let written = match &*constraint {
                    JoinConstraint::On(on) => format!("ON {on}"),
                    _ => format!("JOIN {name}"),
                };
                let why = format!("{fault}; the tables are related that way");
                *constraint = JoinConstraint::On(expr);
                repairs.push(Repair::new(RepairKind::Join, written, format!("ON {text}"), why));
            }
        }
        before.push(name);
    }
}

/// Whether the condition of a join compares a column of a table.
fn is_compared(constraint: &JoinConstraint, table: &str) -> bool {
    let JoinConstraint::On(Expr::BinaryOp { left, right, .. }) = constraint else { return false };
    [left, right].into_iter().any(|side| match side.as_ref() {
        Expr::CompoundIdentifier(parts) => parts.first().is_some_and(|name| name.value.eq_ignore_ascii_case(table)),
        _ => false,
    })
}

/// Returns what is wrong with the condition of a join: it has none, names a column that a side does not have, compares
/// two columns of one table and leaves the joined one out, or compares two that neither table has. A condition whose
/// columns exist and that names the joined table stays, as does one about two other tables. An id that one side does
/// not have is left to `ColumnFixer::join_by_key`.
fn fault_of(
    constraint: &JoinConstraint,
    scope: &Scope,
    at_hand: &TablesAtHand,
    before: &[String],
    joined: &ScopeSource,
) -> Option<&'static str> {
    let fault = |is_one: bool, what: &'static str| is_one.then_some(what);
    let (left, right) = match constraint {
        JoinConstraint::None => return Some("the join says not by what"),
        JoinConstraint::Using(names) => {
            let is_one_sided = names.iter().any(|name| {
                let Some(name) = name.0.last().and_then(|part| part.as_ident()) else { return false };
                let mut sources = before.iter().filter_map(|known| scope.source(known));
                !joined.may_have(&name.value) || !sources.any(|source| source.may_have(&name.value))
            });
            return fault(is_one_sided, "USING names a column that one side does not have");
        }
        JoinConstraint::On(Expr::BinaryOp { left, op: BinaryOperator::Eq, right }) => (&**left, &**right),
        _ => return None,
    };
    let (Expr::CompoundIdentifier(left), Expr::CompoundIdentifier(right)) = (left, right) else { return None };
    let ([one, column], [other, again]) = (left.as_slice(), right.as_slice()) else { return None };
    let is_joined = |table: &Ident| table.value.eq_ignore_ascii_case(&joined.name);
    let lacks = |table: &Ident, column: &Ident| {
        scope.source(&table.value).is_some_and(|source| !source.may_have(&column.value))
    };
    let is_missing = lacks(one, column) || lacks(other, again);
    if one.value.eq_ignore_ascii_case(&other.value) {
        // A table that is joined with itself under one name has no condition that would be better.
        if before.iter().any(|known| known.eq_ignore_ascii_case(&joined.name)) {
            return None;
        }
        if !is_joined(one) {
            return Some("the condition does not name the joined table");
        }
        return fault(is_missing, "the condition names a column that its table does not have");
    }
    let is_same_name = column.value.eq_ignore_ascii_case(&again.value);
    let is_of_the_join = is_joined(one) || is_joined(other);
    // `e.course_id = c.course_id`, where both call it `course_code`: by which of several would be a guess.
    if is_of_the_join && lacks(one, column) && lacks(other, again) {
        let sides = [one, other].map(|table| scope.source(&table.value).and_then(|source| source.table.as_ref()));
        let is_only = matches!(sides, [Some(left), Some(right)]
            if relationships_of(at_hand, left, right).len() == 1 && !same(left, right));
        if is_only {
            return Some("the condition names columns that neither side has");
        }
    }
    let is_id = column.value.to_lowercase().ends_with("id");
    fault(
        is_same_name && is_of_the_join && !is_id && is_missing,
        "the condition names a column that its table does not have",
    )
}

/// Returns the columns that a SELECT names itself, outside of its subqueries, and that no scope has.
fn missing_columns(select: &Select, scopes: &Scopes<'_>) -> Vec<(Option<String>, String)> {
    let own = scopes.with_select(select);
    let mut missing = Vec::new();
    for expr in &own_columns(select) {
        if let NameLookup::Missing(qualifier, column) = lookup(&own, expr)
            && !missing.contains(&(qualifier.clone(), column.clone()))
        {
            missing.push((qualifier, column));
        }
    }
    missing
}

/// Returns the joins that bring in the best-ranked table at hand that has the column: one, or one by a table between.
fn path_to(
    scope: &Scope,
    at_hand: &TablesAtHand,
    known: &KnownTables,
    qualifier: Option<&str>,
    column: &str,
) -> Option<Vec<JoinStep>> {
    let is_free = |table: &TableName| scope.source(&table.table).is_none();
    let owners: Vec<&TableInfo> = at_hand
        .tables
        .iter()
        .filter(|info| info.columns.iter().any(|known| known.name.eq_ignore_ascii_case(column)))
        .filter(|info| is_free(&info.name))
        .collect();
    let named: Vec<&TableInfo> = owners
        .iter()
        .copied()
        .filter(|info| qualifier.is_some_and(|name| info.name.table.eq_ignore_ascii_case(name)))
        .collect();
    let candidates = if named.is_empty() { owners } else { named };
    let near = |table: &TableName| direct(scope, at_hand, qualifier, table);
    candidates.iter().find_map(|info| near(&info.name).map(|step| vec![step])).or_else(|| {
        candidates.iter().find_map(|info| {
            let between = at_hand.relationships.iter().filter(sure).filter_map(|one| other_end(one, &info.name));
            between.filter(|table| is_free(table) && known.get(table).is_some()).find_map(|table| {
                let first = near(table)?;
                let one = related(at_hand, table, &info.name)?;
                let second = JoinStep {
                    condition: condition(one, Some(table), &table.table, &info.name.table),
                    table: info.name.clone(),
                    anchor: table.table.clone(),
                };
                Some(vec![first, second])
            })
        })
    })
}

/// Returns the join of a table to one of the scope: to the one called `first` before others.
fn direct(scope: &Scope, at_hand: &TablesAtHand, first: Option<&str>, table: &TableName) -> Option<JoinStep> {
    let named = first.and_then(|name| scope.source(name));
    named.into_iter().chain(&scope.sources).find_map(|source| {
        let one = related(at_hand, source.table.as_ref()?, table)?;
        Some(JoinStep {
            condition: condition(one, source.table.as_ref(), &source.name, &table.table),
            table: table.clone(),
            anchor: source.name.clone(),
        })
    })
}

/// Whether tables are joined by a relationship.
pub(super) fn sure(one: &&Relationship) -> bool {
    one.confidence >= MIN_CONFIDENCE
}

fn other_end<'r>(one: &'r Relationship, table: &TableName) -> Option<&'r TableName> {
    if same(&one.from, table) {
        Some(&one.to)
    } else if same(&one.to, table) {
        Some(&one.from)
    } else {
        None
    }
}

pub(super) fn same(left: &TableName, right: &TableName) -> bool {
    super::key_of(left) == super::key_of(right)
}

/// Returns the surest relationship of two tables.
pub(super) fn related<'r>(at_hand: &'r TablesAtHand, left: &TableName, right: &TableName) -> Option<&'r Relationship> {
    let joins = |one: &&Relationship| {
        (same(&one.from, left) && same(&one.to, right)) || (same(&one.from, right) && same(&one.to, left))
    };
    let found = at_hand.relationships.iter().filter(sure).filter(joins);
    // The first of equals, which the catalog ranks.
    found.fold(None, |best: Option<&Relationship>, one| match best {
        Some(known) if known.confidence >= one.confidence => Some(known),
        _ => Some(one),
    })
}

/// Returns the relationships that surely join two tables.
pub(crate) fn relationships_of<'r>(
    at_hand: &'r TablesAtHand,
    left: &TableName,
    right: &TableName,
) -> Vec<&'r Relationship> {
    let joins = |one: &&Relationship| {
        (same(&one.from, left) && same(&one.to, right)) || (same(&one.from, right) && same(&one.to, left))
    };
    at_hand.relationships.iter().filter(sure).filter(joins).collect()
}

/// Whether a column refers to another table, or is referred to.
pub(crate) fn is_key(at_hand: &TablesAtHand, table: &TableName, column: &str) -> bool {
    let has = |columns: &[String]| columns.iter().any(|known| known.eq_ignore_ascii_case(column));
    let is_of = |one: &Relationship| {
        (same(&one.from, table) && has(&one.from_columns)) || (same(&one.to, table) && has(&one.to_columns))
    };
    at_hand.relationships.iter().filter(sure).any(is_of)
}

/// Whether two columns say the same of their rows: one refers to the other, or both to a third.
pub(crate) fn refer_alike(at_hand: &TablesAtHand, one: (&TableName, &str), other: (&TableName, &str)) -> bool {
    let one = referred_to(at_hand, one.0, one.1);
    referred_to(at_hand, other.0, other.1).iter().any(|place| one.contains(place))
}

/// Returns a column and what it refers to, at most [`MAX_REFERENCES`] tables on, by lowercase names.
fn referred_to(at_hand: &TablesAtHand, table: &TableName, column: &str) -> Vec<((String, String), String)> {
    let mut places = vec![(super::key_of(table), column.to_lowercase())];
    for _ in 0..MAX_REFERENCES {
        let known = places.len();
        for one in at_hand.relationships.iter().filter(sure) {
            for (from, to) in one.from_columns.iter().zip(&one.to_columns) {
                let place = (super::key_of(&one.to), to.to_lowercase());
                if places.contains(&(super::key_of(&one.from), from.to_lowercase())) && !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        if places.len() == known {
            break;
        }
    }
    places
}

/// Returns the condition by which a relationship joins `left`, called `left_name`, to the table called `right_name`.
pub(super) fn condition(one: &Relationship, left: Option<&TableName>, left_name: &str, right_name: &str) -> String {
    let is_from = left.is_some_and(|left| same(&one.from, left));
    let (left_columns, right_columns) =
        if is_from { (&one.from_columns, &one.to_columns) } else { (&one.to_columns, &one.from_columns) };
    let column = |table: &str, column: &str| format!("{}.{}", quote_identifier(table), quote_identifier(column));
    let pairs = left_columns.iter().zip(right_columns);
    let pairs: Vec<String> =
        pairs.map(|(l, r)| format!("{} = {}", column(left_name, l), column(right_name, r))).collect();
    pairs.join(" AND ")
}

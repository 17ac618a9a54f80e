//! Names of columns, each in its scope: asked of the wrong table or by an alias that does not have it, spelled in
//! another way, in more tables than one, or a text in double quotes that is no column at all.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use sqlparser::ast::{BinaryOperator, Expr, Ident, Query, Select, Statement, Value, VisitMut, VisitorMut};

use super::counts::counted;
use super::joins;
use super::near::{Likeness, nearest, words};
use super::scopes::{Scope, ScopeColumn, ScopeSource, Scopes, column_of};
use super::tables::identifier;
use super::{KnownTables, Repair, RepairKind, TablesAtHand};
use crate::sql_text::text_of;

/// Rewrites the columns that their scopes do not have, and joins the tables that have them.
pub(super) fn repair(
    statement: &mut Statement,
    at_hand: &TablesAtHand,
    known: &KnownTables,
    database: &str,
    repairs: &mut Vec<Repair>,
) {
    let mut fixer = ColumnFixer { at_hand, known, scopes: Scopes::new(known, database), repairs };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut fixer);
}

struct ColumnFixer<'a> {
    at_hand: &'a TablesAtHand,
    known: &'a KnownTables,
    scopes: Scopes<'a>,
    repairs: &'a mut Vec<Repair>,
}

impl VisitorMut for ColumnFixer<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        joins::repair(select, &self.scopes, self.at_hand, self.known, self.repairs);
        self.scopes.enter_select(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.scopes.leave_select();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.join_by_key(expr);
        self.quote_text(expr);
        let found = match lookup(&self.scopes, expr) {
            NameLookup::Instead(replaced, kind, why) => Some((replaced, kind, why)),
            NameLookup::Missing(qualifier, column) => {
                counted(&self.scopes, self.at_hand, qualifier.as_deref(), &column)
                    .or_else(|| self.id_of_row(qualifier.as_deref(), &column))
                    .or_else(|| only_meant(&self.scopes, qualifier.as_deref(), &column))
                    .map(|(found, why)| (found, RepairKind::Column, why))
            }
            NameLookup::AsWritten => None,
        };
        if let Some((replaced, kind, why)) = found {
            let repair = Repair::new(kind, expr.to_string(), replaced.to_string(), why);
            *expr = replaced;
            if !self.repairs.contains(&repair) {
                self.repairs.push(repair);
            }
        }
        ControlFlow::Continue(())
    }
}

impl ColumnFixer<'_> {
    /// Compares a column that refers to a table with the table's key, where an id stands that the table does not have:
    /// `s.physician_id = p.physician_id` of physicians whose key is `employee_id`.
    fn join_by_key(&mut self, expr: &mut Expr) {
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expr else { return };
        let (id, found) = match self.key_beside(left, right) {
            Some(found) => (left, found),
            None => match self.key_beside(right, left) {
                Some(found) => (right, found),
                None => return,
            },
        };
        let (key, why) = found;
        self.repairs.push(Repair::new(RepairKind::Column, id.to_string(), key.to_string(), why));
        **id = key;
    }

    /// Quotes a word that nothing is called by, where a column of texts is compared with it: `genre = crime`.
    fn quote_text(&mut self, expr: &mut Expr) {
        let Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right } = expr else { return };
        let word = if self.is_of_texts(left) && self.is_unknown_word(right) {
            right
        } else if self.is_of_texts(right) && self.is_unknown_word(left) {
            left
        } else {
            return;
        };
        let Expr::Identifier(ident) = &**word else { return };
        let text = Expr::Value(Value::SingleQuotedString(ident.value.clone()).into());
        let why = "nothing has that name; a text is in single quotes";
        self.repairs.push(Repair::new(RepairKind::Quotes, word.to_string(), text.to_string(), why));
        **word = text;
    }

    fn is_of_texts(&self, expr: &Expr) -> bool {
        let found = self.scopes.inner_to_outer().find_map(|scope| column_of(scope, expr));
        found.is_some_and(|(_, _, data_type)| data_type.is_some_and(DataType::is_string))
    }

    fn is_unknown_word(&self, expr: &Expr) -> bool {
        let is_bare = matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none());
        is_bare && matches!(lookup(&self.scopes, expr), NameLookup::Missing(None, _))
    }

    /// Returns the key that an id which its table does not have is, beside a column that refers to the table.
    fn key_beside(&self, id: &Expr, other: &Expr) -> Option<(Expr, String)> {
        let NameLookup::Missing(table, column) = lookup(&self.scopes, id) else { return None };
        // `f.dean = l.lecturer_id` of faculties with a `dean_id`, and `dean = 'Ines'`, of which the literals make the
        // row's id.
        let is_by_id = self
            .scopes
            .inner_to_outer()
            .find_map(|scope| column_of(scope, other))
            .is_some_and(|(_, name, _)| words(name).last().is_some_and(|last| last == "id"));
        let key = format!("{column}_id");
        let source = match &table {
            Some(table) => self.scopes.inner_to_outer().find_map(|scope| scope.source(table)),
            None => self
                .scopes
                .inner_to_outer()
                .flat_map(|scope| &scope.sources)
                .find(|source| source.column(&key).is_some()),
        };
        if (is_by_id || text_of(other).is_some())
            && let Some((source, (own, _))) = source.and_then(|one| Some((one, one.column(&key)?)))
        {
            let why = format!("{} has no column `{column}`, and has `{own}`", shown(source));
            return Some((column_expr(source, own, true), why));
        }
        let table = table?;
        let lower = column.to_lowercase();
        let is_id = lower == "id" || lower.ends_with("_id") || column.ends_with("Id") || column.ends_with("ID");
        if is_id { self.key(&table, &column, other) } else { None }
    }

    /// Returns the column of a table to which another column refers.
    fn key(&self, table: &str, column: &str, other: &Expr) -> Option<(Expr, String)> {
        let source = self.scopes.inner_to_outer().find_map(|scope| scope.source(table))?;
        let referred = source.table.as_ref()?;
        let (referring, name, _) = self.scopes.inner_to_outer().find_map(|scope| column_of(scope, other))?;
        let referring = referring.table.as_ref()?;
        let key = self.at_hand.relationships.iter().filter(joins::sure).find_map(|one| {
            match (one.from_columns.as_slice(), one.to_columns.as_slice()) {
                ([from], [key])
                    if joins::same(&one.from, referring)
                        && joins::same(&one.to, referred)
                        && from.eq_ignore_ascii_case(name) =>
                {
                    Some(key)
                }
                _ => None,
            }
        })?;
        let why = format!("{} has no column `{column}`; `{name}` refers to its `{key}`", shown(source));
        Some((column_expr(source, key, true), why))
    }

    /// Returns what tells apart the rows that an id names, where it is called otherwise: `student_id` of results that
    /// refer to students by `matric_no`, and of students whose key that is. `None` where a table refers to them by two
    /// columns.
    fn id_of_row(&self, qualifier: Option<&str>, column: &str) -> Option<(Expr, String)> {
        let written = words(column);
        let (last, of) = written.split_last()?;
        if last != "id" || of.is_empty() {
            return None;
        }
        let is_asked = |source: &&ScopeSource| qualifier.is_none_or(|name| source.name.eq_ignore_ascii_case(name));
        // Without a name in front of it, it is of the query itself.
        let scopes = self.scopes.inner_to_outer().filter(|scope| !scope.sources.is_empty());
        let scopes = scopes.take(if qualifier.is_some() { usize::MAX } else { 1 });
        for source in scopes.flat_map(|scope| &scope.sources).filter(is_asked) {
            let Some(table) = &source.table else { continue };
            let mut keys: Vec<&str> = Vec::new();
            for one in self.at_hand.relationships.iter().filter(joins::sure) {
                let ([from], [to]) = (one.from_columns.as_slice(), one.to_columns.as_slice()) else { continue };
                if words(&one.to.table) != of {
                    continue;
                }
                let key = if joins::same(&one.from, table) {
                    from
                } else if joins::same(&one.to, table) {
                    to
                } else {
                    continue;
                };
                if !keys.iter().any(|known| known.eq_ignore_ascii_case(key)) {
                    keys.push(key);
                }
            }
            match keys.as_slice() {
                [] => {}
                [key] => {
                    let why = format!("{} has no column `{column}`; its `{key}` is that", shown(source));
                    return Some((column_expr(source, key, true), why));
                }
                _ => return None,
            }
        }
        None
    }
}

/// Returns the column that a name means of the only table that has one of its kind: its title for a `name`, its only
/// time for a `date`.
fn only_meant(scopes: &Scopes<'_>, qualifier: Option<&str>, name: &str) -> Option<(Expr, String)> {
    // One with a table in front of it was looked for there.
    let scope = scopes.inner_to_outer().find(|scope| qualifier.is_none() && !scope.sources.is_empty())?;
    let mut meant = scope.sources.iter().filter_map(|source| Some((source, meant_column(source, name)?)));
    let (source, found) = meant.next()?;
    let why = format!("there is no column `{name}`; {} has `{found}`", shown(source));
    meant.next().is_none().then(|| (column_expr(source, &found, scope.sources.len() > 1), why))
}

/// What a name of a column finds.
#[expect(clippy::large_enum_variant, reason = "one at a time, matched where it is made")]
pub(super) enum NameLookup {
    /// What it says, or it is not the name of a column.
    AsWritten,
    /// Something else, for a reason.
    Instead(Expr, RepairKind, String),
    /// Nothing in any scope: a qualifier, and the column.
    Missing(Option<String>, String),
}

/// Looks for the column that an expression names, from the innermost scope outwards.
pub(super) fn lookup(scopes: &Scopes<'_>, expr: &Expr) -> NameLookup {
    match expr {
        Expr::Identifier(ident) => bare(scopes, ident),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [.., qualifier, column] => qualified(scopes, qualifier, column),
            _ => NameLookup::AsWritten,
        },
        _ => NameLookup::AsWritten,
    }
}

fn bare(scopes: &Scopes<'_>, ident: &Ident) -> NameLookup {
    let name = ident.value.as_str();
    for scope in scopes.inner_to_outer() {
        let owners: Vec<&ScopeSource> = scope.sources.iter().filter(|source| source.column(name).is_some()).collect();
        match owners.as_slice() {
            [] if scope.has_alias(name) || scope.sources.iter().any(|source| source.may_have(name)) => {
                return NameLookup::AsWritten;
            }
            [] => {}
            [_] => return NameLookup::AsWritten,
            _ if scope.is_natural || scope.has_alias(name) || is_among(&scope.merged, name) => {
                return NameLookup::AsWritten;
            }
            [first, ..] => {
                let why = format!("several tables have `{name}`; the first of them is taken");
                return NameLookup::Instead(column_expr(first, name, true), RepairKind::Column, why);
            }
        }
    }
    let mut sources = scopes.inner_to_outer().flat_map(|scope| &scope.sources);
    if let Some((found, source)) = sources.find_map(|source| Some((own_column(source, name)?, source))) {
        let why = format!("there is no column `{name}`; {} has `{found}`", shown(source));
        return NameLookup::Instead(column_expr(source, &found, true), RepairKind::Column, why);
    }
    let near = scopes.inner_to_outer().find_map(|scope| near_in_scope(scope, name));
    let is_quoted = ident.quote_style == Some('"');
    if let Some((found, source, likeness)) = near.filter(|(_, _, likeness)| !is_quoted || *likeness <= Likeness::Words)
    {
        let is_shared = scopes
            .inner_to_outer()
            .any(|scope| scope.sources.iter().filter(|other| other.column(&found).is_some()).count() > 1);
        let why = format!("there is no column `{name}`; {} has `{found}`", shown(source));
        return match likeness {
            Likeness::Case => NameLookup::AsWritten,
            _ => NameLookup::Instead(column_expr(source, &found, is_shared), RepairKind::Column, why),
        };
    }
    if is_quoted {
        let text = Expr::Value(Value::SingleQuotedString(name.to_owned()).into());
        let why = "no column has that name; a text is in single quotes".to_owned();
        return NameLookup::Instead(text, RepairKind::Quotes, why);
    }
    match scopes.stack.iter().any(|scope| !scope.sources.is_empty()) {
        true => NameLookup::Missing(None, name.to_owned()),
        false => NameLookup::AsWritten,
    }
}

fn qualified(scopes: &Scopes<'_>, qualifier: &Ident, column: &Ident) -> NameLookup {
    let (table, name) = (qualifier.value.as_str(), column.value.as_str());
    let owner = scopes.inner_to_outer().find_map(|scope| scope.source(table).map(|source| (scope, source)));
    if let Some((_, source)) = owner
        && source.may_have(name)
    {
        return NameLookup::AsWritten;
    }
    let is_field = || {
        let mut sources = scopes.inner_to_outer().flat_map(|scope| &scope.sources);
        sources.any(|source| {
            source.column(table).is_some_and(|(_, data_type)| data_type.is_none_or(|known| known.is_nested()))
        })
    };
    if owner.is_none() && is_field() {
        return NameLookup::AsWritten;
    }
    // The table's own name where it has an alias.
    let aliased = scopes.inner_to_outer().flat_map(|scope| &scope.sources).find(|source| {
        source.table.as_ref().is_some_and(|known| known.table.eq_ignore_ascii_case(table))
            && source.column(name).is_some()
    });
    if let (None, Some(source)) = (owner, aliased) {
        let why = format!("here `{table}` is called `{}`", source.name);
        return NameLookup::Instead(column_expr(source, name, true), RepairKind::Column, why);
    }
    let missing = match owner {
        Some((_, source)) => format!("{} has no column `{name}`", shown(source)),
        None => format!("the query reads no table `{table}`"),
    };
    // A name that is nearly the column of its own table comes before the same name in another one.
    if let Some((_, source)) = owner
        && let Some((found, likeness)) = near_in_source(source, name)
        && likeness <= Likeness::Words
    {
        return NameLookup::Instead(column_expr(source, found, true), RepairKind::Column, missing);
    }
    if let Some((_, source)) = owner
        && let Some(found) = own_column(source, name)
    {
        return NameLookup::Instead(column_expr(source, &found, true), RepairKind::Column, missing);
    }
    for scope in scopes.inner_to_outer() {
        let mut others = scope.sources.iter().filter(|source| source.column(name).is_some());
        if let Some(source) = others.next() {
            let also = if others.next().is_some() { ", as the first of several" } else { "" };
            let why = format!("{missing}; {} has it{also}", shown(source));
            return NameLookup::Instead(column_expr(source, name, true), RepairKind::Column, why);
        }
    }
    if let Some((_, source)) = owner
        && let Some((found, _)) = near_in_source(source, name)
    {
        return NameLookup::Instead(column_expr(source, found, true), RepairKind::Column, missing);
    }
    if let Some((_, source)) = owner
        && let Some(found) = meant_column(source, name)
    {
        return NameLookup::Instead(column_expr(source, &found, true), RepairKind::Column, missing);
    }
    let near = scopes.inner_to_outer().find_map(|scope| near_in_scope(scope, name));
    match near.filter(|(_, _, likeness)| *likeness <= Likeness::Words) {
        Some((found, source, _)) => {
            let why = format!("{missing}; {} has `{found}`", shown(source));
            NameLookup::Instead(column_expr(source, &found, true), RepairKind::Column, why)
        }
        None => NameLookup::Missing(Some(table.to_owned()), name.to_owned()),
    }
}

/// Returns the one column of a scope that a name is nearly, with its table.
fn near_in_scope<'s>(scope: &'s Scope, name: &str) -> Option<(String, &'s ScopeSource, Likeness)> {
    let columns = scope.sources.iter().flat_map(|source| source.columns.iter().flatten());
    let (found, likeness) = nearest(name, columns.map(|(column, _)| column.as_str()))?;
    let source = scope.sources.iter().find(|source| source.column(found).is_some())?;
    (!is_key_of_other(source, name, found)).then(|| (found.to_owned(), source, likeness))
}

/// Words by which a row is called, and words of a time.
const NAMES: [&str; 2] = ["name", "title"];
const TIMES: [&str; 6] = ["date", "time", "datetime", "timestamp", "day", "at"];

/// Returns the column of a table that a name means by what it holds: the `title` for a `name` where no column is one,
/// the `name` for a `title`, and the only time for a `date`, or for a `hire_date` where that is called `hired`.
fn meant_column(source: &ScopeSource, name: &str) -> Option<String> {
    const KEPT_BY_PROGRAMS: [&str; 4] = ["updated", "modified", "loaded", "changed"];
    const PARTS: [&str; 3] = ["year", "month", "day"];
    let columns = source.columns.as_ref()?;
    let written = words(name);
    let (last, others) = written.split_last()?;
    let has_word = |word: &str| columns.iter().any(|(known, _)| words(known).iter().any(|own| own == word));
    if let Some(at) = NAMES.iter().position(|one| one == last).filter(|_| others.is_empty()) {
        let other = NAMES.get(1 - at).filter(|_| !has_word(last))?;
        let is_it = |(known, kind): &&ScopeColumn| {
            known.eq_ignore_ascii_case(other) && kind.as_ref().is_none_or(DataType::is_string)
        };
        return columns.iter().find(is_it).map(|(known, _)| known.clone());
    }
    let is_part = |(known, kind): &ScopeColumn| {
        let is_time = kind.as_ref().is_some_and(DataType::is_temporal);
        !is_time && words(known).iter().any(|own| own == last || PARTS.contains(&own.as_str()))
    };
    if !TIMES.contains(&last.as_str()) || columns.iter().any(is_part) {
        return None;
    }
    let is_of_days = |(_, kind): &&ScopeColumn| matches!(kind, Some(DataType::Date32 | DataType::Timestamp(_, _)));
    let mut times = columns.iter().filter(is_of_days);
    let (found, _) = times.next().filter(|_| times.next().is_none())?;
    let own = words(found);
    let table = source.table.as_ref().map(|table| words(&table.table)).unwrap_or_default();
    // `hire` is of `hired`, `exam` of exam results, and `birth` of neither.
    let is_of_it = |word: &String| {
        let begins = |known: &String| known.starts_with(word.as_str());
        table.contains(word) || (word.chars().count() > 3 && own.iter().any(begins)) || own.contains(word)
    };
    let is_kept = own.iter().any(|word| KEPT_BY_PROGRAMS.contains(&word.as_str()));
    (others.iter().all(is_of_it) && !is_kept).then(|| found.clone())
}

/// Returns the column of a table that a name says with the table's own: `customer_id` of customers is their `id`,
/// `product_name` of products their `title`, and `order_date` of orders the one time of theirs that begins so.
fn own_column(source: &ScopeSource, name: &str) -> Option<String> {
    let table = words(&source.table.as_ref()?.table);
    let written = words(name);
    let rest = written.strip_prefix(table.as_slice())?;
    let columns = source.columns.as_ref()?;
    let called = |wanted: &str| columns.iter().find(|(known, _)| known.eq_ignore_ascii_case(wanted));
    let is_time = |kind: &Option<DataType>| kind.as_ref().is_some_and(DataType::is_temporal);
    let [last] = rest else { return None };
    let found = called(last).or_else(|| match NAMES.contains(&last.as_str()) {
        true => NAMES.iter().find_map(|name| called(name)),
        false => None,
    });
    let found = found.or_else(|| {
        let mut times = columns.iter().filter(|(_, kind)| TIMES.contains(&last.as_str()) && is_time(kind));
        times.next().filter(|_| times.next().is_none())
    });
    found.map(|(known, _)| known.clone())
}

/// Whether a name is the key of another table: `customer_id` is not the `id` of items, nor the `id` of courses their
/// `lecturer_id`.
fn is_key_of_other(source: &ScopeSource, name: &str, found: &str) -> bool {
    let written = words(name);
    if written == ["id"] && is_id_of_other(source, found) {
        return true;
    }
    let is_key = words(found) == ["id"] && written.len() > 1 && written.last().is_some_and(|last| last == "id");
    is_key && source.table.as_ref().is_none_or(|table| !written.starts_with(&words(&table.table)))
}

/// Whether an id is called as something else than its table, and is not the table's first column: `lecturer_id` of
/// courses.
fn is_id_of_other(source: &ScopeSource, found: &str) -> bool {
    const SHARED: usize = 3;
    let Some(table) = &source.table else { return false };
    let is_first = source.columns.iter().flatten().next().is_some_and(|(first, _)| first.eq_ignore_ascii_case(found));
    let (own, of) = (words(&table.table), words(found));
    let begins_alike = |one: &str, other: &str| {
        one.chars().zip(other.chars()).take_while(|(left, right)| left == right).count() >= SHARED
    };
    let is_own = of.iter().any(|word| own.iter().any(|known| known == word || begins_alike(known, word)));
    of.len() > 1 && !is_first && !is_own
}

fn near_in_source<'s>(source: &'s ScopeSource, name: &str) -> Option<(&'s str, Likeness)> {
    let found = nearest(name, source.columns.iter().flatten().map(|(column, _)| column.as_str()));
    found.filter(|(found, _)| !is_key_of_other(source, name, found))
}

/// Returns a table's column as an expression.
pub(super) fn column_expr(source: &ScopeSource, column: &str, is_qualified: bool) -> Expr {
    let spelled = source.column(column).map_or(column, |(name, _)| name);
    match is_qualified && !source.name.is_empty() {
        true => Expr::CompoundIdentifier(vec![identifier(&source.name), identifier(spelled)]),
        false => Expr::Identifier(identifier(spelled)),
    }
}

fn is_among(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Names a source for people.
pub(super) fn shown(source: &ScopeSource) -> String {
    match &source.table {
        Some(table) => format!("`{table}`"),
        None => format!("`{}`", source.name),
    }
}

//! Names of relations without regard to case, before a statement is planned: common table expressions and qualified
//! wildcards get the spelling of what they refer to. Table functions of ours become the queries that they stand for. Fields of
//! a table's columns are told from columns of a database's tables.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, CastKind, DataType, ExactNumberInfo, Expr, Ident, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Subscript, TableFactor, TableWithJoins, Value, ValueWithSpan,
    VisitorMut,
};

use super::accepted::check_accepted;
use super::json_records::rewrite_json_records;
use super::json_tables::rewrite_json_tables;
use super::same_table_names::check_table_names;
use super::series_of_columns::rewrite_series_of_columns;
use super::shorthand::{call, text, write_out};
use super::sql_types::keep_digits;
use super::syntax::{relation_name, relations_of, visit_statement};
use super::table_functions::rewrite_table_functions;
use crate::error::Result;
use crate::identifiers::same_name;

/// Gives references to common table expressions, and qualified wildcards, the spelling of what they refer to, and numbers
/// with an exponent and times with many digits their types. Refuses what is not planned, writes out what is abbreviated, and
/// replaces table functions of ours by the queries that they stand for. `database` is where bare names of tables are. Errors:
/// `sql_plan_error`, `unsupported`.
pub(crate) fn fold_relations(statement: &mut Statement, database: &str) -> Result<()> {
    // First, since what it writes into the statement is to be read as the rest.
    rewrite_table_functions(statement)?;
    rewrite_json_records(statement)?;
    check_accepted(statement)?;
    check_table_names(statement)?;
    write_out(statement)?;
    rewrite_json_tables(statement)?;
    rewrite_series_of_columns(statement)?;
    let _: ControlFlow<()> =
        visit_statement(statement, &mut RelationFolder { database, ctes: Vec::new(), relations: Vec::new() });
    Ok(())
}

struct RelationFolder<'a> {
    database: &'a str,
    /// Names of the common table expressions in scope, innermost last, one entry a `WITH`.
    ctes: Vec<Vec<String>>,
    /// The relations of the FROM clauses in scope, one entry a query.
    relations: Vec<Vec<KnownRelation>>,
}

/// A relation of a FROM clause.
struct KnownRelation {
    name: String,
    /// The database that it is written with.
    database: Option<String>,
}

impl RelationFolder<'_> {
    /// Returns the field that a name of three parts or more stands for, where its first part is a table and its second one
    /// is a table, too: `l.s.v` of `FROM l, s` is the field `v` of the column `l.s`. The planner would look for the column `v`
    /// of a table `s`, in whatever database that is.
    fn field_of_column(&self, parts: &[Ident]) -> Option<Expr> {
        let [table, column, fields @ ..] = parts else { return None };
        let relations = || self.relations.iter().flatten();
        let is_relation = |name: &Ident| relations().any(|known| same_name(&known.name, &name.value));
        let is_of_database = |known: &KnownRelation| {
            same_name(&known.name, &column.value)
                && known.database.as_ref().is_some_and(|own| same_name(own, &table.value))
        };
        let is_database = same_name(self.database, &table.value) || relations().any(is_of_database);
        // The last part is a column for the planner, too.
        let is_mistaken = parts[1..parts.len() - 1].iter().take(2).any(is_relation);
        if fields.is_empty() || is_database || !is_relation(table) || !is_mistaken {
            return None;
        }
        let column = Expr::CompoundIdentifier(vec![table.clone(), column.clone()]);
        let access = |field: &Ident| AccessExpr::Subscript(Subscript::Index { index: text(&field.value) });
        Some(Expr::CompoundFieldAccess {
            root: Box::new(Expr::Nested(Box::new(column))),
            access_chain: fields.iter().map(access).collect(),
        })
    }

    /// Gives a column that is such a field the field's name, as others have it, or the whole text where another column has
    /// that name.
    fn name_field(&self, items: &mut [SelectItem], place: usize) {
        let Some(SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))) = items.get(place) else { return };
        let (Some(name), Some(expr)) = (parts.last(), self.field_of_column(parts)) else { return };
        let is_taken = |(other, item): (usize, &SelectItem)| {
            let own = match item {
                SelectItem::UnnamedExpr(Expr::Identifier(own)) => Some(own),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last(),
                SelectItem::ExprWithAlias { alias, .. } => Some(alias),
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => return true,
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAliases { .. } => None,
            };
            other != place && own.is_some_and(|own| same_name(&own.value, &name.value))
        };
        let alias = match items.iter().enumerate().any(is_taken) {
            true => parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join("."),
            false => name.value.clone(),
        };
        items[place] = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', alias) };
    }
}

impl VisitorMut for RelationFolder<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let names = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| cte.alias.name.value.clone());
        self.ctes.push(names.collect());
        let mut relations = Vec::new();
        add_relations(&query.body, &mut relations);
        self.relations.push(relations);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.ctes.pop();
        self.relations.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some(field) = self.field_of_column(parts)
        {
            *expr = field;
        }
        keep_digits(expr);
        // The planner reads the elements of an array as if no query were around them: neither outer columns nor common table
        // expressions are known there, and they are in the arguments of a function.
        if let Expr::Array(array) = expr
            && array.elem.iter().any(|element| !matches!(element, Expr::Value(_)))
        {
            *expr = call("make_array", std::mem::take(&mut array.elem));
        }
        // In the standard `1.5` is a decimal and `1.5e0` a double; the planner would take both for decimals.
        if let Expr::Value(ValueWithSpan { value: Value::Number(number, _), span }) = expr
            && number.contains(['e', 'E'])
        {
            let text = Value::SingleQuotedString(number.clone()).with_span(*span);
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(text)),
                data_type: DataType::Double(ExactNumberInfo::None),
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        if let [ObjectNamePart::Identifier(ident)] = relation.0.as_mut_slice() {
            respell(ident, self.ctes.iter().rev().flatten().map(String::as_str));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let relations: Vec<String> = relations_of(&select.from).filter_map(relation_name).collect();
        for place in 0..select.projection.len() {
            self.name_field(&mut select.projection, place);
        }
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice()
            {
                respell(ident, relations.iter().map(String::as_str));
                if let Some(whole) = whole_name(&select.from, &ident.value) {
                    *name = whole;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Adds the relations of the SELECTs of a query.
fn add_relations(body: &SetExpr, relations: &mut Vec<KnownRelation>) {
    match body {
        SetExpr::Select(select) => relations.extend(relations_of(&select.from).filter_map(|relation| {
            let database = match relation {
                TableFactor::Table { name, alias: None, .. } => {
                    let mut parts = name.0.iter().rev().skip(1);
                    parts.next().and_then(ObjectNamePart::as_ident).map(|ident| ident.value.clone())
                }
                _ => None,
            };
            Some(KnownRelation { name: relation_name(relation)?, database })
        })),
        SetExpr::SetOperation { left, right, .. } => {
            add_relations(left, relations);
            add_relations(right, relations);
        }
        _ => {}
    }
}

/// Returns the name by which a FROM clause has the one table that its last part names, where it has more parts and no alias:
/// `t.*` of `db.t`, which the planner knows as `db.t.*`.
fn whole_name(from: &[TableWithJoins], last: &str) -> Option<ObjectName> {
    let mut named = relations_of(from).filter(|relation| relation_name(relation).is_some_and(|name| name == last));
    match (named.next(), named.next()) {
        (Some(TableFactor::Table { name, alias: None, args: None, .. }), None) if name.0.len() > 1 => {
            Some(name.clone())
        }
        _ => None,
    }
}

/// Gives the identifier the spelling of the first candidate that matches without regard to case, unless one matches exactly.
fn respell<'a>(ident: &mut Ident, candidates: impl Iterator<Item = &'a str>) {
    let mut folded = None;
    for candidate in candidates {
        if candidate == ident.value {
            return;
        }
        if folded.is_none() && same_name(candidate, &ident.value) {
            folded = Some(candidate.to_owned());
        }
    }
    if let Some(spelling) = folded {
        ident.value = spelling;
    }
}

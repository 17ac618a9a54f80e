//! VALUES within the query of an INSERT, as in `INSERT INTO t SELECT y, x FROM (VALUES (1.5, 2)) v(x, y)`, or of a CREATE TABLE
//! AS that names columns: DataFusion's planner takes any VALUES of the statement for rows of the table, and casts them to its
//! columns by their places. Those that are no rows of the table become a relation of ours ([`marks::VALUES`]). Of an
//! INSERT's parameters it knows numbered ones only, and takes one beside a time for such a time, whatever its type is.

use std::ops::ControlFlow;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, Expr, Ident, ObjectName, ObjectNamePart, Query, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, Value, ValueWithSpan, VisitMut, VisitorMut,
};

use super::marks;
use super::parameters::position;
use super::shorthand::{plain, query_of, select_star, table_factor, taken};

/// Marks the VALUES of the query of such a statement but for those that are its rows.
pub(super) fn mark_inner_values(query: &mut Query) {
    let _: ControlFlow<()> = VisitMut::visit(query, &mut InnerValues { depth: 0 });
}

/// Gives the columns of the query of a CREATE TABLE that names its columns names of small letters: the planner looks the
/// query's columns up by their names in lower case.
pub(super) fn number_columns(query: &mut Query, count: usize) {
    // Those of VALUES are called `column1` and so on.
    if matches!(query.body.as_ref(), SetExpr::Values(_)) {
        return;
    }
    let columns =
        (1..=count).map(|place| TableAliasColumnDef { name: Ident::new(format!("c{place}")), data_type: None });
    let alias = TableAlias { explicit: true, name: Ident::new("query"), columns: columns.collect(), at: None };
    let none = query_of(SetExpr::Query(Box::new(query_of(SetExpr::Select(Box::new(select_star(Vec::new())))))));
    let rows = Box::new(std::mem::replace(query, none));
    let factor = TableFactor::Derived { lateral: false, subquery: rows, alias: Some(alias), sample: None };
    *query = query_of(SetExpr::Select(Box::new(select_star(vec![plain(factor)]))));
}

/// Numbers the parameters of the query of an INSERT that are called by names, by the places of their values: the planner forgets
/// these names there, and the types of all. What is added to something, or taken from it, and is an interval is cast to one.
/// Where there are no values yet, named parameters that stand alone in a row are put into brackets, since it takes them for
/// numbered ones.
pub(super) fn settle_parameters(query: &mut Query, values: &[Option<FieldRef>]) {
    let _: ControlFlow<()> = VisitMut::visit(query, &mut SettledParameters { values });
    let SetExpr::Values(rows) = query.body.as_mut() else { return };
    for value in rows.rows.iter_mut().flat_map(|row| row.content.iter_mut()) {
        if name_of_parameter(value).is_some() {
            *value = Expr::Nested(Box::new(value.clone()));
        }
    }
}

struct SettledParameters<'a> {
    values: &'a [Option<FieldRef>],
}

impl SettledParameters<'_> {
    /// Whether an expression is a parameter with a number whose value is an interval.
    fn is_interval(&self, expr: &Expr) -> bool {
        let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = expr else { return false };
        let value = position(name).and_then(|number| self.values.get(number.checked_sub(1)?)?.as_ref());
        value.is_some_and(|field| matches!(field.data_type(), DataType::Interval(_) | DataType::Duration(_)))
    }
}

impl VisitorMut for SettledParameters<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let place = name_of_parameter(expr).and_then(|name| {
            self.values.iter().position(|value| value.as_ref().is_some_and(|field| field.name() == name))
        });
        if let (Some(place), Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. })) = (place, expr) {
            *name = format!("${}", place + 1);
        }
        ControlFlow::Continue(())
    }

    // Behind its parts, which have their numbers then.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::BinaryOp { left, op: BinaryOperator::Plus | BinaryOperator::Minus, right } = expr {
            for operand in [left, right] {
                if self.is_interval(operand) {
                    **operand = cast_to_interval(taken(operand));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn cast_to_interval(value: Expr) -> Expr {
    let data_type = ast::DataType::Interval { fields: None, precision: None };
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(value), data_type, array: false, format: None }
}

/// Returns the name of a parameter that has one and no number.
fn name_of_parameter(value: &Expr) -> Option<&str> {
    let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = value else { return None };
    let name = name.trim_start_matches('$');
    (!name.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

struct InnerValues {
    /// Within how many queries the visitor is.
    depth: usize,
}

impl VisitorMut for InnerValues {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    // Behind its parts: what is put in the place of VALUES has them in it, and is not visited.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        if self.depth > 0 || !matches!(query.body.as_ref(), SetExpr::Values(_)) {
            mark(&mut query.body);
        }
        ControlFlow::Continue(())
    }
}

fn mark(body: &mut SetExpr) {
    match body {
        SetExpr::Values(_) => {
            let none = SetExpr::Query(Box::new(query_of(SetExpr::Select(Box::new(select_star(Vec::new()))))));
            let values = query_of(std::mem::replace(body, none));
            let name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(marks::VALUES))]);
            let relation = table_factor(name, Some(vec![Expr::Subquery(Box::new(values))]));
            *body = SetExpr::Select(Box::new(select_star(vec![plain(relation)])));
        }
        SetExpr::SetOperation { left, right, .. } => {
            mark(left);
            mark(right);
        }
        _ => {}
    }
}

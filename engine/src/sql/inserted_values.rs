//! VALUES within the query of an INSERT, as in `INSERT INTO t SELECT y, x FROM (VALUES (1.5, 2)) v(x, y)`, or of a CREATE TABLE
//! AS that names columns: DataFusion's planner takes any VALUES of the statement for rows of the table, and casts them to its
//! columns by their places. Those that are no rows of the table become a relation of ours ([`marks::VALUES`]).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, VisitMut,
    VisitorMut,
};

use super::marks;
use super::shorthand::{plain, query_of, select_star, table_factor};

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

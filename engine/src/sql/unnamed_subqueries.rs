//! Subqueries without a name in FROM, beside other relations: they get DuckDB's names, `unnamed_subquery`, `unnamed_subquery2`, ..., by
//! which columns of the same name are told apart. And casts of columns in subqueries whose columns an alias names.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Select, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins,
};

use super::shorthand::{cast_column, taken};

const NAME: &str = "unnamed_subquery";
/// What a cast is called until the alias names it.
const CAST: &str = "__cast";

/// Names the subqueries of a FROM clause that has other relations as well.
pub(super) fn name_subqueries(from: &mut [TableWithJoins]) {
    if from.len() + from.iter().map(|tables| tables.joins.len()).sum::<usize>() < 2 {
        return;
    }
    let mut count = 0;
    from.iter_mut().for_each(|tables| name_in(tables, &mut count));
}

fn name_in(tables: &mut TableWithJoins, count: &mut usize) {
    let joined = tables.joins.iter_mut().map(|join| &mut join.relation);
    for relation in std::iter::once(&mut tables.relation).chain(joined) {
        match relation {
            TableFactor::Derived { alias: alias @ None, .. } => {
                *count += 1;
                let name = if *count == 1 { NAME.to_owned() } else { format!("{NAME}{count}") };
                *alias = Some(TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None });
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => name_in(table_with_joins, count),
            _ => {}
        }
    }
}

/// Names the casts in a subquery whose columns an alias names: the planner calls one what its column is called, with the table, and
/// then looks for that column of that table.
pub(super) fn name_casts(factor: &mut TableFactor) {
    let TableFactor::Derived { subquery, alias: Some(alias), .. } = factor else { return };
    let Some(select) = first_select(&mut subquery.body).filter(|_| !alias.columns.is_empty()) else { return };
    let is_one = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if !select.projection.iter().all(is_one) {
        return;
    }
    for (place, item) in select.projection.iter_mut().take(alias.columns.len()).enumerate() {
        if let SelectItem::UnnamedExpr(expr) = item
            && !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
            && cast_column(expr).is_some()
        {
            let alias = Ident::new(format!("{CAST}{place}"));
            *item = SelectItem::ExprWithAlias { expr: taken(expr), alias };
        }
    }
}

/// Returns the SELECT that names the columns of a query's body.
fn first_select(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

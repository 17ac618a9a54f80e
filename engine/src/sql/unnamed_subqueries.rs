//! Subqueries without a name in FROM, beside other relations: they get DuckDB's names, `unnamed_subquery`, `unnamed_subquery2`, ..., by
//! which columns of the same name are told apart.

use datafusion::sql::sqlparser::ast::{Ident, TableAlias, TableFactor, TableWithJoins};

const NAME: &str = "unnamed_subquery";

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

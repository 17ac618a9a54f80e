//! `EXCEPT ALL` and `INTERSECT ALL` count rows: of two equal rows the one that the other side has once is taken away once.
//! DataFusion's joins would take both, so equal rows are numbered, and the numbered ones compared.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, ObjectName, ObjectNamePart, SetExpr, SetOperator, TableFactor, VisitMut, VisitorMut,
};

use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;
use crate::sql::parse::parse_statement;
use crate::sql::shorthand::query_of;

const LEFT: &str = "__left";
const RIGHT: &str = "__right";

/// Returns the operation on numbered rows. `names` are the columns of the left side.
pub(super) fn numbered(op: SetOperator, left: SetExpr, right: SetExpr, names: &[String]) -> Result<SetExpr> {
    let columns: Vec<String> = (0..names.len()).map(|index| format!("c{index}")).collect();
    let columns = columns.join(", ");
    let side = |side: &str| {
        format!(
            "SELECT {columns}, row_number() OVER (PARTITION BY {columns} ORDER BY 1) AS nr FROM {side} AS s({columns})"
        )
    };
    let shown = names.iter().enumerate().map(|(index, name)| format!("c{index} AS {}", quote_identifier(name)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let text = format!("SELECT {shown} FROM ({} {op} {}) AS numbered", side(LEFT), side(RIGHT));
    let parsed = parse_statement(&text)?.statement;
    let datafusion::sql::parser::Statement::Statement(statement) = parsed else { return Err(not_a_query(&text)) };
    let ast::Statement::Query(mut query) = *statement else { return Err(not_a_query(&text)) };
    let mut sides = ComparedSides { left: Some(left), right: Some(right) };
    let _: ControlFlow<()> = VisitMut::visit(query.as_mut(), &mut sides);
    Ok(*query.body)
}

fn not_a_query(text: &str) -> EngineError {
    EngineError::Internal(format!("`{text}` is no query"))
}

/// Puts the sides in the places of their names.
struct ComparedSides {
    left: Option<SetExpr>,
    right: Option<SetExpr>,
}

impl VisitorMut for ComparedSides {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name: ObjectName(parts), alias, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let [ObjectNamePart::Identifier(name)] = parts.as_slice() else { return ControlFlow::Continue(()) };
        let side = match name.value.as_str() {
            LEFT => self.left.take(),
            RIGHT => self.right.take(),
            _ => None,
        };
        if let Some(side) = side {
            *factor = TableFactor::Derived {
                lateral: false,
                subquery: Box::new(query_of(side)),
                alias: alias.clone(),
                sample: None,
            };
        }
        ControlFlow::Continue(())
    }
}

//! `LIMIT 10%` as a relation: a query of which a share of the rows is kept ([`super::relations`] plans it).

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, LimitClause, ObjectName, ObjectNamePart,
    Query, SetExpr,
};

use super::marks;
use super::relations::derived;
use super::shorthand::{number, plain, query_of, select_star, table_factor, taken};
use super::syntax::any_expr;
use crate::error::{EngineError, Result};

/// Makes a relation of a query with a LIMIT in percent. Errors: an OFFSET that is no number beside it, and a
/// LIMIT or an OFFSET of a query.
pub(super) fn write_out_percent(query: &mut Query) -> Result<()> {
    if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
        let of_query = |value: &Expr| any_expr(value, |part| matches!(part, Expr::Subquery(_)));
        let refused =
            [limit.as_ref().is_some_and(of_query), offset.as_ref().is_some_and(|offset| of_query(&offset.value))];
        for (is_refused, clause, op) in [(refused[0], "LIMIT", "<="), (refused[1], "OFFSET", ">")] {
            if is_refused {
                return Err(EngineError::Unsupported {
                    what: format!("{clause} of a query"),
                    hint: format!("write the number, or QUALIFY row_number() OVER (ORDER BY key) {op} (SELECT ...)"),
                });
            }
        }
    }
    let Some(LimitClause::LimitOffset { limit: Some(Expr::Function(call)), offset, limit_by }) =
        &mut query.limit_clause
    else {
        return Ok(());
    };
    if !call.name.to_string().eq_ignore_ascii_case(marks::LIMIT_PERCENT) {
        return Ok(());
    }
    let Some(percent) = only_argument(call) else { return Ok(()) };
    let offset = match offset {
        None => number("0"),
        Some(offset) => taken(&mut offset.value),
    };
    if !matches!(&offset, Expr::Value(_)) || !limit_by.is_empty() {
        return Err(EngineError::Unsupported {
            what: "OFFSET of anything but a number beside a LIMIT in percent".into(),
            hint: "write the number".into(),
        });
    }
    query.limit_clause = None;
    let inner = std::mem::replace(query, query_of(SetExpr::Select(Box::new(select_star(Vec::new())))));
    let relation = SetExpr::Select(Box::new(select_star(vec![plain(derived(inner, None))])));
    let arguments = vec![Expr::Subquery(Box::new(query_of(relation))), percent, offset];
    let name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(marks::LIMIT_PERCENT))]);
    let from = vec![plain(table_factor(name, Some(arguments)))];
    *query.body = SetExpr::Select(Box::new(select_star(from)));
    Ok(())
}

fn only_argument(call: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &call.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] => Some(value.clone()),
        _ => None,
    }
}

//! `LIMIT 10%` and `LIMIT (SELECT ...)` as relations: a query of which a share of the rows is kept, or as many as another query says
//! ([`super::relations`] plans them).

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, LimitClause, ObjectName, ObjectNamePart,
    Query, SetExpr, Value,
};

use super::marks;
use super::relations::derived;
use super::shorthand::{number, plain, query_of, select_star, table_factor, taken};
use super::syntax::any_expr;
use crate::error::{EngineError, Result};

/// Makes a relation of a query with a LIMIT in percent, or with a LIMIT or an OFFSET of a query. Errors: an OFFSET that is no number
/// beside a LIMIT in percent, and LIMIT BY beside one of a query.
pub(super) fn write_out_percent(query: &mut Query) -> Result<()> {
    if let Some(LimitClause::LimitOffset { limit, offset, limit_by }) = &query.limit_clause {
        let of_query = |value: &Expr| any_expr(value, |part| matches!(part, Expr::Subquery(_)));
        if limit.as_ref().is_some_and(of_query) || offset.as_ref().is_some_and(|offset| of_query(&offset.value)) {
            if !limit_by.is_empty() {
                return Err(EngineError::Unsupported {
                    what: "LIMIT BY beside a LIMIT of a query".into(),
                    hint: "write the number".into(),
                });
            }
            let nothing = || Expr::Value(Value::Null.into());
            let limit = limit.clone().unwrap_or_else(nothing);
            let offset = offset.as_ref().map_or_else(nothing, |offset| offset.value.clone());
            // What is counted may be of the same WITH.
            let with = query.with.take();
            write_out_rows(query, marks::LIMIT_ROWS, limit, offset);
            query.with = with;
            return Ok(());
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
    write_out_rows(query, marks::LIMIT_PERCENT, percent, offset);
    Ok(())
}

/// Makes a relation of a query of which some of the rows are kept.
fn write_out_rows(query: &mut Query, mark: &str, limit: Expr, offset: Expr) {
    query.limit_clause = None;
    let inner = std::mem::replace(query, query_of(SetExpr::Select(Box::new(select_star(Vec::new())))));
    let relation = SetExpr::Select(Box::new(select_star(vec![plain(derived(inner, None))])));
    let arguments = vec![Expr::Subquery(Box::new(query_of(relation))), limit, offset];
    let name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(mark))]);
    let from = vec![plain(table_factor(name, Some(arguments)))];
    *query.body = SetExpr::Select(Box::new(select_star(from)));
}

fn only_argument(call: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &call.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] => Some(value.clone()),
        _ => None,
    }
}

//! `unnest(value)` of a struct in a select list: a column for each of its fields, called as the field is. The planner would call
//! them by the expression.

use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Select, SelectItem,
};

use super::{Expander, Qualified, Source};
use crate::identifiers::same_name;
use crate::sql::shorthand::{call, text};
use crate::sql::syntax::{count_nodes, text_of};

/// The most nodes that the fields of a struct of a list are written out as: each has the list.
const MAX_NODES: usize = 100_000;

/// Writes out the fields of structs that are written as such, or are columns.
pub(super) fn write_out_struct_unnests<S: ContextProvider>(expander: &Expander<'_, S>, select: &mut Select) {
    let mut unnested = select.projection.iter().filter_map(unnested_value).peekable();
    if unnested.peek().is_none() {
        return;
    }
    let names_column = unnested.any(|value| matches!(value, Expr::Identifier(_) | Expr::CompoundIdentifier(_)));
    // Where the tables cannot be planned by themselves (LATERAL ones), the planner has to do.
    let sources = match names_column {
        true => expander.listed(&select.from, Qualified::Always).unwrap_or_default(),
        false => Vec::new(),
    };
    let mut items = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match unnested_value(&item).and_then(|value| fields_of(value, &sources)) {
            Some(fields) => items.extend(fields.into_iter().map(|(name, expr)| {
                let alias = Ident::with_quote('"', name);
                SelectItem::ExprWithAlias { expr, alias }
            })),
            None => items.push(item),
        }
    }
    select.projection = items;
}

/// Returns the value of an item that is `unnest(value)`.
fn unnested_value(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(Expr::Function(function))
            if function.name.to_string().eq_ignore_ascii_case("unnest") =>
        {
            only_argument(function)
        }
        _ => None,
    }
}

fn only_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [argument] => value_of(argument),
        _ => None,
    }
}

fn value_of(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    }
}

/// Returns the first element of a list that is written out: `[a, b]`, or the call that it was made.
fn first_element(list: &Expr) -> Option<&Expr> {
    match list {
        Expr::Nested(inner) => first_element(inner),
        Expr::Array(array) => array.elem.first(),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("make_array") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            value_of(list.args.first()?)
        }
        _ => None,
    }
}

/// Returns the fields of a struct that a call makes of names and values; `None` for other calls.
fn named_values(function: &Function) -> Option<Vec<(String, Expr)>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let name = function.name.to_string().to_lowercase();
    let fields: Option<Vec<(String, Expr)>> = match name.as_str() {
        "struct_pack" | "row_pack" => list.args.iter().map(named_argument).collect(),
        "named_struct" => {
            let field = |pair: &[FunctionArg]| {
                let [name, value] = pair else { return None };
                Some((text_of(value_of(name)?)?.to_owned(), value_of(value)?.clone()))
            };
            list.args.chunks(2).map(field).collect()
        }
        _ => None,
    };
    fields.filter(|fields| !fields.is_empty())
}

fn named_argument(argument: &FunctionArg) -> Option<(String, Expr)> {
    match argument {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => Some((name.value.clone(), value.clone())),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value @ Expr::Identifier(name))) => {
            Some((name.value.clone(), value.clone()))
        }
        _ => None,
    }
}

/// Returns the fields of a struct with their names; `None` for what is none, as far as it can be told.
fn fields_of(value: &Expr, sources: &[Source]) -> Option<Vec<(String, Expr)>> {
    let (table, column) = match value {
        Expr::Dictionary(fields) => {
            return Some(fields.iter().map(|field| (field.key.value.clone(), field.value.as_ref().clone())).collect());
        }
        // The fields of the structs of a list that is written out.
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("unnest") => {
            let Expr::Dictionary(fields) = first_element(only_argument(function)?)? else { return None };
            if count_nodes(std::slice::from_ref(value)).saturating_mul(fields.len()) > MAX_NODES {
                return None;
            }
            let names = fields.iter().map(|field| field.key.value.clone());
            let field = |name: String| {
                let value = call("get_field", vec![value.clone(), text(&name)]);
                (name, value)
            };
            return Some(names.map(field).collect());
        }
        Expr::Function(function) => return named_values(function),
        Expr::Identifier(column) => (None, column),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, column] => (Some(table), column),
            _ => return None,
        },
        _ => return None,
    };
    let is_of_table = |source: &Source| {
        table.is_none_or(|table| source.table.as_ref().is_some_and(|own| same_name(own, &table.value)))
    };
    let is_named = |source: &&Source| same_name(&source.name, &column.value) && is_of_table(source);
    let source = sources.iter().find(is_named).filter(|source| !source.fields.is_empty())?;
    let field = |field: &String| (field.clone(), call("get_field", vec![source.expr.clone(), text(field)]));
    Some(source.fields.iter().map(field).collect())
}

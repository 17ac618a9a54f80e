//! `FROM unnest(list) WITH ORDINALITY` and that of other functions: a query of the function's rows with their numbers, from 1.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Ident, ObjectNamePart, Select, SelectItem, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, WildcardAdditionalOptions, WindowSpec, WindowType,
};

use super::json_tables::is_json_table;
use super::series_of_columns::is_series;
use super::shorthand::{call, number, plain, query_of, select_star};
use super::table_calls::{alias_of, names_column, table_call};

/// What PostgreSQL calls the column of the numbers.
pub(super) const ORDINALITY: &str = "ordinality";

/// Writes out the numbers of a function's rows; other relations stay as they are.
pub(super) fn write_out_ordinality(factor: &mut TableFactor) {
    if let Some(query) = numbered_elements(factor) {
        *factor = query;
        return;
    }
    if is_numbered_by_list(factor) {
        return;
    }
    let (alias, name, is_plain) = match factor {
        TableFactor::UNNEST { with_ordinality, alias, array_exprs, .. } if *with_ordinality => {
            *with_ordinality = false;
            (alias.take(), Ident::new("unnest"), array_exprs.len() == 1)
        }
        TableFactor::Table { with_ordinality, alias, name, args: Some(_), .. }
        | TableFactor::Function { with_ordinality, alias, name, .. }
            if *with_ordinality =>
        {
            *with_ordinality = false;
            let name = name.0.last().and_then(ObjectNamePart::as_ident).cloned();
            (alias.take(), name.unwrap_or_else(|| Ident::new("rows")), false)
        }
        _ => return,
    };
    let mut number = call("row_number", Vec::new());
    if let Expr::Function(function) = &mut number {
        let window =
            WindowSpec { window_name: None, partition_by: Vec::new(), order_by: Vec::new(), window_frame: None };
        function.over = Some(WindowType::WindowSpec(window));
    }
    let select = Select {
        projection: vec![
            SelectItem::Wildcard(WildcardAdditionalOptions::default()),
            SelectItem::ExprWithAlias { expr: number, alias: Ident::new(ORDINALITY) },
        ],
        ..select_star(vec![plain(factor.clone())])
    };
    let alias = alias.unwrap_or_else(|| TableAlias { explicit: true, name, columns: Vec::new(), at: None });
    let alias = if is_plain { with_columns(alias) } else { alias };
    *factor = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query_of(SetExpr::Select(Box::new(select)))),
        alias: Some(alias),
        sample: None,
    };
}

/// Returns the elements of a list of outer columns with their places, which a window cannot number: it is of all rows.
fn numbered_elements(factor: &mut TableFactor) -> Option<TableFactor> {
    let TableFactor::UNNEST { with_ordinality: true, with_offset: false, alias, array_exprs, .. } = factor else {
        return None;
    };
    let [list] = array_exprs.as_slice() else { return None };
    if !names_column(list) {
        return None;
    }
    let projection = vec![
        SelectItem::ExprWithAlias { expr: call("unnest", vec![list.clone()]), alias: Ident::new("unnest") },
        places_of(list.clone()),
    ];
    let select = Select { projection, ..select_star(Vec::new()) };
    let alias = alias.take().unwrap_or_else(|| alias_of("unnest"));
    Some(TableFactor::Derived {
        lateral: true,
        subquery: Box::new(query_of(SetExpr::Select(Box::new(select)))),
        alias: Some(with_columns(alias)),
        sample: None,
    })
}

/// Calls the column of plain values what the relation is called, as PostgreSQL does, where the alias has no names of columns.
fn with_columns(mut alias: TableAlias) -> TableAlias {
    if alias.columns.is_empty() {
        let names = [alias.name.clone(), Ident::new(ORDINALITY)];
        alias.columns = names.map(|name| TableAliasColumnDef { name, data_type: None }).into();
    }
    alias
}

/// Returns whether a call's rows are those of a list of outer columns, whose rewriting numbers them.
fn is_numbered_by_list(factor: &mut TableFactor) -> bool {
    table_call(factor).is_some_and(|called| {
        let is_of_list = is_series(called.name) || is_json_table(called.name);
        called.is_numbered && is_of_list && called.values().is_some_and(|values| values.iter().any(names_column))
    })
}

/// Returns the column of the places of a list's elements, from 1, beside the one of the elements.
pub(super) fn places_of(list: Expr) -> SelectItem {
    let length = Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(call("len", vec![list])),
        data_type: DataType::BigInt(None),
        array: false,
        format: None,
    };
    let end = Expr::BinaryOp { left: Box::new(length), op: BinaryOperator::Plus, right: Box::new(number("1")) };
    let places = call("unnest", vec![call("range", vec![number("1"), end])]);
    SelectItem::ExprWithAlias { expr: places, alias: Ident::new(ORDINALITY) }
}

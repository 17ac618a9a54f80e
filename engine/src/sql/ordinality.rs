//! `FROM unnest(list) WITH ORDINALITY` and that of other functions: a query of the function's rows with their numbers, from 1.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectNamePart, Select, SelectItem, SetExpr, TableAlias, TableFactor, WildcardAdditionalOptions,
    WindowSpec, WindowType,
};

use super::shorthand::{call, plain, query_of, select_star};

/// Writes out the numbers of a function's rows; other relations stay as they are.
pub(super) fn write_out_ordinality(factor: &mut TableFactor) {
    let (alias, name) = match factor {
        TableFactor::UNNEST { with_ordinality, alias, .. } if *with_ordinality => {
            *with_ordinality = false;
            (alias.take(), Ident::new("unnest"))
        }
        TableFactor::Table { with_ordinality, alias, name, args: Some(_), .. } if *with_ordinality => {
            *with_ordinality = false;
            let name = name.0.last().and_then(ObjectNamePart::as_ident).cloned();
            (alias.take(), name.unwrap_or_else(|| Ident::new("rows")))
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
            SelectItem::ExprWithAlias { expr: number, alias: Ident::new("ordinality") },
        ],
        ..select_star(vec![plain(factor.clone())])
    };
    let alias = alias.unwrap_or_else(|| TableAlias { explicit: true, name, columns: Vec::new(), at: None });
    *factor = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query_of(SetExpr::Select(Box::new(select)))),
        alias: Some(alias),
        sample: None,
    };
}

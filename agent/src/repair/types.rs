//! Columns that are computed with as another type than they have: sums and averages of texts, and parts of dates that
//! are kept as texts.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, Statement,
    VisitMut, VisitorMut,
};

use super::joins::expression;
use super::scopes::{Scopes, column_of};
use super::{KnownTables, Repair, RepairKind};

/// Functions of numbers, and those of times.
const OF_NUMBERS: [&str; 10] =
    ["sum", "avg", "mean", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "round"];
const OF_TIMES: [&str; 14] = [
    "year",
    "month",
    "day",
    "quarter",
    "week",
    "hour",
    "minute",
    "dayofweek",
    "dayofyear",
    "dayname",
    "monthname",
    "date_part",
    "date_trunc",
    "date_diff",
];

/// Casts the texts that numbers or times are taken of.
pub(super) fn repair(statement: &mut Statement, known: &KnownTables, database: &str, repairs: &mut Vec<Repair>) {
    let mut caster = TextCaster { scopes: Scopes::new(known, database), repairs };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut caster);
}

struct TextCaster<'a> {
    scopes: Scopes<'a>,
    repairs: &'a mut Vec<Repair>,
}

impl VisitorMut for TextCaster<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.scopes.enter_select(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.scopes.leave_select();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) => {
                let name = name.to_string().to_lowercase();
                let as_time = OF_TIMES.contains(&name.as_str());
                if as_time || OF_NUMBERS.contains(&name.as_str()) {
                    for argument in &mut list.args {
                        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument {
                            self.cast(argument, as_time);
                        }
                    }
                }
            }
            Expr::Extract { expr, .. } => self.cast(expr, true),
            Expr::BinaryOp { left, op, right } => {
                use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
                if matches!(op, Divide | Minus | Modulo | Multiply | Plus) {
                    self.cast(left, false);
                    self.cast(right, false);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl TextCaster<'_> {
    /// Casts a column of texts.
    fn cast(&mut self, expr: &mut Expr, as_time: bool) {
        let is_text =
            self.scopes.inner_to_outer().find_map(|scope| column_of(scope, expr)).is_some_and(|(_, _, kind)| {
                kind.is_some_and(|kind| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View))
            });
        if !is_text {
            return;
        }
        let (text, why) = match as_time {
            true => (format!("CAST({expr} AS TIMESTAMP)"), "the column holds texts; they are read as times"),
            false => (
                format!("TRY_CAST({expr} AS DOUBLE)"),
                "the column holds texts; they are read as numbers, and those that are none count as null",
            ),
        };
        let Some(cast) = expression(&text) else { return };
        let repair = Repair::new(RepairKind::Type, expr.to_string(), text, why);
        *expr = cast;
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }
}

//! Window functions: `row_number`, `prev`, `next`, `row_cumsum`, `row_rank_dense`, `row_rank_min`. Each
//! becomes a window of its own below the operator, so that one may use another's result.

mod sessions;

use datafusion::functions_aggregate::min_max::max_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition, WindowFunctionParams};
use datafusion::logical_expr::{Expr as PlanExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, cast, lit, when};
use datafusion::prelude::coalesce;
use datafusion::scalar::ScalarValue;

use super::{BindErrorCode, Binder, ExpressionScope, Result, Typed, Windows, constant_of, fail, invalid, null_of};
use crate::ast::FunctionCall;
use crate::plan::{field_column, field_of, plain_key};
use crate::span::Span;
use crate::types::KqlType;
pub(crate) use sessions::{is_sessions_function, sessions_udwf};

impl<'a> Binder<'a> {
    /// Binds a call of a window function; `None` when it is none.
    pub(crate) fn window_function(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Option<Typed>> {
        let name = call.function.text.as_str();
        if !matches!(
            name,
            "row_number"
                | "prev"
                | "next"
                | "row_cumsum"
                | "row_rank"
                | "row_rank_dense"
                | "row_rank_min"
                | "row_window_session"
        ) {
            return Ok(None);
        }
        let Some(windows) = scope.windows else {
            return invalid(span, format!("`{name}` cannot stand here; it needs the order of rows"));
        };
        if !windows.is_serialized {
            return invalid(span, format!("`{name}` needs rows in an order; put `sort by` or `serialize` before it"));
        }
        let arguments = self.arguments(call, scope)?;
        let most = match name {
            "prev" | "next" => 3,
            "row_window_session" => 4,
            _ => 2,
        };
        if arguments.len() > most {
            let message = format!("{name}() takes at most {most} arguments, not {}", arguments.len());
            return fail(BindErrorCode::TypeMismatch, span, message);
        }
        let made = match name {
            "row_number" => self.row_number(arguments, span, windows)?,
            "prev" | "next" => self.neighbour(name, arguments, span, windows)?,
            "row_cumsum" => self.cumulative_sum(arguments, span, windows)?,
            "row_rank" | "row_rank_dense" | "row_rank_min" => self.rank(name, arguments, span, windows)?,
            _ => self.session_start(arguments, span, windows)?,
        };
        Ok(Some(made))
    }

    fn row_number(&mut self, arguments: Vec<Typed>, span: Span, windows: &Windows) -> Result<Typed> {
        let mut arguments = arguments.into_iter();
        let start = match arguments.next() {
            Some(start) if matches!(start.kql_type, KqlType::Int | KqlType::Long | KqlType::Dynamic) => {
                self.convert(start, KqlType::Long, span)?.expr
            }
            Some(other) => {
                let message = format!("`row_number` starts at a whole number, not at a {}", other.kql_type.name());
                return fail(BindErrorCode::TypeMismatch, span, message);
            }
            None => lit(1_i64),
        };
        let group = self.restarts(arguments.next(), span, windows)?;
        let number = self.window(
            WindowFunctionDefinition::WindowUDF(row_number_udwf()),
            Vec::new(),
            group,
            WindowFrame::new(None),
            windows,
        );
        let number = cast(number, arrow::datatypes::DataType::Int64);
        Ok(Typed::new(number + start - lit(1_i64), KqlType::Long))
    }

    fn neighbour(&mut self, name: &str, arguments: Vec<Typed>, span: Span, windows: &Windows) -> Result<Typed> {
        let mut arguments = arguments.into_iter();
        let Some(value) = arguments.next() else {
            return invalid(span, format!("`{name}` takes a column"));
        };
        let offset = match arguments.next() {
            Some(offset) => {
                let offset = self.convert(offset, KqlType::Long, span)?;
                match constant_of(&offset.expr)? {
                    Some(offset @ ScalarValue::Int64(Some(1..))) => offset,
                    _ => return invalid(span, format!("`{name}` takes a constant distance of 1 or more")),
                }
            }
            None => ScalarValue::Int64(Some(1)),
        };
        let default = match arguments.next() {
            Some(default) => {
                let default = self.convert(default, value.kql_type, span)?;
                match constant_of(&default.expr)? {
                    Some(default) => default,
                    None => return invalid(span, format!("the default of `{name}` must be a constant")),
                }
            }
            None => null_of(value.kql_type),
        };
        let function = if name == "prev" { lag_udwf() } else { lead_udwf() };
        let kql_type = value.kql_type;
        let neighbour = self.window(
            WindowFunctionDefinition::WindowUDF(function),
            vec![value.expr, lit(offset), lit(default)],
            None,
            WindowFrame::new(None),
            windows,
        );
        Ok(Typed::new(neighbour, kql_type))
    }

    fn cumulative_sum(&mut self, arguments: Vec<Typed>, span: Span, windows: &Windows) -> Result<Typed> {
        let mut arguments = arguments.into_iter();
        let Some(value) = arguments.next() else {
            return invalid(span, "`row_cumsum` takes a number");
        };
        let value = match value.kql_type {
            KqlType::Int => self.convert(value, KqlType::Long, span)?,
            KqlType::Long | KqlType::Real | KqlType::Decimal | KqlType::TimeSpan => value,
            KqlType::Dynamic => self.convert(value, KqlType::Real, span)?,
            other => {
                return fail(BindErrorCode::TypeMismatch, span, format!("a {} cannot be added up", other.name()));
            }
        };
        let group = self.restarts(arguments.next(), span, windows)?;
        let kql_type = value.kql_type;
        let sum = self.window(
            WindowFunctionDefinition::AggregateUDF(sum_udaf()),
            vec![value.expr],
            group,
            up_to_here(),
            windows,
        );
        let zero = ScalarValue::new_zero(&kql_type.arrow_type())?;
        Ok(Typed::new(coalesce(vec![sum, lit(zero)]), kql_type))
    }

    fn rank(&mut self, name: &str, arguments: Vec<Typed>, span: Span, windows: &Windows) -> Result<Typed> {
        let mut arguments = arguments.into_iter();
        let Some(term) = arguments.next() else {
            return invalid(span, format!("`{name}` takes a column"));
        };
        let term = plain_key(term)?;
        let group = self.restarts(arguments.next(), span, windows)?;
        let shift = |function| WindowFunctionDefinition::WindowUDF(function);
        let before = self.window(
            shift(lag_udwf()),
            vec![term.expr.clone(), lit(1_i64)],
            group.clone(),
            WindowFrame::new(None),
            windows,
        );
        let number = self.window(shift(row_number_udwf()), Vec::new(), group.clone(), WindowFrame::new(None), windows);
        let number = cast(number, arrow::datatypes::DataType::Int64);
        let is_new = number.clone().eq(lit(1_i64)).or(datafusion::logical_expr::binary_expr(
            term.expr,
            datafusion::logical_expr::Operator::IsDistinctFrom,
            before,
        ));
        // `row_rank` is the old name of the dense one.
        let (function, value) = if name != "row_rank_min" {
            (sum_udaf(), when(is_new, lit(1_i64)).otherwise(lit(0_i64))?)
        } else {
            (max_udaf(), when(is_new, number).otherwise(lit(0_i64))?)
        };
        let rank =
            self.window(WindowFunctionDefinition::AggregateUDF(function), vec![value], group, up_to_here(), windows);
        Ok(Typed::new(rank, KqlType::Long))
    }

    /// `row_window_session(time, from_first, from_previous, restart)`.
    fn session_start(&mut self, arguments: Vec<Typed>, span: Span, windows: &Windows) -> Result<Typed> {
        let mut arguments = arguments.into_iter();
        let (Some(value), Some(from_first), Some(from_previous)) =
            (arguments.next(), arguments.next(), arguments.next())
        else {
            return invalid(span, "`row_window_session` takes a time, two distances and a restart");
        };
        if !matches!(value.kql_type, KqlType::DateTime | KqlType::TimeSpan | KqlType::Long) {
            let message = format!("`row_window_session` takes a datetime, not a {}", value.kql_type.name());
            return fail(BindErrorCode::TypeMismatch, span, message);
        }
        let kql_type = value.kql_type;
        let distance = if kql_type == KqlType::Long { KqlType::Long } else { KqlType::TimeSpan };
        let is_distance = |given: &Typed| match given.kql_type {
            KqlType::Int | KqlType::Long => distance == KqlType::Long,
            KqlType::TimeSpan => distance == KqlType::TimeSpan,
            other => other == KqlType::Dynamic,
        };
        if let Some(other) = [&from_first, &from_previous].into_iter().find(|given| !is_distance(given)) {
            let (wanted, found) = (distance.name(), other.kql_type.name());
            let message = format!("a distance of `row_window_session` is a {wanted} here, not a {found}");
            return fail(BindErrorCode::TypeMismatch, span, message);
        }
        let restart = match arguments.next() {
            Some(restart) => self.as_condition(restart, span)?,
            None => lit(false),
        };
        let arguments = vec![
            value.expr,
            self.convert(from_first, distance, span)?.expr,
            self.convert(from_previous, distance, span)?.expr,
            restart,
        ];
        let function = WindowFunctionDefinition::WindowUDF(sessions_udwf());
        let start = self.window(function, arguments, None, WindowFrame::new(None), windows);
        Ok(Typed::new(start, kql_type))
    }

    /// Returns the number of restarts so far, where a function restarts. The rows between two restarts are worked on
    /// apart from the others, so all are numbered first: by its number each finds its place again.
    fn restarts(&mut self, restart: Option<Typed>, span: Span, windows: &Windows) -> Result<Option<PlanExpr>> {
        let Some(restart) = restart else { return Ok(None) };
        if windows.numbers.borrow().is_none() {
            let number = WindowFunctionDefinition::WindowUDF(row_number_udwf());
            let number = self.window(number, Vec::new(), None, WindowFrame::new(None), windows);
            *windows.numbers.borrow_mut() = field_of(&number).map(str::to_owned);
        }
        let restart = self.as_condition(restart, span)?;
        let counted = when(restart, lit(1_i64)).otherwise(lit(0_i64))?;
        let group =
            self.window(WindowFunctionDefinition::AggregateUDF(sum_udaf()), vec![counted], None, up_to_here(), windows);
        Ok(Some(group))
    }

    /// Adds a window and returns its column.
    fn window(
        &mut self,
        function: WindowFunctionDefinition,
        arguments: Vec<PlanExpr>,
        group: Option<PlanExpr>,
        frame: WindowFrame,
        windows: &Windows,
    ) -> PlanExpr {
        let field = self.field("window");
        let mut partition_by = windows.partition.clone();
        partition_by.extend(group);
        let window = PlanExpr::from(WindowFunction {
            fun: function,
            params: WindowFunctionParams {
                args: arguments,
                partition_by,
                order_by: windows.row_order(),
                window_frame: frame,
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        });
        windows.steps.borrow_mut().push(window.alias(field.clone()));
        field_column(&field)
    }
}

/// The frame from the first row to the current one.
fn up_to_here() -> WindowFrame {
    WindowFrame::new_bounds(
        WindowFrameUnits::Rows,
        WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::CurrentRow,
    )
}

//! Options of a query, which `set` or the request gives it: those that Kusto calls request properties. What changes the
//! answer is done here; most others are hints to Kusto's own engine, and passed over.

use datafusion::logical_expr::{LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;

use super::{Binder, GivenParameter, Result, Typed, constant_of, invalid, text_of};
use crate::ast::{BinaryOperator, ExprKind, Literal, ParameterValue, Statement, StatementKind};
use crate::functions::ScalarOperator;
use crate::plan::Relation;
use crate::span::Span;
use crate::types::KqlType;

/// What stands before an option's name among the parameters that come beside a query.
const GIVEN_OPTION: &str = "set ";

/// The options that have a meaning while a query is bound.
#[derive(Default)]
pub(super) struct QueryOptions {
    /// The most rows of a result.
    most_rows: Option<usize>,
    /// Whether results are the columns of what the query returns.
    are_schemas: bool,
    /// Whether a table that is not there is left out of a union.
    is_best_effort: bool,
    /// The column by which rows of tables are left out, and its first and its last value.
    scope: Option<(String, [Option<Typed>; 2])>,
}

impl<'a> Binder<'a> {
    /// Reads the options of the query's statements, and those given beside it, which give way.
    pub(super) fn read_options(&mut self, statements: &'a [Statement]) -> Result<()> {
        for statement in statements {
            if let StatementKind::Set { name, value } = &statement.kind {
                self.options.entry(&name.text).or_insert((value.as_ref(), statement.span));
            }
        }
        if let Some(now) = self.option_of("query_now", KqlType::DateTime)? {
            match constant_of(&now.expr)? {
                Some(ScalarValue::Int64(Some(ticks))) => self.now_ticks = ticks,
                _ => return invalid(self.option_span("query_now"), "`query_now` is no datetime"),
            }
        }
        self.count_option("truncationmaxrecords", "rows")?;
        self.count_option("truncationmaxsize", "bytes")?;
        self.option_of("servertimeout", KqlType::TimeSpan)?;
        self.query_options.most_rows = self.count_option("query_take_max_records", "rows")?;
        self.query_options.are_schemas = self.truth_option("query_results_apply_getschema")?;
        self.query_options.is_best_effort = self.truth_option("best_effort")?;
        if let Some(column) = self.option_of("query_datetimescope_column", KqlType::String)? {
            let bounds = [
                self.option_of("query_datetimescope_from", KqlType::DateTime)?,
                self.option_of("query_datetimescope_to", KqlType::DateTime)?,
            ];
            let column = text_of(constant_of(&column.expr)?.as_ref()).unwrap_or_default().to_owned();
            self.query_options.scope = Some((column, bounds));
        }
        Ok(())
    }

    /// Whether tables that are not there are left out of unions.
    pub(crate) fn is_best_effort(&self) -> bool {
        self.query_options.is_best_effort
    }

    /// Returns the rows of a stored table that are within the query's scope of times, where it has one.
    pub(super) fn within_scope(&mut self, table: Relation, span: Span) -> Result<Relation> {
        let Some((column, bounds)) = self.query_options.scope.clone() else { return Ok(table) };
        let found = table.column(&column).filter(|column| column.kql_type == KqlType::DateTime);
        let Some(time) = found.map(|column| column.typed()) else { return Ok(table) };
        let mut plan = LogicalPlanBuilder::from(table.plan.clone());
        for (operator, bound) in [BinaryOperator::GreaterOrEqual, BinaryOperator::LessOrEqual].into_iter().zip(bounds) {
            let Some(bound) = bound else { continue };
            let operator = ScalarOperator::Binary(operator);
            plan = plan.filter(self.apply_operator(operator, vec![time.clone(), bound], span)?.expr)?;
        }
        let plan = plan.build()?;
        Ok(table.over(plan))
    }

    /// Returns a result as the query's options want it.
    pub(super) fn as_asked(&mut self, result: Relation) -> Result<Relation> {
        let result = if self.query_options.are_schemas { self.get_schema(result)? } else { result };
        let Some(rows) = self.query_options.most_rows else { return Ok(result) };
        let plan = LogicalPlanBuilder::from(result.plan_in_order()?).limit(0, Some(rows))?.build()?;
        Ok(result.over(plan))
    }

    fn option_span(&self, name: &str) -> Span {
        self.options.get(name).map(|(_, span)| *span).unwrap_or_default()
    }

    /// Returns the value of an option as a type. Errors: it is no value of that type.
    fn option_of(&mut self, name: &str, kql_type: KqlType) -> Result<Option<Typed>> {
        let span = self.option_span(name);
        let answers = self.answers;
        let written = self.options.get(name).map(|(value, _)| *value);
        let value = match (written, answers.parameters.get(&format!("{GIVEN_OPTION}{name}"))) {
            (Some(Some(ParameterValue::Literal(literal))), _) => self.literal(literal, span)?,
            (Some(Some(ParameterValue::Name(word))), _) => Typed::text(&word.text),
            (Some(None), _) => Typed::new(lit(true), KqlType::Bool),
            (None, Some(given)) => self.given_option(given, span)?,
            (None, None) => return Ok(None),
        };
        let fits = value.kql_type == kql_type || value.kql_type == KqlType::String;
        let typed = if fits { Some(self.convert(value, kql_type, span)?) } else { None };
        match typed {
            Some(typed) if !constant_of(&typed.expr)?.is_none_or(|value| value.is_null()) => Ok(Some(typed)),
            _ => invalid(span, format!("the option `{name}` is a {}", kql_type.name())),
        }
    }

    fn given_option(&mut self, given: &'a GivenParameter, span: Span) -> Result<Typed> {
        match given.literal().map(|literal| &literal.kind) {
            Some(ExprKind::Literal(literal @ (Literal::Bool(_) | Literal::Long(_) | Literal::Timespan(_)))) => {
                self.literal(literal, span)
            }
            Some(ExprKind::Literal(literal @ Literal::Typed { .. })) => self.literal(literal, span),
            _ => Ok(Typed::text(given.text())),
        }
    }

    fn truth_option(&mut self, name: &str) -> Result<bool> {
        let Some(value) = self.option_of(name, KqlType::Bool)? else { return Ok(false) };
        Ok(constant_of(&value.expr)? == Some(ScalarValue::Boolean(Some(true))))
    }

    fn count_option(&mut self, name: &str, of: &str) -> Result<Option<usize>> {
        let Some(value) = self.option_of(name, KqlType::Long)? else { return Ok(None) };
        match constant_of(&value.expr)? {
            Some(ScalarValue::Int64(Some(count @ 0..))) => Ok(usize::try_from(count).ok()),
            _ => invalid(self.option_span(name), format!("the option `{name}` is a number of {of}")),
        }
    }
}

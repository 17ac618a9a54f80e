//! The values of a PIVOT that gives none: found by a query that is authorised and bounded as any is, before the statement
//! itself is planned.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName, Value,
};
use futures::TryStreamExt;

use super::Session;
use crate::error::{EngineError, Result};
use crate::limits::{Interrupt, QueryClock};
use crate::sql::parameters::ParameterValues;
use crate::sql::parse::ParsedStatement;
use crate::sql::pivot_requests::{PivotValue, give_pivot_values, pivot_query};
use crate::sql::time_comparisons::settle_times;
use crate::sql::{FileSources, MAX_PIVOT_COLUMNS};

/// The most pivots of one statement whose values are looked for.
const MAX_OPEN_PIVOTS: usize = 16;

impl Session {
    /// Finds the values of the pivots of a statement that give none, and puts them in. Returns whether there were any.
    pub(super) async fn find_pivot_values(
        &self,
        state: &SessionState,
        parsed: &mut ParsedStatement,
        files: &FileSources,
        parameters: &ParameterValues,
    ) -> Result<bool> {
        for found in 0..MAX_OPEN_PIVOTS {
            let nesting = parsed.nesting;
            let Some(query) = nesting.with_room(|| pivot_query(&parsed.statement))? else { return Ok(found > 0) };
            let types = parameters.types(parsed.has_named_parameters());
            let planner = self.planner(state, &types, files);
            let plan = planner.plan(query).await?;
            let used = crate::sql::parameters::parameter_schema(&plan)?;
            let bound = match (parameters, used.fields().is_empty()) {
                (_, true) => plan,
                (ParameterValues::Row(values), false) => plan.with_param_values(values.clone())?,
                (_, false) => {
                    return Err(EngineError::Unsupported {
                        what: "a parameter in what is pivoted on whatever values there are".into(),
                        hint: "list the values: ON column IN ('a', 'b')".into(),
                    });
                }
            };
            let plan = planner.analyse(settle_times(bound)?)?;
            let values = self.pivot_values(plan).await?;
            nesting.with_room(|| give_pivot_values(&mut parsed.statement, values));
        }
        Err(EngineError::Plan { message: format!("a statement has at most {MAX_OPEN_PIVOTS} pivots without values") })
    }

    async fn pivot_values(&self, plan: LogicalPlan) -> Result<Vec<PivotValue>> {
        let plan = self.authorize(plan)?;
        let interrupt = Interrupt::new(QueryClock::start(self.limits.wall_clock));
        // Planning that is given up stops the query.
        let _abandoned = interrupt.abandon_on_drop();
        let mut rows = self.execute_query(plan.plan(), &interrupt).await?;
        let mut values = Vec::new();
        // An ordered query may have a value several times.
        let mut seen = HashSet::new();
        while let Some(batch) = rows.try_next().await?
            && values.len() <= MAX_PIVOT_COLUMNS
        {
            let (found, names) = (batch.column(0), cast(batch.column(1), &DataType::Utf8)?);
            for (row, name) in names.as_string::<i32>().iter().enumerate() {
                if let Some(name) = name
                    && seen.insert(name.to_owned())
                {
                    values.push((literal(found, row, name)?, name.to_owned()));
                }
            }
        }
        if values.len() > MAX_PIVOT_COLUMNS {
            return Err(EngineError::Plan {
                message: format!(
                    "PIVOT found more than {MAX_PIVOT_COLUMNS} values, each of which would be a column; pivot on another \
                     column, or list the values: ON column IN ('a', 'b')"
                ),
            });
        }
        Ok(values)
    }
}

/// Returns a value as an expression of its type.
fn literal(values: &ArrayRef, row: usize, text: &str) -> Result<Expr> {
    let data_type = match values.data_type() {
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        other => other.clone(),
    };
    let string = |text: &str| Expr::Value(Value::SingleQuotedString(text.to_owned()).into());
    Ok(match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => string(text),
        DataType::Boolean => Expr::Value(Value::Boolean(values.as_boolean().value(row)).into()),
        nested if nested.is_nested() => {
            return Err(EngineError::Unsupported {
                what: "PIVOT on lists and structs".into(),
                hint: "pivot on one of their parts".into(),
            });
        }
        other => {
            let plain = cast(&values.slice(row, 1), &DataType::Utf8)?;
            let argument = |text: &str| FunctionArg::Unnamed(FunctionArgExpr::Expr(string(text)));
            let args = vec![argument(plain.as_string::<i32>().value(0)), argument(&other.to_string())];
            Expr::Function(Function {
                name: ObjectName::from(vec![Ident::new("arrow_cast")]),
                uses_odbc_syntax: false,
                parameters: FunctionArguments::None,
                args: FunctionArguments::List(FunctionArgumentList {
                    duplicate_treatment: None,
                    args,
                    clauses: Vec::new(),
                }),
                filter: None,
                null_treatment: None,
                over: None,
                within_group: Vec::new(),
            })
        }
    })
}

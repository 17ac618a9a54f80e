//! A statement's parameters: which there are, of which types, and their values in its plan.
//!
//! Values come as one row, or as rows of a record batch. One row becomes literals. Several rows mean the statement once for each
//! row, in one plan: where the statement computes one row from its parameters alone (`INSERT INTO t VALUES (?, ?)`,
//! `SELECT ? + 1`), the rows are scanned as a table; any other statement becomes a union, whose rows a query has in the order of
//! the values.

mod argument_types;
mod held_values;
mod sources;
mod told_types;

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::error::Result as DataFusionResult;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{Cast, Placeholder, ScalarFunction, TryCast};
use datafusion::logical_expr::{
    EmptyRelation, Expr, ExprFunctionExt, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Projection, Sort,
    SubqueryAlias, Union, cast, lit,
};
use datafusion::scalar::ScalarValue;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, Value, ValueWithSpan, VisitorMut};

use super::catalog_table::CatalogTable;
use super::parse::ParsedStatement;
use super::repeated_changes::{reads_what_it_changes, refuse_repeated};
use super::syntax::visit_statement;
use super::write_statement::WriteStatement;
use crate::error::{EngineError, Result};
use crate::functions::{MAP, refuse_impossible_values, rows_with_aligned_intervals, rows_with_one_nan};
use crate::timestamp::fraction_digits;
use held_values::with_held_types;
use told_types::told_types;

/// The most rows for which a statement is planned row by row.
pub(crate) const MAX_PLANNED_ROWS: usize = 1_000;
/// The most bytes of a row of values that becomes a part of the plan, though it could be a table.
const MAX_LITERAL_BYTES: usize = 1 << 20;
/// The name of the table of parameters in a plan.
const PARAMETERS: &str = "parameters";
/// The columns that say by which row of values a row was found, and at which place among those.
const ROW: &str = "row_of_values";
const PLACE: &str = "place_of_row";

/// The values of a statement's parameters.
#[derive(Debug, Clone, Default)]
pub(crate) enum ParameterValues {
    /// None are given.
    #[default]
    None,
    /// One value each, in order.
    Row(Vec<ScalarValue>),
    /// One column each, in order; the statement runs for each row.
    Rows(RecordBatch),
}

impl ParameterValues {
    /// Returns the values of rows. Errors: `invalid_value` for what SQL makes none of, such as a time of day that no day has:
    /// it would be written as it is.
    pub(crate) fn from_rows(rows: RecordBatch) -> Result<Self> {
        rows.columns().iter().try_for_each(refuse_impossible_values)?;
        Ok(Self::Rows(with_held_types(rows_with_one_nan(rows_with_aligned_intervals(rows)?)?)?))
    }

    /// Returns the types of `$1`, `$2`, ...; `None` for a value that is only known to be null, unless the parameters of the
    /// statement have names, by which values are found.
    pub(crate) fn types(&self, are_named: bool) -> Vec<Option<FieldRef>> {
        let known = |name: &str, data_type: &DataType| {
            let typed = || Arc::new(Field::new(name, data_type.clone(), true));
            (are_named || *data_type != DataType::Null).then(typed)
        };
        match self {
            ParameterValues::None => Vec::new(),
            ParameterValues::Row(values) => {
                values.iter().enumerate().map(|(at, value)| known(&format!("{}", at + 1), &value.data_type())).collect()
            }
            ParameterValues::Rows(rows) => {
                rows.schema_ref().fields().iter().map(|field| known(value_name(field), field.data_type())).collect()
            }
        }
    }

    /// Returns the names by which a statement may call its values; empty for one that has a number at most.
    pub(crate) fn names(&self) -> Vec<String> {
        let ParameterValues::Rows(rows) = self else { return Vec::new() };
        let named = |name: &str| match name.bytes().all(|byte| byte.is_ascii_digit()) {
            true => String::new(),
            false => name.to_owned(),
        };
        let names: Vec<String> = rows.schema_ref().fields().iter().map(|field| named(value_name(field))).collect();
        if names.iter().all(String::is_empty) { Vec::new() } else { names }
    }

    /// Returns the plan with values in place of its parameters, of which none may be missing and none unused. Without
    /// values the plan stays as it is, and policy refuses parameters that are left.
    pub(crate) fn bind(self, plan: LogicalPlan) -> Result<LogicalPlan> {
        // DataFusion would bind the parameters of a PREPARE by executing what it prepares.
        if matches!(plan, LogicalPlan::Statement(_)) {
            return Ok(plan);
        }
        match self {
            ParameterValues::None => Ok(plan),
            ParameterValues::Row(values) if values.is_empty() => Ok(plan),
            ParameterValues::Row(values) => {
                check_count(&plan, values.len())?;
                with_values(plan, values)
            }
            ParameterValues::Rows(rows) if rows.num_columns() == 0 => Ok(plan),
            ParameterValues::Rows(rows) => {
                check_count(&plan, rows.num_columns())?;
                bind_rows(plan, &rows)
            }
        }
    }
}

impl ParameterValues {
    /// Whether the statement runs for more than one row of values.
    pub(crate) fn has_several_rows(&self) -> bool {
        matches!(self, ParameterValues::Rows(rows) if rows.num_rows() > 1)
    }

    /// Returns the statement with its values, those of the first row, as literals, where each is one that SQL writes as a
    /// text, a number, a truth value, a date, a timestamp or NULL: some functions cannot be planned before the values of
    /// their arguments are known.
    pub(crate) fn as_literals(&self, parsed: &ParsedStatement) -> Option<ParsedStatement> {
        let values = match self {
            ParameterValues::Row(values) => values.clone(),
            ParameterValues::Rows(rows) if rows.num_rows() > 0 => values_of_row(rows, 0).ok()?,
            ParameterValues::None | ParameterValues::Rows(_) => return None,
        };
        if values.is_empty() || values.len() != parsed.parameters {
            return None;
        }
        let literals: Vec<ast::Expr> = values.iter().map(literal).collect::<Option<_>>()?;
        let mut parsed = parsed.clone();
        let nesting = parsed.nesting;
        nesting.with_room(|| replace_parameters(&mut parsed.statement, |at| literals.get(at - 1).cloned()));
        Some(parsed)
    }
}

/// Returns a value's name without the sign that a parameter has before it.
fn value_name(field: &Field) -> &str {
    field.name().trim_start_matches('$')
}

/// Puts literals in the places of parameters, by their positions from 1; those of which there is none stay.
pub(crate) fn replace_parameters(statement: &mut Statement, literal: impl Fn(usize) -> Option<ast::Expr>) {
    let _: ControlFlow<()> = visit_statement(statement, &mut ParameterReplacer(literal));
}

/// Puts what a function gives for the positions of parameters, from 1, in their places. What was put there is not looked at
/// again.
pub(super) struct ParameterReplacer<F>(pub(super) F);

impl<F: Fn(usize) -> Option<ast::Expr>> VisitorMut for ParameterReplacer<F> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = expr
            && let Some(known) = position(name).and_then(&self.0)
        {
            *expr = known;
        }
        ControlFlow::Continue(())
    }
}

/// Returns a value as SQL writes it; `None` where it has no literal here.
pub(crate) fn literal(value: &ScalarValue) -> Option<ast::Expr> {
    let plain = |value: Value| ast::Expr::Value(value.with_empty_span());
    if value.is_null() {
        return Some(plain(Value::Null));
    }
    let text = || value.cast_to(&DataType::Utf8).ok()?.try_as_str().flatten().map(str::to_owned);
    let signed = |number: String| match number.strip_prefix('-') {
        Some(digits) => ast::Expr::Nested(Box::new(ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Minus,
            expr: Box::new(plain(Value::Number(digits.to_owned(), false))),
        })),
        None => plain(Value::Number(number, false)),
    };
    let typed = |data_type: ast::DataType| {
        let value = Value::SingleQuotedString(text()?).with_empty_span();
        Some(ast::Expr::TypedString(ast::TypedString { data_type, value, uses_odbc_syntax: false }))
    };
    match value.data_type() {
        DataType::Boolean => Some(plain(Value::Boolean(*value == ScalarValue::Boolean(Some(true))))),
        kind if kind.is_string() => Some(plain(Value::SingleQuotedString(text()?))),
        kind if kind.is_integer() => Some(plain(Value::Number(value.to_string(), false))),
        kind if kind.is_decimal() => Some(signed(text()?)),
        DataType::Float32 | DataType::Float64 => {
            let ScalarValue::Float64(Some(number)) = value.cast_to(&DataType::Float64).ok()? else { return None };
            // With an exponent, it is a double.
            number.is_finite().then(|| signed(format!("{number:e}")))
        }
        DataType::Date32 => typed(ast::DataType::Date),
        DataType::Timestamp(unit, zone) => {
            let digits = fraction_digits(unit).into();
            let zone = if zone.is_some() { ast::TimezoneInfo::WithTimeZone } else { ast::TimezoneInfo::None };
            typed(ast::DataType::Timestamp(Some(digits), zone))
        }
        _ => None,
    }
}

fn check_count(plan: &LogicalPlan, given: usize) -> Result<()> {
    let names: HashSet<String> = placeholders(plan)?.into_keys().collect();
    let expected: HashSet<String> = (1..=given).map(|position| format!("${position}")).collect();
    if names == expected {
        return Ok(());
    }
    let mut used: Vec<String> = names.into_iter().collect();
    used.sort();
    let used = if used.is_empty() { "no parameters".to_owned() } else { used.join(", ") };
    Err(EngineError::Plan { message: format!("the statement uses {used}; {given} values were given") })
}

/// Returns the parameters of a plan as the fields of a schema, `$1`, `$2`, ... in order and then named ones; of type null
/// where the plan does not tell.
pub(crate) fn parameter_schema(plan: &LogicalPlan) -> Result<SchemaRef> {
    let mut found = placeholders(plan)?;
    // What is beside a time is taken for one.
    let is_certain = |data_type: &Option<DataType>| data_type.as_ref().is_some_and(|known| !known.is_temporal());
    if !found.values().all(is_certain) {
        let mut told = told_types(plan)?;
        for (name, data_type) in &mut found {
            let in_sum = told.in_sums.remove(name).and_then(only_type);
            *data_type = match data_type.take() {
                None => match told.open.remove(name) {
                    Some(types) => only_type(types).or(in_sum),
                    None => in_sum.or_else(|| told.likely.remove(name).and_then(only_type)),
                },
                Some(known) => in_sum.or(Some(known)),
            };
        }
    }
    let positions = found.keys().filter_map(|name| position(name)).max().unwrap_or(0);
    let unknown = DataType::Null;
    let field =
        |name: String, data_type: Option<&DataType>| Field::new(name, data_type.unwrap_or(&unknown).clone(), true);
    let numbered = (1..=positions).map(|position| {
        let name = format!("${position}");
        let data_type = found.get(&name).and_then(Option::as_ref);
        field(name, data_type)
    });
    let named = found.iter().filter(|(name, _)| position(name).is_none());
    let named = named.map(|(name, data_type)| field(name.clone(), data_type.as_ref()));
    Ok(Arc::new(Schema::new(numbered.chain(named).collect::<Fields>())))
}

/// Returns the number in the name of a parameter that has one.
pub(super) fn position(name: &str) -> Option<usize> {
    name.strip_prefix('$')?.parse().ok()
}

/// Returns each parameter with its type; `None` where it is not known, or is another one elsewhere in the statement.
fn placeholders(plan: &LogicalPlan) -> DataFusionResult<BTreeMap<String, Option<DataType>>> {
    let mut found: BTreeMap<String, Vec<DataType>> = BTreeMap::new();
    let mut casts: BTreeMap<String, Vec<DataType>> = BTreeMap::new();
    plan.apply_with_subqueries(|node| {
        let counts_rows = matches!(node, LogicalPlan::Limit(_));
        if let Some(statement) = WriteStatement::from_plan(node) {
            for (value, data_type) in statement.assigned_values() {
                note_type(value, data_type, &mut casts);
            }
        }
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                match part {
                    Expr::Placeholder(Placeholder { id, field }) => {
                        let types = found.entry(id.clone()).or_default();
                        types.extend(field.iter().map(|field| field.data_type().clone()));
                        types.extend((field.is_none() && counts_rows).then_some(DataType::Int64));
                    }
                    Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
                        note_type(expr, field.data_type(), &mut casts);
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let typed = found.into_iter().map(|(name, types)| {
        // What a value becomes says what it is where nothing else does.
        let types = if types.is_empty() { casts.remove(&name).unwrap_or_default() } else { types };
        (name, only_type(types))
    });
    Ok(typed.collect())
}

/// Returns the one type that all of them are.
fn only_type(mut types: Vec<DataType>) -> Option<DataType> {
    types.dedup();
    if types.len() == 1 { types.pop() } else { None }
}

/// Notes that a value becomes one of a type, where it is a parameter without one, or chosen among such, or made of them.
fn note_type(value: &Expr, data_type: &DataType, types: &mut BTreeMap<String, Vec<DataType>>) {
    match value {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            types.entry(id.clone()).or_default().push(data_type.clone());
        }
        Expr::Alias(alias) => note_type(&alias.expr, data_type, types),
        Expr::Negative(negated) => note_type(negated, data_type, types),
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, result)| result);
            for result in results.chain(&case.else_expr) {
                note_type(result, data_type, types);
            }
        }
        Expr::ScalarFunction(call) => note_parts(call, data_type, types),
        _ => {}
    }
}

/// Notes what the parts of a list, a struct or a map become that becomes one of a type.
fn note_parts(call: &ScalarFunction, data_type: &DataType, types: &mut BTreeMap<String, Vec<DataType>>) {
    match (call.name(), data_type) {
        ("make_array", DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)) => {
            call.args.iter().for_each(|part| note_type(part, item.data_type(), types));
        }
        ("named_struct", DataType::Struct(fields)) => {
            for pair in call.args.chunks_exact(2) {
                let [name, value] = pair else { continue };
                let name = name.as_literal().and_then(|name| name.try_as_str().flatten());
                let field = name.and_then(|name| fields.iter().find(|field| field.name().eq_ignore_ascii_case(name)));
                if let Some(field) = field {
                    note_type(value, field.data_type(), types);
                }
            }
        }
        (MAP, DataType::Map(entries, _)) => {
            let DataType::Struct(fields) = entries.data_type() else { return };
            for (list, field) in call.args.iter().zip(fields) {
                note_type(list, &DataType::new_list(field.data_type().clone(), true), types);
            }
        }
        _ => {}
    }
}

fn bind_rows(plan: LogicalPlan, rows: &RecordBatch) -> Result<LogicalPlan> {
    refuse_repeated(&plan, rows.num_rows())?;
    if let Some(change) = WriteStatement::from_plan(&plan)
        && let Some(input) = change.input()
    {
        if rows.num_rows() > 1 && reads_what_it_changes(&plan)? {
            let message = "the statement reads what it changes, so each row of values is executed after the one before it: \
                           send it as an update, or one row at a time";
            return Err(EngineError::Plan { message: message.to_owned() });
        }
        let input = bind_query(input.clone(), rows, one_union)?;
        return Ok(change.with_input(input).into_plan());
    }
    bind_query(plan, rows, one_after_another)
}

/// Returns a query over rows of values; `together` makes one of those that are bound to a row each.
fn bind_query(
    plan: LogicalPlan,
    rows: &RecordBatch,
    together: fn(Vec<LogicalPlan>) -> DataFusionResult<LogicalPlan>,
) -> Result<LogicalPlan> {
    // Some functions want a value where the rows of a table would give them a column: the part of a date, a pattern.
    if let Some(values) = values_of_one_row(rows) {
        return with_values(plan, values);
    }
    if let Some(vectorised) = over_rows(&plan, rows)? {
        return Ok(vectorised);
    }
    match rows.num_rows() {
        0 => {
            Ok(LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::clone(plan.schema()) }))
        }
        1 => bind_row(plan, rows, 0),
        count if count > MAX_PLANNED_ROWS => Err(EngineError::Plan {
            message: format!(
                "{count} rows of parameters were given; this statement takes {MAX_PLANNED_ROWS} at once, since it is \
                 planned for each (INSERT INTO ... VALUES takes any number)"
            ),
        }),
        count => {
            let bound = (0..count).map(|row| bind_row(plan.clone(), rows, row));
            Ok(together(bound.collect::<Result<Vec<_>>>()?)?)
        }
    }
}

fn one_union(queries: Vec<LogicalPlan>) -> DataFusionResult<LogicalPlan> {
    Ok(LogicalPlan::Union(Union::try_new(queries.into_iter().map(Arc::new).collect())?))
}

/// Returns the rows of queries one after another, and those of each in the order that it says: a union has neither. Nor does it
/// have tables, without which two columns may have one name.
fn one_after_another(queries: Vec<LogicalPlan>) -> DataFusionResult<LogicalPlan> {
    let own = queries.first().map(|query| query.schema().columns()).unwrap_or_default();
    let numbered = (0_u64..).zip(queries).map(|(number, query)| {
        let query = with_places(query)?;
        let place = place_in(&query).alias(PLACE);
        let mut columns = query.schema().columns();
        columns.pop();
        let values = columns.into_iter().enumerate().map(|(at, column)| Expr::Column(column).alias(name_in_union(at)));
        let columns: Vec<Expr> = values.chain([lit(number).alias(ROW), place]).collect();
        LogicalPlanBuilder::from(query).project(columns)?.build()
    });
    let union = one_union(numbered.collect::<DataFusionResult<Vec<_>>>()?)?;
    let order = [ROW, PLACE].map(|name| Expr::Column(Column::from_name(name)).sort(true, false));
    let named = own.into_iter().enumerate().map(|(at, column)| {
        Expr::Column(Column::from_name(name_in_union(at))).alias_qualified(column.relation, column.name)
    });
    let named: Vec<Expr> = named.collect();
    LogicalPlanBuilder::from(union).sort(order)?.project(named)?.build()
}

fn name_in_union(at: usize) -> String {
    format!("column_{at}")
}

/// Returns a query with a column more, the last: the place of a row in the order that the query says. Where it says none, all
/// rows have the same.
fn with_places(query: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    let below = |input: Arc<LogicalPlan>| with_places(Arc::unwrap_or_clone(input)).map(Arc::new);
    Ok(match query {
        LogicalPlan::Projection(select) => {
            let input = below(select.input)?;
            let columns = select.expr.into_iter().chain([place_in(&input)]);
            LogicalPlanBuilder::from(input).project(columns)?.build()?
        }
        LogicalPlan::SubqueryAlias(alias) => {
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(below(alias.input)?, alias.alias)?)
        }
        LogicalPlan::Filter(filter) => LogicalPlan::Filter(Filter::try_new(filter.predicate, below(filter.input)?)?),
        LogicalPlan::Limit(limit) => LogicalPlan::Limit(Limit { input: below(limit.input)?, ..limit }),
        LogicalPlan::Sort(sort) => {
            let place = row_number().order_by(sort.expr).build()?.alias(PLACE);
            let input = LogicalPlanBuilder::from(sort.input).window([place])?.build()?;
            let expr = vec![place_in(&input).sort(true, false)];
            LogicalPlan::Sort(Sort { expr, input: Arc::new(input), fetch: sort.fetch })
        }
        unordered => {
            let columns = unordered.schema().columns().into_iter().map(Expr::Column);
            let columns = columns.chain([lit(0_u64).alias(PLACE)]).collect::<Vec<_>>();
            LogicalPlanBuilder::from(unordered).project(columns)?.build()?
        }
    })
}

/// Returns the last column of a query.
fn place_in(query: &LogicalPlan) -> Expr {
    let last = query.schema().columns().pop();
    Expr::Column(last.unwrap_or_else(|| Column::from_name(PLACE)))
}

fn bind_row(plan: LogicalPlan, rows: &RecordBatch, row: usize) -> Result<LogicalPlan> {
    with_values(plan, values_of_row(rows, row)?)
}

/// Returns the plan with values in place of its parameters. The parameters of lambdas are of the values' types then.
fn with_values(plan: LogicalPlan, values: Vec<ScalarValue>) -> Result<LogicalPlan> {
    let plan = plan.with_param_values(values)?;
    let mut has_lambdas = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            has_lambdas |= expr.exists(|part| Ok(matches!(part, Expr::HigherOrderFunction(_))))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    if !has_lambdas {
        return Ok(plan);
    }
    let resolved = plan.resolve_lambda_variables()?.data;
    Ok(resolved.transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes))?.data)
}

fn values_of_row(rows: &RecordBatch, row: usize) -> DataFusionResult<Vec<ScalarValue>> {
    rows.columns().iter().map(|column| ScalarValue::try_from_array(column, row)).collect()
}

/// Returns the values where there is one row of them, and it is small: what is in a plan is copied with it. `None` also where one
/// is of a type that no value has.
fn values_of_one_row(rows: &RecordBatch) -> Option<Vec<ScalarValue>> {
    let is_small = rows.num_rows() == 1 && rows.get_array_memory_size() <= MAX_LITERAL_BYTES;
    is_small.then(|| values_of_row(rows, 0).ok()).flatten()
}

/// Returns the plan over all rows of parameters at once; `None` where the statement does more than compute one row.
fn over_rows(plan: &LogicalPlan, rows: &RecordBatch) -> Result<Option<LogicalPlan>> {
    let Some(bound) = replace_source(plan, rows)? else { return Ok(None) };
    Ok(placeholders(&bound)?.is_empty().then_some(bound))
}

fn replace_source(plan: &LogicalPlan, rows: &RecordBatch) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            if let LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, .. }) = projection.input.as_ref() {
                let names = projection.schema.fields().iter().map(|field| field.name().clone());
                return Ok(Some(project_rows(&projection.expr, names, rows)?));
            }
            let Some(input) = replace_source(&projection.input, rows)? else { return Ok(None) };
            Ok(Some(LogicalPlan::Projection(Projection::try_new(projection.expr.clone(), Arc::new(input))?)))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let Some(input) = replace_source(&alias.input, rows)? else { return Ok(None) };
            Ok(Some(LogicalPlanBuilder::from(input).alias(alias.alias.clone())?.build()?))
        }
        LogicalPlan::Values(values) => match values.values.as_slice() {
            [row] => {
                let names = values.schema.fields().iter().map(|field| field.name().clone());
                Ok(Some(project_rows(row, names, rows)?))
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Returns with how many rows of values a statement is executed at once: any number where it computes one row from its parameters
/// alone.
pub(crate) fn rows_at_once(plan: &LogicalPlan) -> Result<usize> {
    let input = WriteStatement::from_plan(plan).and_then(WriteStatement::input);
    let is_computed = computes_one_row(input.unwrap_or(plan))?;
    Ok(if is_computed { usize::MAX } else { MAX_PLANNED_ROWS })
}

fn computes_one_row(plan: &LogicalPlan) -> Result<bool> {
    if has_parameters_in_subqueries(plan)? {
        return Ok(false);
    }
    match plan {
        LogicalPlan::Projection(projection) => match projection.input.as_ref() {
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row, .. }) => Ok(*produce_one_row),
            input => {
                let mut has_parameters = false;
                for expr in &projection.expr {
                    has_parameters |= expr.exists(|part| Ok(matches!(part, Expr::Placeholder(_))))?;
                }
                Ok(!has_parameters && computes_one_row(input)?)
            }
        },
        LogicalPlan::SubqueryAlias(alias) => computes_one_row(&alias.input),
        LogicalPlan::Values(values) => Ok(values.values.len() == 1),
        _ => Ok(false),
    }
}

/// Whether a query within an expression of a node has parameters: it is planned for each row of values.
fn has_parameters_in_subqueries(node: &LogicalPlan) -> DataFusionResult<bool> {
    let mut has_parameters = false;
    node.apply_subqueries(|query| {
        has_parameters |= !placeholders(query)?.is_empty();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(has_parameters)
}

/// Returns the expressions of one row, computed for each row of parameters.
fn project_rows(
    exprs: &[Expr],
    names: impl Iterator<Item = String>,
    rows: &RecordBatch,
) -> DataFusionResult<LogicalPlan> {
    let fields = rows.schema_ref().fields().iter().enumerate();
    let renamed = fields.map(|(at, field)| Field::clone(field).with_name(format!("${}", at + 1)).with_nullable(true));
    let schema = Arc::new(Schema::new(renamed.collect::<Vec<_>>()));
    let table = RecordBatch::try_new(Arc::clone(&schema), rows.columns().to_vec())?;
    let table = MemTable::try_new(schema, vec![vec![table]])?;
    let source = provider_as_source(Arc::new(CatalogTable::at_allowed_location(Arc::new(table))));
    let scan = LogicalPlanBuilder::scan(PARAMETERS, source, None)?;
    let exprs = exprs.iter().zip(names).map(|(expr, name)| {
        let column = expr.clone().transform_up(|part| match part {
            Expr::Placeholder(Placeholder { id, field }) => {
                // Values of a known type keep it, since a parameter that stands for several columns has the type of the
                // last in the plan; what is written is converted column by column.
                let is_null = scan.schema().field_with_unqualified_name(&id)?.data_type() == &DataType::Null;
                let column = Expr::Column(Column::new(Some(PARAMETERS), id));
                Ok(Transformed::yes(match field {
                    Some(field) if is_null => cast(column, field.data_type().clone()),
                    _ => column,
                }))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(column.data.alias(name))
    });
    let exprs = exprs.collect::<DataFusionResult<Vec<_>>>()?;
    scan.project(exprs)?.build()
}

//! Plugins of `evaluate` whose columns depend on the data: `bag_unpack`, `pivot`, `narrow`. Binding reads the data to
//! find the columns; their number is bounded.

mod activity;
mod funnels;
mod intersections;
mod nearby;
mod networks;
mod places;
mod schemas;
mod segments;
mod steps;

use std::cell::RefCell;
use std::collections::BTreeMap;

use arrow::array::{AsArray, RecordBatch};
use datafusion::logical_expr::{LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;

use super::{Column, Relation};
use crate::aggregates;
use crate::ast::{Expr, ExprKind, FunctionCall, NamedExpr, PluginSchema};
use crate::bind::{
    BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, argument_name, constant_of, fail, given_name,
    invalid, is_refused, text_literal, text_of, unsupported_name,
};
use crate::functions::ScalarOperator;
use crate::span::Span;
use crate::types::KqlType;

/// What `bag_unpack` does with a property whose name is a column's.
#[derive(Clone, Copy)]
enum Conflict {
    Error,
    ReplaceSource,
    KeepSource,
}

/// The most columns that a plugin returns.
const MAX_COLUMNS: usize = 500;
/// The most distinct bags or values that are read to find the columns.
const MAX_VALUES: usize = 1_000_000;

/// The plugins that Kusto calls without a table before them.
const ALONE: &[&str] = &[
    "ai_chat_completion",
    "ai_chat_completion_prompt",
    "ai_embed_text",
    "ai_embeddings",
    "azure_digital_twins_query_request",
    "cosmosdb_sql_request",
    "csharp",
    "dax_request",
    "execute_query",
    "execute_show_command",
    "external_datatable",
    "http_request",
    "http_request_post",
    "infer_storage_schema",
    "infer_storage_schema_with_suggestions",
    "mysql_request",
    "postgresql_request",
    "python",
    "r",
    "schema_merge",
    "sql_request",
];

const KNOWN: &str = include_str!("../bind/known_plugins.txt");

/// Returns the names of Kusto's plugins, and whether each is here.
pub(crate) fn plugins() -> impl Iterator<Item = (&'static str, bool)> {
    KNOWN.lines().chain(["schema_merge"]).map(|name| (name, !is_refused(name)))
}

impl<'a> Binder<'a> {
    pub(super) fn evaluate(
        &mut self,
        input: Relation,
        plugin: &'a Expr,
        schema: Option<&'a PluginSchema>,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let ExprKind::Call(call) = &plugin.kind else {
            return invalid(plugin.span, "expected a plugin");
        };
        let given: Vec<String> = input.columns.iter().map(|column| column.name.clone()).collect();
        let result = match call.function.text.as_str() {
            "bag_unpack" => self.bag_unpack(input, call, environment)?,
            "pivot" => self.pivot(input, call, schema, environment)?,
            "narrow" if call.arguments.is_empty() => self.narrow(input, span)?,
            "rows_near" => self.rows_near(input, call, environment)?,
            "schema_merge" => self.schema_merge(input, call)?,
            "sequence_detect" => self.sequence_detect(input, call, environment)?,
            "dcount_intersect" => self.dcount_intersect(input, call)?,
            "funnel_sequence_completion" => self.funnel_completion(input, call, environment)?,
            // Operators after it take the first of its tables.
            "funnel_sequence" => self.funnel_sequence(&input, call, environment)?.swap_remove(0),
            "preview" => return invalid(call.function.span, "`preview` ends a query: it has two results"),
            "identity" if call.arguments.is_empty() => input,
            "narrow" | "identity" => return invalid(call.function.span, "this plugin takes no arguments"),
            name if segments::is_one(name) => self.segments(input, call, environment)?,
            name if activity::is_one(name) => self.activity(input, call, environment)?,
            name if places::is_one(name) => self.place_lookup(input, call, environment)?,
            name if networks::is_one(name) => self.network_lookup(input, call, environment)?,
            name if KNOWN.lines().any(|known| known == name) => {
                return unsupported_name(call.function.span, "plugin", name);
            }
            name => return invalid(call.function.span, format!("there is no plugin `{name}`")),
        };
        match schema {
            Some(schema) => {
                let is_declared = |column: &Column| schema.columns.iter().any(|it| it.name.text == column.name);
                let has_others = !schema.keeps_input && !result.columns.iter().all(is_declared);
                if call.function.text == "pivot" && has_others {
                    return invalid(call.function.span, "`pivot` has other columns than those that are declared");
                }
                self.as_declared(result, schema, &given)
            }
            None => Ok(result),
        }
    }

    /// Refuses a plugin that stands where a query starts; those that Kusto calls so are not here.
    pub(super) fn evaluate_alone(&mut self, plugin: &'a Expr, span: Span) -> Result<Relation> {
        match &plugin.kind {
            ExprKind::Call(call) if ALONE.contains(&call.function.text.as_str()) => {
                unsupported_name(call.function.span, "plugin", &call.function.text)
            }
            _ => invalid(span, "this plugin needs a table before it"),
        }
    }

    /// Returns the declared columns, in their order, behind those of the input that are left where `*` asks for them;
    /// null where the plugin returns none of that name.
    fn as_declared(&mut self, result: Relation, schema: &'a PluginSchema, given: &[String]) -> Result<Relation> {
        let is_declared = |name: &str| schema.columns.iter().any(|declared| declared.name.text == name);
        let is_kept =
            |column: &&Column| schema.keeps_input && given.contains(&column.name) && !is_declared(&column.name);
        let mut outputs: Vec<(String, Typed)> = result.columns.iter().filter(is_kept).map(Column::output).collect();
        for declared in &schema.columns {
            let kql_type = KqlType::from(declared.scalar_type);
            let value = match result.column(&declared.name.text) {
                Some(column) => self.convert(column.typed(), kql_type, declared.span)?,
                None => Typed::new(lit(crate::bind::null_of(kql_type)), kql_type),
            };
            outputs.push((declared.name.text.clone(), value));
        }
        self.projected(result, outputs)
    }

    fn bag_unpack(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let Some(bag) = call.arguments.first() else {
            return invalid(call.function.span, "`bag_unpack` takes a column");
        };
        let column = self.column_of(&input, bag)?;
        if column.kql_type != KqlType::Dynamic {
            let message = format!("`bag_unpack` takes a dynamic column, not {}", column.kql_type.name());
            return fail(BindErrorCode::TypeMismatch, bag.span, message);
        }
        let mut prefix = String::new();
        let mut conflict = Conflict::Error;
        let mut ignored: Vec<String> = Vec::new();
        for (index, argument) in call.arguments.iter().enumerate().skip(1) {
            match (given_name(&argument.names), index) {
                (Some("OutputColumnPrefix"), _) | (None, 1) => prefix = self.constant_text(argument, environment)?,
                (Some("columnsConflict"), _) | (None, 2) => {
                    let name = self.constant_text(argument, environment)?;
                    conflict = match name.as_str() {
                        "error" | "" => Conflict::Error,
                        "replace_source" => Conflict::ReplaceSource,
                        "keep_source" => Conflict::KeepSource,
                        _ => return invalid(argument.span, "expected `error`, `replace_source` or `keep_source`"),
                    };
                }
                (Some("ignoredProperties"), _) | (None, 3) => ignored = self.constant_names(argument, environment)?,
                _ => return invalid(argument.span, "`bag_unpack` takes no such argument"),
            }
        }
        let plan = input.distinct_values(&column)?;
        let mut properties: BTreeMap<String, Option<KqlType>> = BTreeMap::new();
        let bags = self.rows(plan, MAX_VALUES + 1)?;
        if bags.iter().map(RecordBatch::num_rows).sum::<usize>() > MAX_VALUES {
            let message = format!("the column has more than {MAX_VALUES} different bags; filter or group them first");
            return fail(BindErrorCode::TooLarge, bag.span, message);
        }
        for batch in bags {
            for text in batch.column(0).as_string_opt::<i32>().into_iter().flatten().flatten() {
                let Ok(serde_json::Value::Object(bag)) = serde_json::from_str(text) else { continue };
                for (name, value) in bag.into_iter().filter(|(name, _)| !ignored.contains(name)) {
                    let kql_type = type_of_json(&value);
                    let known = properties.entry(name).or_insert(kql_type);
                    *known = common_type(*known, kql_type);
                }
            }
        }
        if properties.len() > MAX_COLUMNS {
            return invalid(bag.span, format!("the bags have more than {MAX_COLUMNS} different properties"));
        }
        let mut outputs: Vec<(String, Typed)> = input
            .columns
            .iter()
            .filter(|other| other.field != column.field || (prefix.is_empty() && properties.contains_key(&other.name)))
            .map(|other| (other.name.clone(), other.typed()))
            .collect();
        for (name, kql_type) in properties {
            let key = Typed::text(&name);
            let member = self.apply_operator(ScalarOperator::DynamicMember, vec![column.typed(), key], bag.span)?;
            let value = self.convert(member, kql_type.unwrap_or(KqlType::Dynamic), bag.span)?;
            let name = format!("{prefix}{name}");
            match (outputs.iter_mut().find(|(known, _)| *known == name), conflict) {
                (None, _) => outputs.push((name, value)),
                // A property with the name of the bag takes the bag's place.
                (Some(place), _) if name == column.name => place.1 = value,
                (Some(place), Conflict::ReplaceSource) => place.1 = value,
                (Some(_), Conflict::KeepSource) => {}
                (Some(_), Conflict::Error) => {
                    return invalid(bag.span, format!("the column `{name}` is there already"));
                }
            }
        }
        self.projected(input, outputs)
    }

    fn pivot(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        schema: Option<&'a PluginSchema>,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let Some(pivot) = call.arguments.first() else {
            return invalid(call.function.span, "`pivot` takes a column");
        };
        let column = self.column_of(&input, pivot)?;
        let as_text = self.convert(column.typed(), KqlType::String, pivot.span)?;
        let names: Vec<String> = match schema {
            // The values are not looked at: one that is not declared has no column, one that is not there an empty one.
            Some(schema) => schema.columns.iter().map(|declared| declared.name.text.clone()).collect(),
            None => self.values_as_names(&input, &column, pivot.span)?,
        };

        let aggregate = match call.arguments.get(1) {
            Some(argument) => match aggregates::aggregate_call(&argument.expr) {
                Some(aggregate) => Some(aggregate),
                None => return invalid(argument.span, "expected an aggregate"),
            },
            None => None,
        };
        let mut keys: Vec<Column> = Vec::new();
        for argument in call.arguments.iter().skip(2) {
            keys.push(self.column_of(&input, argument)?);
        }
        if call.arguments.len() <= 2 {
            let used: Vec<String> = aggregate
                .iter()
                .flat_map(|call| &call.arguments)
                .filter_map(|argument| argument_name(&argument.expr))
                .collect();
            let others = input.columns.iter().filter(|it| it.field != column.field && !used.contains(&it.name));
            keys = others.cloned().collect();
        }
        let collected = RefCell::new(Vec::new());
        let mut outputs = Vec::with_capacity(names.len());
        for name in names {
            if schema.is_some() && keys.iter().any(|key| key.name == name) {
                continue;
            }
            let is_value = as_text.expr.clone().eq(text_literal(&name));
            let typed =
                self.filtered_aggregate(&input, aggregate, is_value, &collected, call.function.span, environment)?;
            outputs.push((name, typed));
        }
        let keys = keys.iter().map(|key| (key.name.clone(), key.typed())).collect();
        self.grouped(input, keys, collected.into_inner(), outputs)
    }

    /// Returns the values of a column as texts, in their order.
    fn values_as_names(&mut self, input: &Relation, column: &Column, span: Span) -> Result<Vec<String>> {
        let plan = input.distinct_values(column)?;
        let mut names: Vec<String> = Vec::new();
        for batch in self.rows(plan, MAX_COLUMNS + 1)? {
            for row in 0..batch.num_rows() {
                let value = ScalarValue::try_from_array(batch.column(0), row)?;
                let text = self.convert(Typed::new(lit(value), column.kql_type), KqlType::String, span)?;
                names.push(text_of(constant_of(&text.expr)?.as_ref()).unwrap_or_default().to_owned());
            }
        }
        if names.len() > MAX_COLUMNS {
            return invalid(span, format!("the column has more than {MAX_COLUMNS} values"));
        }
        names.sort();
        Ok(names)
    }

    /// Returns the aggregate over the rows of one value of the pivot column, by default their number.
    fn filtered_aggregate(
        &mut self,
        input: &Relation,
        aggregate: Option<&'a FunctionCall>,
        condition: datafusion::logical_expr::Expr,
        collected: &RefCell<Vec<datafusion::logical_expr::Expr>>,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Typed> {
        use datafusion::logical_expr::Expr as PlanExpr;
        let own = RefCell::new(Vec::new());
        let typed = match aggregate {
            Some(call) => {
                let scope = ExpressionScope {
                    aggregates: Some(&own),
                    order: &input.order,
                    ..ExpressionScope::over_columns(environment, &input.columns)
                };
                let mut outputs = self.aggregate(call, span, &scope, &own)?;
                if outputs.is_empty() {
                    return invalid(span, "expected an aggregate of one value");
                }
                outputs.swap_remove(0).typed
            }
            None => {
                let field = self.field("count");
                // Not `count_all`, which is an alias and takes no filter.
                let count = datafusion::functions_aggregate::expr_fn::count(lit(1_i64));
                own.borrow_mut().push(count.alias(field.clone()));
                Typed::new(super::field_column(&field), KqlType::Long)
            }
        };
        for expr in own.into_inner() {
            let PlanExpr::Alias(mut alias) = expr else { continue };
            if let PlanExpr::AggregateFunction(call) = alias.expr.as_mut() {
                let filter = call.params.filter.take();
                let both = match filter {
                    Some(filter) => filter.and(condition.clone()),
                    None => condition.clone(),
                };
                call.params.filter = Some(Box::new(both));
            }
            collected.borrow_mut().push(PlanExpr::Alias(alias));
        }
        Ok(typed)
    }

    /// `narrow`: a row for each value, with its row's number, its column's name and the value as a string.
    fn narrow(&mut self, input: Relation, span: Span) -> Result<Relation> {
        let (numbered, field) = self.with_row_numbers(input)?;
        let columns: Vec<Column> = ["Row", "Column", "Value"]
            .iter()
            .zip([KqlType::Long, KqlType::String, KqlType::String])
            .map(|(name, kql_type)| Column { name: (*name).to_owned(), field: self.field(name), kql_type })
            .collect();
        let mut united: Option<LogicalPlanBuilder> = None;
        for column in &numbered.columns {
            let row = super::columns::as_long(super::field_column(&field)) - lit(1_i64);
            let text = self.convert(column.typed(), KqlType::String, span)?.expr;
            let exprs = [row, text_literal(&column.name), text];
            let exprs: Vec<_> =
                exprs.into_iter().zip(&columns).map(|(expr, column)| expr.alias(column.field.clone())).collect();
            let plan = LogicalPlanBuilder::from(numbered.plan.clone()).project(exprs)?.build()?;
            united = Some(match united {
                Some(before) => before.union(plan)?,
                None => LogicalPlanBuilder::from(plan),
            });
        }
        match united {
            Some(united) => {
                let outputs = columns.iter().map(Column::output).collect();
                self.projected(Relation::new(united.build()?, Vec::new()), outputs)
            }
            None => invalid(span, "the table has no columns"),
        }
    }

    fn column_of(&self, input: &Relation, argument: &NamedExpr) -> Result<Column> {
        let ExprKind::Name(name) = &argument.expr.kind else {
            return invalid(argument.span, "expected a column");
        };
        match input.column(&name.text) {
            Some(column) => Ok(column.clone()),
            None => Err(self.unknown_column(name, &input.columns).into()),
        }
    }

    /// Returns the strings of a constant array.
    fn constant_names(&mut self, argument: &'a NamedExpr, environment: &Environment<'a>) -> Result<Vec<String>> {
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        let names = match constant_of(&typed.expr)? {
            Some(ScalarValue::Utf8(Some(text))) if typed.kql_type == KqlType::Dynamic => {
                serde_json::from_str(&text).ok()
            }
            Some(value) if value.is_null() => Some(Vec::new()),
            _ => None,
        };
        match names {
            Some(names) => Ok(names),
            None => invalid(argument.span, "expected a constant array of strings"),
        }
    }

    fn constant_text(&mut self, argument: &'a NamedExpr, environment: &Environment<'a>) -> Result<String> {
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        match text_of(constant_of(&typed.expr)?.as_ref()) {
            Some(text) if typed.kql_type == KqlType::String => Ok(text.to_owned()),
            _ => invalid(argument.span, "expected a constant string"),
        }
    }
}

fn type_of_json(value: &serde_json::Value) -> Option<KqlType> {
    match value {
        serde_json::Value::Null => None,
        serde_json::Value::Bool(_) => Some(KqlType::Bool),
        serde_json::Value::Number(number) if number.is_i64() => Some(KqlType::Long),
        serde_json::Value::Number(_) => Some(KqlType::Real),
        serde_json::Value::String(_) => Some(KqlType::String),
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => Some(KqlType::Dynamic),
    }
}

fn common_type(left: Option<KqlType>, right: Option<KqlType>) -> Option<KqlType> {
    match (left, right) {
        (None, other) | (other, None) => other,
        (left, right) if left == right => left,
        (Some(left), Some(right)) if left.is_numeric() && right.is_numeric() => Some(KqlType::Real),
        _ => Some(KqlType::Dynamic),
    }
}

//! PIVOT: a column for each value, as an aggregate over the rows that have it.

use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, ExprWithAlias, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    PivotValueSource, Query, SelectItem, SetExpr, TableFactor, Value, ValueWithSpan, Visit, VisitMut, Visitor,
    VisitorMut,
};

use super::{Context, column_names, derived, item_parts, malformed, select_of, subquery};
use crate::error::EngineError;
use crate::identifiers::same_name;
use crate::sql::function_forms::is_aggregate;
use crate::sql::marks;
use crate::sql::shorthand::{plain, query_of, select_star};

/// The most columns that a pivot makes.
pub(crate) const MAX_PIVOT_COLUMNS: usize = 1_000;

const USAGE: &str = "write PIVOT table ON column IN (values) USING aggregate(column) [GROUP BY columns]";

struct Pivot {
    source: TableFactor,
    aggregates: Vec<PivotedAggregate>,
    columns: Vec<PivotedColumn>,
    /// `None`: all columns that are neither aggregated nor pivoted on.
    group_by: Option<Vec<Expr>>,
}

/// What is computed of the rows of a value.
struct PivotedAggregate {
    expr: Expr,
    /// The name that the statement gives it.
    name: Option<String>,
    /// What it is called beside others where it has none.
    text: String,
}

/// What is pivoted on, and for which of its values there are columns.
struct PivotedColumn {
    on: Expr,
    values: Vec<(Expr, Option<Ident>)>,
}

/// Values of all columns that are pivoted on, each with its column, and what they are called.
#[derive(Clone, Default)]
struct PivotedValues {
    values: Vec<(Expr, Expr)>,
    shown: String,
}

/// Plans `pivot((query), (SELECT aggregates GROUP BY ...), __pivot_on(column) [, (SELECT values)], ...)`, with NULL for no values.
pub(super) fn plan(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    let [source, aggregates, pivoted @ ..] = args else { return Err(malformed(USAGE)) };
    let source = subquery(source).ok_or_else(|| malformed(USAGE))?;
    let aggregates = subquery(aggregates).and_then(select_of).ok_or_else(|| malformed(USAGE))?;
    let values_of = |items: &[SelectItem]| -> Option<Vec<(Expr, Option<Ident>)>> {
        let named = |(expr, alias): (&Expr, Option<&Ident>)| (expr.clone(), alias.and_then(given_name).map(Ident::new));
        items.iter().map(|item| item_parts(item).map(named)).collect()
    };
    let aggregate = |item: &SelectItem| {
        let (expr, alias) = item_parts(item)?;
        let text = alias.map_or_else(|| expr.to_string(), |alias| alias.value.clone());
        Some(PivotedAggregate { expr: expr.clone(), name: alias.and_then(given_name), text })
    };
    let group_by = match &aggregates.group_by {
        GroupByExpr::Expressions(exprs, _) if exprs.is_empty() => None,
        GroupByExpr::Expressions(exprs, _) => Some(exprs.clone()),
        GroupByExpr::All(_) => None,
    };
    let mut columns = Vec::with_capacity(pivoted.len() / 2);
    let mut rest = pivoted;
    while let [on, after @ ..] = rest {
        let on = arguments_of(on, marks::PIVOT_ON).and_then(|on| on.into_iter().next());
        let on = on.ok_or_else(|| malformed(USAGE))?;
        let [values, after @ ..] = after else { return Err(without_values()) };
        let values = match values {
            // What was found where there are no rows.
            Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Some(Vec::new()),
            values if arguments_of(values, marks::PIVOT_ON).is_some() => return Err(without_values()),
            values => subquery(values).and_then(select_of).and_then(|select| values_of(&select.projection)),
        };
        columns.push(PivotedColumn { on, values: values.ok_or_else(|| malformed(USAGE))? });
        rest = after;
    }
    let computed: Option<Vec<PivotedAggregate>> = aggregates.projection.iter().map(aggregate).collect();
    let pivot = Pivot {
        source: derived(source.clone(), None),
        aggregates: computed.ok_or_else(|| malformed(USAGE))?,
        columns,
        group_by,
    };
    pivot.plan(context)
}

/// Plans `table PIVOT (aggregates FOR column IN (values))`, where other columns with theirs, and groups, stand among the values.
pub(super) fn plan_factor(
    table: TableFactor,
    aggregates: &[ExprWithAlias],
    columns: Vec<Expr>,
    values: PivotValueSource,
    context: &mut Context<'_>,
) -> Result<LogicalPlan> {
    let aggregate = |ExprWithAlias { expr, alias }: &ExprWithAlias| PivotedAggregate {
        expr: expr.clone(),
        name: alias.as_ref().map(|alias| alias.value.clone()),
        text: expr.to_string(),
    };
    let aggregates = aggregates.iter().map(aggregate).collect();
    let PivotValueSource::List(values) = values else { return Err(without_values()) };
    let on = match <[Expr; 1]>::try_from(columns) {
        Ok([on]) => on,
        // `FOR (a, b) IN ((1, 'x'), ...)`
        Err(columns) => Expr::Tuple(columns),
    };
    let mut column = PivotedColumn { on, values: Vec::new() };
    let (mut pivoted, mut group_by) = (Vec::new(), None);
    for ExprWithAlias { expr, alias } in values {
        match (arguments_of(&expr, marks::PIVOT_ON), arguments_of(&expr, marks::PIVOT_GROUP)) {
            (Some(on), _) => {
                let Some(on) = on.into_iter().next() else { return Err(malformed(USAGE)) };
                pivoted.push(std::mem::replace(&mut column, PivotedColumn { on, values: Vec::new() }));
            }
            (None, Some(exprs)) => group_by = Some(exprs),
            (None, None) => column.values.push((expr, alias)),
        }
    }
    pivoted.push(column);
    Pivot { source: table, aggregates, columns: pivoted, group_by }.plan(context)
}

/// Returns the arguments of a call of one of our marks.
pub(in crate::sql) fn arguments_of(expr: &Expr, mark: &str) -> Option<Vec<Expr>> {
    let Expr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let value = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let is_mark = function.name.to_string() == mark;
    is_mark.then(|| list.args.iter().map(value).collect()).flatten()
}

fn without_values() -> DataFusionError {
    EngineError::Unsupported {
        what: "PIVOT on whatever values there are, in a view,".into(),
        hint: "the columns of a view are those of the day when it is made: list the values, ON column IN ('a', 'b')"
            .into(),
    }
    .into()
}

impl Pivot {
    fn plan(self, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
        let made = self.columns.iter().map(|column| column.values.len());
        if made.fold(self.aggregates.len(), usize::saturating_mul) > MAX_PIVOT_COLUMNS {
            return Err(
                EngineError::Plan { message: format!("PIVOT makes at most {MAX_PIVOT_COLUMNS} columns") }.into()
            );
        }
        for column in &self.columns {
            let is_another_row =
                |value: &Expr, width: usize| matches!(value, Expr::Tuple(values) if values.len() != width);
            if let Expr::Tuple(on) = &column.on
                && column.values.iter().any(|(value, _)| is_another_row(value, on.len()))
            {
                let message = format!("each value of a PIVOT on {} columns has as many values in it", on.len());
                return Err(EngineError::Plan { message }.into());
            }
        }
        let group_by = match &self.group_by {
            Some(exprs) => exprs.clone(),
            None => {
                let source = context.plan(self.source.clone())?;
                let taken = self.columns_taken();
                let is_free = |name: &String| !taken.iter().any(|taken| same_name(taken, name));
                let free = column_names(source.schema()).into_iter().filter(is_free);
                free.map(|name| Expr::Identifier(Ident::with_quote('"', name))).collect()
            }
        };
        let mut projection: Vec<SelectItem> = group_by.iter().cloned().map(SelectItem::UnnamedExpr).collect();
        for PivotedValues { values, shown } in self.all_values() {
            for PivotedAggregate { expr: aggregate, name, text } in &self.aggregates {
                let column = match name {
                    Some(name) => format!("{shown}_{name}"),
                    None if self.aggregates.len() > 1 => format!("{shown}_{text}"),
                    None => shown.clone(),
                };
                if group_by.iter().any(|group| name_of_column(group) == Some(column.as_str())) {
                    return Err(named_as_group(&column, aggregate));
                }
                let expr = only_where(aggregate.clone(), &values);
                projection.push(SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', column) });
            }
        }
        let mut select = select_star(vec![plain(self.source)]);
        select.projection = projection;
        select.group_by = GroupByExpr::Expressions(group_by, Vec::new());
        let query: Query = query_of(SetExpr::Select(Box::new(select)));
        context.plan(derived(query, None))
    }

    /// Returns the names of the columns that the pivot computes with.
    fn columns_taken(&self) -> Vec<String> {
        struct PivotColumns(Vec<String>);
        impl Visitor for PivotColumns {
            type Break = ();
            fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
                match expr {
                    Expr::Identifier(ident) => self.0.push(ident.value.clone()),
                    Expr::CompoundIdentifier(parts) => self.0.extend(parts.last().map(|ident| ident.value.clone())),
                    _ => {}
                }
                ControlFlow::Continue(())
            }
        }
        let mut names = PivotColumns(Vec::new());
        for column in &self.columns {
            let _: ControlFlow<()> = column.on.visit(&mut names);
        }
        for aggregate in &self.aggregates {
            let _: ControlFlow<()> = aggregate.expr.visit(&mut names);
        }
        names.0
    }

    /// Returns the values of all columns with each other, those of the last column next to each other.
    fn all_values(&self) -> Vec<PivotedValues> {
        let mut all = vec![PivotedValues::default()];
        for (index, column) in self.columns.iter().enumerate() {
            let mut longer = Vec::with_capacity(all.len() * column.values.len());
            for before in &all {
                for (value, alias) in &column.values {
                    let mut next = before.clone();
                    if index > 0 {
                        next.shown.push('_');
                    }
                    let shown = alias.as_ref().map_or_else(|| text_of_value(value), |alias| alias.value.clone());
                    next.shown.push_str(&shown);
                    match (&column.on, value) {
                        (Expr::Tuple(on), Expr::Tuple(values)) => {
                            next.values.extend(on.iter().cloned().zip(values.iter().cloned()));
                        }
                        (on, value) => next.values.push((on.clone(), value.clone())),
                    }
                    longer.push(next);
                }
            }
            all = longer;
        }
        all
    }
}

/// Returns the aggregate over the rows that have all of `values`.
fn only_where(mut aggregate: Expr, values: &[(Expr, Expr)]) -> Expr {
    let condition = |(on, value): &(Expr, Expr)| {
        let on = Box::new(Expr::Nested(Box::new(on.clone())));
        match value {
            Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Expr::IsNull(on),
            value => Expr::BinaryOp { left: on, op: BinaryOperator::Eq, right: Box::new(value.clone()) },
        }
    };
    let both = |left, right| Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) };
    if let Some(condition) = values.iter().map(condition).reduce(both) {
        let _: ControlFlow<()> = VisitMut::visit(&mut aggregate, &mut Filter { condition });
    }
    aggregate
}

/// Filters all aggregates of an expression.
struct Filter {
    condition: Expr,
}

impl VisitorMut for Filter {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && is_aggregate(&function.name.to_string().to_lowercase())
        {
            let condition = Expr::Nested(Box::new(self.condition.clone()));
            function.filter = Some(Box::new(match function.filter.take() {
                Some(own) => Expr::BinaryOp { left: own, op: BinaryOperator::And, right: Box::new(condition) },
                None => condition,
            }));
        }
        ControlFlow::Continue(())
    }
}

/// Returns the name of a column that stands alone.
fn name_of_column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(ident) => Some(&ident.value),
        Expr::CompoundIdentifier(parts) => parts.last().map(|ident| ident.value.as_str()),
        _ => None,
    }
}

fn named_as_group(column: &str, aggregate: &Expr) -> DataFusionError {
    let message = format!(
        "PIVOT makes a column `{column}` of a value, and groups by a column of that name; name what is computed, which the names of \
         all its columns end in: USING {aggregate} AS total makes `{column}_total`"
    );
    EngineError::Plan { message }.into()
}

/// Returns the name that the statement gives; `None` for one that was made of a text.
fn given_name(alias: &Ident) -> Option<String> {
    match alias.value.strip_prefix(marks::PIVOT_NAME) {
        Some(name) => Some(name.to_owned()),
        None => alias.quote_style.is_none().then(|| alias.value.clone()),
    }
}

fn text_of_value(value: &Expr) -> String {
    match value {
        Expr::Identifier(name) => name.value.clone(),
        Expr::TypedString(typed) => text_of_value(&Expr::Value(typed.value.clone())),
        Expr::Cast { expr, .. } => text_of_value(expr),
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text) | Value::Number(text, _), .. }) => {
            text.clone()
        }
        Expr::Tuple(values) => values.iter().map(text_of_value).collect::<Vec<_>>().join("_"),
        other => other.to_string(),
    }
}

//! `SUMMARIZE`: a row for each column of a relation, as DuckDB has it, in one pass over the relation.

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::Expr;

use super::{Context, derived, malformed, plan_over, quoted_text, subquery};
use crate::error::EngineError;
use crate::identifiers::quote_identifier;
use crate::type_names::sql_name;

/// The most columns of a summary: each is a dozen aggregates.
const MAX_COLUMNS: usize = 500;

/// Plans `summarize((query))`.
pub(super) fn plan(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    let query = match args {
        [query] => subquery(query),
        _ => None,
    };
    let query = query.ok_or_else(|| malformed("write SUMMARIZE table, or SUMMARIZE query"))?;
    let source = context.plan(derived(query.clone(), None))?;
    let fields = source.schema().fields().clone();
    if fields.len() > MAX_COLUMNS {
        let message =
            format!("SUMMARIZE takes at most {MAX_COLUMNS} columns, this has {}; name some of them", fields.len());
        return Err(EngineError::Plan { message }.into());
    }
    if let Some(twice) =
        fields.iter().enumerate().find(|(at, field)| fields.iter().take(*at).any(|other| other.name() == field.name()))
    {
        let message = format!("two columns are called `{}`; give each a name with AS", twice.1.name());
        return Err(EngineError::Plan { message }.into());
    }
    let rows: Vec<String> =
        fields.iter().enumerate().map(|(at, field)| row(at, field.name(), field.data_type())).collect();
    let columns = COLUMNS.map(|name| format!("s['{name}'] AS {name}")).join(", ");
    // The rows of an unnested list go on in any order, and who reads a summary looks for the order of the columns.
    let text = format!(
        "SELECT {columns} FROM (SELECT unnest(make_array({})) AS s FROM t) AS summary ORDER BY s['{POSITION}']",
        rows.join(", ")
    );
    plan_over(&text, derived(query.clone(), None), context)
}

const COLUMNS: [&str; 12] = [
    "column_name",
    "column_type",
    "min",
    "max",
    "approx_unique",
    "avg",
    "std",
    "q25",
    "q50",
    "q75",
    "count",
    "null_percentage",
];

/// The member of a row that has its column's place.
const POSITION: &str = "position";

fn row(position: usize, name: &str, data_type: &DataType) -> String {
    let column = quote_identifier(name);
    let shown = |value: String| format!("CAST({value} AS VARCHAR)");
    let nothing = || "CAST(NULL AS VARCHAR)".to_owned();
    let is_nested = data_type.is_nested() || matches!(data_type, DataType::Interval(_) | DataType::Null);
    let extreme = |function: &str| if is_nested { nothing() } else { shown(format!("{function}({column})")) };
    let number = |function: &str| match data_type.is_numeric() {
        true => shown(format!("{function}(CAST({column} AS DOUBLE))")),
        false => nothing(),
    };
    let quantile = |fraction: &str| match data_type.is_numeric() {
        true => shown(format!("approx_percentile_cont({fraction}) WITHIN GROUP (ORDER BY CAST({column} AS DOUBLE))")),
        false => nothing(),
    };
    let values = [
        quoted_text(name),
        quoted_text(&sql_name(data_type)),
        extreme("min"),
        extreme("max"),
        if is_nested {
            "CAST(NULL AS BIGINT UNSIGNED)".into()
        } else {
            format!("approx_distinct(CAST({column} AS VARCHAR))")
        },
        number("avg"),
        number("stddev"),
        quantile("0.25"),
        quantile("0.5"),
        quantile("0.75"),
        "count(*)".into(),
        format!("round(100.0e0 * (count(*) - count({column})) / nullif(count(*), 0), 2)"),
    ];
    let fields: Vec<String> = COLUMNS.iter().zip(values).map(|(name, value)| format!("'{name}', {value}")).collect();
    format!("named_struct('{POSITION}', {position}, {})", fields.join(", "))
}

//! SHOW and DESCRIBE: queries over what the principal may see.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, ShowStatementFilter, ShowStatementFilterPosition, ShowStatementOptions,
};
use querent_catalog::{
    Catalog, ColumnInfo, KeyConstraint, KeyFilter, KeyKind, PageRequest, Principal, Role, TableFilter, TableName,
    TableSource,
};

use super::column_defaults::column_clause;
use super::session_settings::SessionSetting;
use super::session_variables::SessionVariables;
use super::sort_orders::order_clause;
use crate::error::{EngineError, Result};
use crate::identifiers::{quote_identifier, same_name};
use crate::tables::external::{DECLARED_COLUMNS, is_written_option};
use crate::tables::system::{self, is_system_database};
use crate::type_names::sql_name;

/// The most keys of a table that are shown.
const MAX_KEYS: usize = 10_000;

/// Returns the query for `SHOW TABLES [FROM database] [LIKE pattern]`: by default of the session's database, and the
/// session's `own` tables, which are in none.
pub(super) async fn tables(
    catalog: &Arc<Catalog>,
    who: &Principal,
    session_database: &str,
    own: &[String],
    options: ShowStatementOptions,
) -> Result<String> {
    let parent = options.show_in.as_ref().and_then(|show_in| show_in.parent_name.clone());
    let (asked, own) = match parent {
        None => (session_database.to_owned(), own),
        Some(name) => (last_part(&name)?, &[][..]),
    };
    if is_system_database(&asked) {
        // `information_schema.tables` lists what the catalog has, which these are not.
        let database = quoted(&asked.to_lowercase());
        let rows: Vec<String> = system::table_names(who, &asked)
            .into_iter()
            .map(|name| format!("({database}, {}, 'VIEW')", quoted(name)))
            .collect();
        let condition = condition(options, "table_name")?;
        return Ok(format!(
            "SELECT * FROM (VALUES {}) AS v(table_schema, table_name, table_type) WHERE true{condition} \
             ORDER BY table_name",
            rows.join(", ")
        ));
    }
    let Some(database) = catalog.databases().get(who, &asked).await?.map(|database| database.name) else {
        return Err(catalog.tables().not_found(who, &TableName::new(asked, "")).await.into());
    };
    let condition = condition(options, "table_name")?;
    let stored = format!(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = {}",
        quoted(&database)
    );
    if own.is_empty() {
        return Ok(format!("{stored}{condition} ORDER BY table_name"));
    }
    let own: Vec<String> =
        own.iter().map(|name| format!("(CAST(NULL AS VARCHAR), {}, 'LOCAL TEMPORARY')", quoted(name))).collect();
    Ok(format!(
        "SELECT table_schema, table_name, table_type \
         FROM ({stored} UNION ALL SELECT * FROM (VALUES {}) AS o(table_schema, table_name, table_type)) AS l \
         WHERE true{condition} ORDER BY table_name",
        own.join(", ")
    ))
}

/// Returns the query for `SHOW DATABASES [LIKE pattern]` and `SHOW SCHEMAS [LIKE pattern]`.
pub(super) fn databases(options: ShowStatementOptions) -> Result<String> {
    let condition = condition(options, "schema_name")?;
    Ok(format!("SELECT schema_name FROM information_schema.schemata WHERE true{condition} ORDER BY schema_name"))
}

/// Returns the table that `SHOW COLUMNS FROM table` names.
pub(super) fn columns_of(options: ShowStatementOptions) -> Result<ObjectName> {
    let parent = options.show_in.as_ref().and_then(|show_in| show_in.parent_name.clone());
    match parent {
        Some(name) if options.filter_position.is_none() => Ok(name),
        _ => Err(EngineError::Unsupported {
            what: "this form of SHOW COLUMNS".into(),
            hint: "write SHOW COLUMNS FROM table, or query information_schema.columns".into(),
        }),
    }
}

/// Plans `DESCRIBE table`: the columns in order, with their comments.
pub(super) async fn columns(catalog: &Arc<Catalog>, who: &Principal, name: &TableName) -> Result<LogicalPlan> {
    let rows: Vec<[ScalarValue; 4]> = if is_system_database(&name.database) {
        let (database, table) = (name.database.to_lowercase(), name.table.to_lowercase());
        let Some(provider) = system::provider(catalog, who, &database, &table) else {
            return Err(catalog.tables().not_found(who, name).await.into());
        };
        let schema = provider.schema();
        schema.fields().iter().map(|field| row(field.name(), field.data_type(), field.is_nullable(), None)).collect()
    } else {
        let resolved = catalog.tables().resolve(who, std::slice::from_ref(name)).await?.into_iter().next().flatten();
        let Some(table) = resolved else { return Err(catalog.tables().not_found(who, name).await.into()) };
        let columns = table.info.columns.iter();
        columns.map(|column| row(&column.name, &column.data_type, column.nullable, column.comment.as_deref())).collect()
    };
    described(rows)
}

/// Plans `DESCRIBE` of a temporary table, whose columns have no comments.
pub(super) fn temporary_columns(schema: &Schema) -> Result<LogicalPlan> {
    let fields = schema.fields().iter();
    described(fields.map(|field| row(field.name(), field.data_type(), field.is_nullable(), None)).collect())
}

/// Plans `DESCRIBE SELECT ...`: the columns that a query has; they have no comments.
pub(super) fn query_columns(schema: &DFSchema) -> Result<LogicalPlan> {
    let fields = schema.fields().iter();
    let rows = fields.map(|field| row(field.name(), field.data_type(), field.is_nullable(), None)).collect();
    let plan = LogicalPlanBuilder::from(described(rows)?);
    let columns: Vec<Expr> = plan.schema().columns().into_iter().take(3).map(Expr::Column).collect();
    Ok(plan.project(columns)?.build()?)
}

fn described(rows: Vec<[ScalarValue; 4]>) -> Result<LogicalPlan> {
    let names = ["column_name", "data_type", "is_nullable", "comment"];
    let plan = if rows.is_empty() {
        // Nothing is stored of the columns of a view that DuckDB made.
        let no_text = || lit(ScalarValue::Utf8(None));
        LogicalPlanBuilder::values(vec![names.iter().map(|_| no_text()).collect()])?.filter(lit(false))?
    } else {
        LogicalPlanBuilder::values(rows.into_iter().map(|row| row.into_iter().map(lit).collect()).collect())?
    };
    let renamed = plan.schema().columns().into_iter().zip(names).map(|(column, name)| Expr::Column(column).alias(name));
    let renamed: Vec<_> = renamed.collect();
    Ok(plan.project(renamed)?.build()?)
}

/// Returns the query for `SHOW name`: what clients ask about a session.
pub(super) fn variable(words: &[Ident], database: &str, variables: Option<&SessionVariables>) -> Result<String> {
    let name = words.iter().map(|word| word.value.to_lowercase()).collect::<Vec<_>>().join(" ");
    let value = |setting: &SessionSetting| {
        let set = variables.and_then(|variables| variables.value(setting)).filter(|_| !setting.is_database());
        set.unwrap_or_else(|| setting.default_value().unwrap_or(database).to_owned())
    };
    match name.as_str() {
        "all tables" => Ok("SELECT table_schema, table_name, table_type FROM information_schema.tables \
                            ORDER BY table_schema, table_name"
            .into()),
        "all" => {
            let rows = SessionSetting::all().iter().map(|setting| {
                format!("({}, {}, {})", quoted(setting.name), quoted(&value(setting)), quoted(setting.description))
            });
            let rows: Vec<String> = rows.collect();
            Ok(format!("SELECT * FROM (VALUES {}) AS settings(name, setting, description)", rows.join(", ")))
        }
        _ => match SessionSetting::named(&name) {
            Ok(setting) => Ok(format!("SELECT {} AS {}", quoted(&value(setting)), quote_identifier(&name))),
            Err(EngineError::Unsupported { hint, .. }) => Err(EngineError::Unsupported {
                what: format!("SHOW {name}"),
                hint: format!(
                    "{hint}; there are also SHOW TABLES, SHOW DATABASES, SHOW COLUMNS FROM and SHOW FUNCTIONS, and \
                     DESCRIBE for a table"
                ),
            }),
            Err(error) => Err(error),
        },
    }
}

/// Plans `SHOW CREATE TABLE` and `SHOW CREATE VIEW`: the statement that would make it.
pub(super) async fn definition(catalog: &Arc<Catalog>, who: &Principal, name: &TableName) -> Result<LogicalPlan> {
    let resolved = catalog.tables().resolve(who, std::slice::from_ref(name)).await?.into_iter().next().flatten();
    let Some(table) = resolved else { return Err(catalog.tables().not_found(who, name).await.into()) };
    let own = &table.info.name;
    let shown = format!("{}.{}", quote_identifier(&own.database), quote_identifier(&own.table));
    let text = match &table.source {
        TableSource::View { sql, .. } => format!("CREATE VIEW {shown} AS {sql}"),
        TableSource::Managed(managed) => {
            let mut parts: Vec<String> = table.info.columns.iter().map(column_clause).collect();
            let named = TableFilter {
                database: Some(own.database.clone()),
                name: Some(own.table.clone()),
                ..TableFilter::default()
            };
            let filter = KeyFilter { table: named, ..KeyFilter::default() };
            let keys = catalog.keys().list(who, &filter, PageRequest::first(MAX_KEYS)).await?.items;
            parts.extend(keys.iter().filter(|key| key.table == *own).map(key_clause));
            let mut sorted_by = catalog.tables().sort_order(managed).await?;
            // By columns that the caller may not see nothing is sorted for it.
            if table.restriction.is_some() {
                let is_seen = |name: &str| table.info.columns.iter().any(|column| same_name(&column.name, name));
                let seen = sorted_by.iter().take_while(|key| key.column().is_some_and(|name| is_seen(&name))).count();
                sorted_by.truncate(seen);
            }
            let order = order_clause(&sorted_by);
            format!("CREATE TABLE {shown} ({}){order}", parts.join(", "))
        }
        TableSource::External(external) => {
            let format = format!("{:?}", external.format).to_uppercase();
            // Where files lie is for administrators.
            let name = external.location.rsplit('/').find(|part| !part.is_empty());
            let shown_location = match who.role() {
                Role::Admin => external.location.as_str(),
                Role::Read | Role::Write => name.unwrap_or_default(),
            };
            // Options may name columns that a caller with a restriction does not see.
            let is_whole = who.role() == Role::Admin && table.restriction.is_none();
            let options = external.options.iter().filter(|(name, _)| is_whole && is_written_option(name));
            let options: Vec<String> =
                options.map(|(name, value)| format!("{} {}", quoted(name), quoted(value))).collect();
            let options = if options.is_empty() { String::new() } else { format!(" OPTIONS ({})", options.join(", ")) };
            let (columns, partitions) = match external.options.contains_key(DECLARED_COLUMNS) {
                true => declared_columns(&table.info.columns, &external.partition_columns),
                false => (String::new(), String::new()),
            };
            let location = quoted(shown_location);
            format!(
                "CREATE EXTERNAL TABLE {shown}{columns} STORED AS {format}{partitions} LOCATION {location}{options}"
            )
        }
    };
    let names = ["table_name", "create_statement"];
    let plan = LogicalPlanBuilder::values(vec![vec![lit(shown), lit(text)]])?;
    let columns = plan.schema().columns().into_iter().zip(names);
    let renamed: Vec<_> = columns.map(|(column, name)| Expr::Column(column).alias(name)).collect();
    Ok(plan.project(renamed)?.build()?)
}

/// Returns the columns of a statement that makes an external table, and by which of them its files are partitioned.
fn declared_columns(columns: &[ColumnInfo], partition_columns: &[String]) -> (String, String) {
    let clauses: Vec<String> = columns.iter().map(column_clause).collect();
    // One that the caller may not see is not told.
    let is_seen = |name: &&String| columns.iter().any(|column| same_name(&column.name, name));
    let partitions: Vec<String> = partition_columns.iter().filter(is_seen).map(|name| quote_identifier(name)).collect();
    let partitioned = match partitions.is_empty() {
        true => String::new(),
        false => format!(" PARTITIONED BY ({})", partitions.join(", ")),
    };
    (format!(" ({})", clauses.join(", ")), partitioned)
}

fn key_clause(key: &KeyConstraint) -> String {
    let listed =
        |columns: &[String]| columns.iter().map(|column| quote_identifier(column)).collect::<Vec<_>>().join(", ");
    let columns = listed(&key.columns);
    match (key.kind, &key.referred) {
        (KeyKind::Primary, _) => format!("PRIMARY KEY ({columns})"),
        (KeyKind::Foreign, Some(referred)) => format!(
            "FOREIGN KEY ({columns}) REFERENCES {}.{} ({})",
            quote_identifier(&referred.table.database),
            quote_identifier(&referred.table.table),
            listed(&referred.columns)
        ),
        (KeyKind::Unique | KeyKind::Foreign, _) => format!("UNIQUE ({columns})"),
    }
}

fn row(name: &str, data_type: &arrow::datatypes::DataType, nullable: bool, comment: Option<&str>) -> [ScalarValue; 4] {
    let nullable = if nullable { "YES" } else { "NO" };
    [
        ScalarValue::from(name),
        ScalarValue::from(sql_name(data_type)),
        ScalarValue::from(nullable),
        ScalarValue::Utf8(comment.map(str::to_owned)),
    ]
}

fn condition(options: ShowStatementOptions, column: &str) -> Result<String> {
    if options.starts_with.is_some() || options.limit.is_some() || options.limit_from.is_some() {
        return Err(unsupported_filter());
    }
    let filter = match options.filter_position {
        None => return Ok(String::new()),
        Some(ShowStatementFilterPosition::Infix(filter) | ShowStatementFilterPosition::Suffix(filter)) => filter,
    };
    match filter {
        // Names are compared without regard to case everywhere.
        ShowStatementFilter::Like(pattern) | ShowStatementFilter::ILike(pattern) => {
            Ok(format!(" AND {column} ILIKE {}", quoted(&pattern)))
        }
        ShowStatementFilter::Where(_) | ShowStatementFilter::NoKeyword(_) => Err(unsupported_filter()),
    }
}

fn unsupported_filter() -> EngineError {
    EngineError::Unsupported {
        what: "this filter of SHOW".into(),
        hint: "use LIKE 'pattern', or query information_schema".into(),
    }
}

fn last_part(name: &ObjectName) -> Result<String> {
    let ident = name.0.last().and_then(ObjectNamePart::as_ident);
    ident
        .map(|ident| ident.value.clone())
        .ok_or_else(|| EngineError::Plan { message: format!("`{name}` is not a name") })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

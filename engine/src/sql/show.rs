//! SHOW and DESCRIBE: queries over what the principal may see.

use std::sync::Arc;

use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    ObjectName, ObjectNamePart, ShowStatementFilter, ShowStatementFilterPosition, ShowStatementOptions,
};
use querent_catalog::{Catalog, Principal, TableName};

use crate::error::{EngineError, Result};
use crate::tables::system::{self, is_system_database};

/// Returns the query for `SHOW TABLES [FROM database] [LIKE pattern]`: by default of the session's database.
pub(super) async fn tables(
    catalog: &Arc<Catalog>,
    who: &Principal,
    session_database: &str,
    options: ShowStatementOptions,
) -> Result<String> {
    let parent = options.show_in.as_ref().and_then(|show_in| show_in.parent_name.clone());
    let asked = match parent {
        None => session_database.to_owned(),
        Some(name) => last_part(&name)?,
    };
    let database = if is_system_database(&asked) {
        asked.to_lowercase()
    } else {
        match catalog.databases().get(who, &asked).await? {
            Some(database) => database.name,
            None => return Err(catalog.tables().not_found(who, &TableName::new(asked, "")).await.into()),
        }
    };
    let condition = condition(options, "table_name")?;
    Ok(format!(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables \
         WHERE table_schema = {}{condition} ORDER BY table_name",
        quoted(&database)
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
    let names = ["column_name", "data_type", "is_nullable", "comment"];
    let plan = if rows.is_empty() {
        // Nothing is stored of the columns of a view that DuckDB made.
        let no_text = || lit(ScalarValue::Utf8(None));
        LogicalPlanBuilder::values(vec![names.iter().map(|_| no_text()).collect()])?.filter(lit(false))?
    } else {
        LogicalPlanBuilder::values(rows.into_iter().map(|row| row.into_iter().map(lit).collect()).collect())?
    };
    let renamed = plan
        .schema()
        .columns()
        .into_iter()
        .zip(names)
        .map(|(column, name)| datafusion::logical_expr::Expr::Column(column).alias(name));
    let renamed: Vec<_> = renamed.collect();
    Ok(plan.project(renamed)?.build()?)
}

fn row(name: &str, data_type: &arrow::datatypes::DataType, nullable: bool, comment: Option<&str>) -> [ScalarValue; 4] {
    let nullable = if nullable { "YES" } else { "NO" };
    [
        ScalarValue::from(name),
        ScalarValue::from(data_type.to_string()),
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

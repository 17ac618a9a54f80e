//! Databases, tables and columns as Kusto's commands list them. A listing is bounded; one that would be longer fails.

use querent_catalog::{Catalog, DatabaseInfo, PageRequest, Principal, TableFilter, TableInfo, TableName};
use querent_engine::kql::KqlType;
use serde_json::{Map, Value, json};

use super::table::{CommandTable, TEXT};
use crate::error::{ApiError, ErrorCode};

/// The most tables whose columns one command lists.
const MAX_TABLES_WITH_COLUMNS: usize = 20_000;
/// The most tables or databases that one command lists by name.
const MAX_NAMES: usize = 500_000;
const PAGE: usize = 5_000;

/// `.show databases`.
pub(super) async fn databases(catalog: &Catalog, who: &Principal, in_use: &str) -> Result<CommandTable, ApiError> {
    let rows = all_databases(catalog, who).await?.into_iter().map(|database| {
        let is_current = database.name == in_use;
        vec![
            json!(database.name),
            json!(""),
            json!("v1.0"),
            json!(is_current),
            json!("ReadWrite"),
            json!(""),
            Value::Null,
            Value::Null,
            json!(""),
            json!(""),
        ]
    });
    Ok(CommandTable {
        columns: vec![
            ("DatabaseName", TEXT),
            ("PersistentStorage", TEXT),
            ("Version", TEXT),
            ("IsCurrent", KqlType::Bool),
            ("DatabaseAccessMode", TEXT),
            ("PrettyName", TEXT),
            ("ReservedSlot1", KqlType::Bool),
            ("DatabaseId", KqlType::Guid),
            ("InTransitionTo", TEXT),
            ("SuspensionState", TEXT),
        ],
        rows: rows.collect(),
    })
}

/// `.show tables`: all tables of a database, or those with these names.
pub(super) async fn tables(
    catalog: &Catalog,
    who: &Principal,
    database: &str,
    names: &[String],
) -> Result<CommandTable, ApiError> {
    let columns = ["TableName", "DatabaseName", "Folder", "DocString"].map(|name| (name, TEXT)).into();
    let filter = TableFilter { database: Some(database.to_owned()), ..TableFilter::default() };
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = catalog.tables().list(who, &filter, PageRequest { limit: PAGE, after }).await?;
        let wanted = page
            .items
            .into_iter()
            .filter(|table| names.is_empty() || names.iter().any(|name| name.eq_ignore_ascii_case(&table.name.table)));
        rows.extend(wanted.map(|table| {
            vec![json!(table.name.table), json!(database), json!(""), json!(table.comment.unwrap_or_default())]
        }));
        after = page.next;
        if rows.len() > MAX_NAMES {
            return Err(too_many("tables", MAX_NAMES));
        }
        if after.is_none() {
            return Ok(CommandTable { columns, rows });
        }
    }
}

/// `.show table T schema as json` and `.show table T cslschema`.
pub(super) async fn table(
    catalog: &Catalog,
    who: &Principal,
    database: &str,
    table: &str,
    as_json: bool,
) -> Result<CommandTable, ApiError> {
    let name = TableName::new(database, table);
    let Some(resolved) = catalog.tables().resolve(who, std::slice::from_ref(&name)).await?.pop().flatten() else {
        return Err(catalog.tables().not_found(who, &name).await.into());
    };
    let table = resolved.info;
    let schema = match as_json {
        true => table_json(&table).to_string(),
        false => {
            let columns = table.columns.iter().map(|column| {
                format!("{}:{}", bracketed(&column.name), KqlType::of_column(&column.data_type, column.is_json).name())
            });
            columns.collect::<Vec<_>>().join(",")
        }
    };
    Ok(CommandTable {
        columns: ["TableName", "Schema", "DatabaseName", "Folder", "DocString"].map(|name| (name, TEXT)).into(),
        rows: vec![vec![
            json!(table.name.table),
            json!(schema),
            json!(table.name.database),
            json!(""),
            json!(table.comment.unwrap_or_default()),
        ]],
    })
}

/// Every column of a database, or of all databases.
pub(super) struct DatabaseColumns {
    databases: Vec<(String, Vec<TableInfo>)>,
}

impl DatabaseColumns {
    /// Errors: `database_not_found`, `kql_too_large`.
    pub(super) async fn read(catalog: &Catalog, who: &Principal, database: Option<&str>) -> Result<Self, ApiError> {
        let names = match database {
            None => all_databases(catalog, who).await?,
            Some(name) => match catalog.databases().get(who, name).await? {
                Some(database) => vec![database],
                None => return Err(catalog.tables().not_found(who, &TableName::new(name, "")).await.into()),
            },
        };
        let mut databases: Vec<(String, Vec<TableInfo>)> =
            names.into_iter().map(|database| (database.name, Vec::new())).collect();
        let mut left = MAX_TABLES_WITH_COLUMNS;
        for (name, tables) in &mut databases {
            let filter = TableFilter { database: Some(name.clone()), ..TableFilter::default() };
            let mut after = None;
            loop {
                let page = PageRequest { limit: PAGE.min(left + 1), after };
                let page = catalog.tables().list_with_columns(who, &filter, page).await?;
                left = left
                    .checked_sub(page.items.len())
                    .ok_or_else(|| too_many("tables with their columns", MAX_TABLES_WITH_COLUMNS))?;
                tables.extend(page.items);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(Self { databases })
    }

    /// Returns a row for each database, table and column.
    pub(super) fn listing(&self) -> CommandTable {
        let row = |database: &str, table: Value, column: Value, kql_type: Value, comment: &Option<String>| {
            vec![
                json!(database),
                table,
                column,
                kql_type,
                json!(false),
                json!(false),
                json!(""),
                json!("v1.0"),
                json!(""),
                json!(comment.as_deref().unwrap_or_default()),
            ]
        };
        let mut rows = Vec::new();
        for (database, tables) in &self.databases {
            rows.push(row(database, json!(""), json!(""), json!(""), &None));
            for table in tables {
                let name = json!(table.name.table);
                rows.push(row(database, name.clone(), json!(""), json!(""), &table.comment));
                rows.extend(table.columns.iter().map(|column| {
                    let kql_type = json!(KqlType::of_column(&column.data_type, column.is_json).dotnet_name());
                    row(database, name.clone(), json!(column.name), kql_type, &column.comment)
                }));
            }
        }
        CommandTable {
            columns: vec![
                ("DatabaseName", TEXT),
                ("TableName", TEXT),
                ("ColumnName", TEXT),
                ("ColumnType", TEXT),
                ("IsDefaultTable", KqlType::Bool),
                ("IsDefaultColumn", KqlType::Bool),
                ("PrettyName", TEXT),
                ("Version", TEXT),
                ("Folder", TEXT),
                ("DocString", TEXT),
            ],
            rows,
        }
    }

    /// Returns one row that holds one JSON document.
    pub(super) fn document(&self, column: &'static str) -> CommandTable {
        let databases = self.databases.iter().map(|(name, tables)| {
            let tables = tables.iter().map(|table| (table.name.table.clone(), table_json(table)));
            let database = json!({
                "Name": name,
                "Tables": tables.collect::<Map<String, Value>>(),
                "ExternalTables": {},
                "MaterializedViews": {},
                "EntityGroups": {},
                "MajorVersion": 1,
                "MinorVersion": 0,
                "Functions": {},
                "DatabaseAccessMode": "ReadWrite",
            });
            (name.clone(), database)
        });
        let document = json!({ "Databases": databases.collect::<Map<String, Value>>() });
        CommandTable { columns: vec![(column, TEXT)], rows: vec![vec![json!(document.to_string())]] }
    }
}

fn table_json(table: &TableInfo) -> Value {
    let columns = table.columns.iter().map(|column| {
        let kql_type = KqlType::of_column(&column.data_type, column.is_json);
        json!({
            "Name": column.name,
            "Type": kql_type.dotnet_name(),
            "CslType": kql_type.name(),
            "DocString": column.comment.as_deref().unwrap_or_default(),
        })
    });
    json!({
        "Name": table.name.table,
        "Folder": "",
        "DocString": table.comment.as_deref().unwrap_or_default(),
        "OrderedColumns": columns.collect::<Vec<_>>(),
    })
}

/// Returns a name as a query writes it.
fn bracketed(name: &str) -> String {
    let is_plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
        && !name.starts_with(|char: char| char.is_ascii_digit());
    if is_plain { name.to_owned() } else { format!("[{}]", json!(name)) }
}

async fn all_databases(catalog: &Catalog, who: &Principal) -> Result<Vec<DatabaseInfo>, ApiError> {
    let mut databases = Vec::new();
    let mut after = None;
    loop {
        let page = catalog.databases().list(who, None, PageRequest { limit: PAGE, after }).await?;
        databases.extend(page.items);
        after = page.next;
        if databases.len() > MAX_NAMES {
            return Err(too_many("databases", MAX_NAMES));
        }
        if after.is_none() {
            return Ok(databases);
        }
    }
}

fn too_many(what: &str, most: usize) -> ApiError {
    ApiError::new(ErrorCode::KqlTooLarge, format!("a command lists no more than {most} {what}"))
        .with_hint("ask for one database or one table, or page through GET /v1/catalog/schema")
}

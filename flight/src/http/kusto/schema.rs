//! Databases, tables and columns as Kusto's commands list them. A listing is bounded; one that would be longer fails.

use querent_catalog::{
    Catalog, CatalogError, ColumnInfo, DatabaseInfo, Page, PageRequest, Principal, TableFilter, TableInfo, TableKind,
    TableName, TableSummary,
};
use querent_engine::kql::KqlType;
use serde_json::{Map, Value, json};

use super::commands::{DatabaseListing, SchemaScope};
use super::table::{CommandTable, TEXT};
use crate::error::{ApiError, ErrorCode};

/// The most tables whose columns one command lists.
const MAX_TABLES_WITH_COLUMNS: usize = 20_000;
/// The most tables or databases that one command lists by name.
const MAX_NAMES: usize = 500_000;
const PAGE: usize = 5_000;

/// `.show databases` and `.show database`.
///
/// Errors: `database_not_found`, `kql_too_large`.
pub(super) async fn databases(
    catalog: &Catalog,
    who: &Principal,
    in_use: &str,
    scope: &SchemaScope,
    listing: DatabaseListing,
) -> Result<CommandTable, ApiError> {
    let mut columns = vec![
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
    ];
    if listing == DatabaseListing::Identity {
        columns[6].0 = "CurrentUserIsUnrestrictedViewer";
        columns.pop();
    }
    let rows = databases_of(catalog, who, scope, in_use).await?.into_iter().map(|database| {
        let is_current = database.name == in_use;
        let mut row = vec![
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
        ];
        row.truncate(columns.len());
        row
    });
    let rows = rows.collect();
    Ok(CommandTable { columns, rows })
}

/// `.show tables [details]`: all tables of a database, or those with these names. What Kusto tells of extents and
/// policies is null.
///
/// Errors: `kql_too_large`.
pub(super) async fn tables(
    catalog: &Catalog,
    who: &Principal,
    database: &str,
    names: &[String],
    details: bool,
) -> Result<CommandTable, ApiError> {
    let filter = TableFilter { database: Some(database.to_owned()), ..TableFilter::default() };
    let tables = all_tables(catalog, who, &filter).await?;
    let is_wanted = |table: &TableSummary| {
        names.is_empty() || names.iter().any(|name| name.eq_ignore_ascii_case(&table.name.table))
    };
    let rows = tables.into_iter().filter(is_wanted).map(|table| {
        let mut row = vec![
            json!(table.name.table),
            json!(database),
            json!(""),
            json!(table.comment.as_deref().unwrap_or_default()),
        ];
        if details {
            row.extend(TABLE_DETAILS.iter().map(|(name, kql_type)| match *name {
                "TotalRowCount" | "HotRowCount" => json!(table.row_count),
                "TableId" => json!(table.id.to_string()),
                _ if *kql_type == TEXT => json!("null"),
                _ => Value::Null,
            }));
        }
        row
    });
    let rows = rows.collect();
    let mut columns: Vec<(&'static str, KqlType)> =
        ["TableName", "DatabaseName", "Folder", "DocString"].map(|name| (name, TEXT)).into();
    if details {
        columns.extend(TABLE_DETAILS);
    }
    Ok(CommandTable { columns, rows })
}

/// The columns that `details` puts behind those of `.show tables`. Texts are JSON, of which `null` is nothing.
const TABLE_DETAILS: [(&str, KqlType); 19] = [
    ("TotalExtents", KqlType::Long),
    ("TotalExtentSize", KqlType::Real),
    ("TotalOriginalSize", KqlType::Real),
    ("TotalRowCount", KqlType::Long),
    ("HotExtents", KqlType::Long),
    ("HotExtentSize", KqlType::Real),
    ("HotOriginalSize", KqlType::Real),
    ("HotRowCount", KqlType::Long),
    ("AuthorizedPrincipals", TEXT),
    ("RetentionPolicy", TEXT),
    ("CachingPolicy", TEXT),
    ("ShardingPolicy", TEXT),
    ("MergePolicy", TEXT),
    ("StreamingIngestionPolicy", TEXT),
    ("IngestionBatchingPolicy", TEXT),
    ("MinExtentsCreationTime", KqlType::DateTime),
    ("MaxExtentsCreationTime", KqlType::DateTime),
    ("RowOrderPolicy", TEXT),
    ("TableId", TEXT),
];

/// `.show external tables`. Where their files lie is not told.
///
/// Errors: `kql_too_large`.
pub(super) async fn external_tables(
    catalog: &Catalog,
    who: &Principal,
    database: &str,
) -> Result<CommandTable, ApiError> {
    let filter =
        TableFilter { database: Some(database.to_owned()), kinds: vec![TableKind::External], ..TableFilter::default() };
    let rows = all_tables(catalog, who, &filter).await?.into_iter().map(|table| {
        vec![
            json!(table.name.table),
            json!("Blob"),
            json!(""),
            json!(table.comment.unwrap_or_default()),
            json!("{}"),
            Value::Null,
            Value::Null,
            json!(""),
        ]
    });
    Ok(CommandTable {
        columns: vec![
            ("TableName", TEXT),
            ("TableType", TEXT),
            ("Folder", TEXT),
            ("DocString", TEXT),
            ("Properties", TEXT),
            ("ConnectionStrings", KqlType::Dynamic),
            ("Partitions", KqlType::Dynamic),
            ("PathFormat", TEXT),
        ],
        rows: rows.collect(),
    })
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
        false => csl_columns(&table, ","),
    };
    Ok(CommandTable { columns: table_schema_columns(), rows: vec![table_schema_row(&table, schema)] })
}

fn table_schema_columns() -> Vec<(&'static str, KqlType)> {
    ["TableName", "Schema", "DatabaseName", "Folder", "DocString"].map(|name| (name, TEXT)).into()
}

fn table_schema_row(table: &TableInfo, schema: String) -> Vec<Value> {
    vec![
        json!(table.name.table),
        json!(schema),
        json!(table.name.database),
        json!(""),
        json!(table.comment.as_deref().unwrap_or_default()),
    ]
}

/// Returns a table's columns as a `datatable` names them.
fn csl_columns(table: &TableInfo, separator: &str) -> String {
    let columns = table.columns.iter().map(|column| format!("{}:{}", bracketed(&column.name), kql_type(column).name()));
    columns.collect::<Vec<_>>().join(separator)
}

/// Every column of a database, or of all databases.
pub(super) struct DatabaseColumns {
    databases: Vec<(String, Vec<TableInfo>)>,
}

impl DatabaseColumns {
    /// Errors: `database_not_found`, `kql_too_large`.
    pub(super) async fn read(
        catalog: &Catalog,
        who: &Principal,
        scope: &SchemaScope,
        in_use: &str,
    ) -> Result<Self, ApiError> {
        let names = databases_of(catalog, who, scope, in_use).await?;
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
                    let dotnet_name = json!(kql_type(column).dotnet_name());
                    row(database, name.clone(), json!(column.name), dotnet_name, &column.comment)
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

    /// Returns a row for each table: a database has nothing else that Kusto calls an entity.
    pub(super) fn entities(&self) -> CommandTable {
        let tables =
            self.databases.iter().flat_map(|(database, tables)| tables.iter().map(move |table| (database, table)));
        let rows = tables.map(|(database, table)| {
            vec![
                json!(database),
                json!("Table"),
                json!(table.name.table),
                json!(table.comment.as_deref().unwrap_or_default()),
                json!(""),
                json!(""),
                json!(""),
                json!(csl_columns(table, ", ")),
                json!({}),
            ]
        });
        CommandTable {
            columns: vec![
                ("DatabaseName", TEXT),
                ("EntityType", TEXT),
                ("EntityName", TEXT),
                ("DocString", TEXT),
                ("Folder", TEXT),
                ("CslInputSchema", TEXT),
                ("Content", TEXT),
                ("CslOutputSchema", TEXT),
                ("Properties", KqlType::Dynamic),
            ],
            rows: rows.collect(),
        }
    }

    /// Returns a row for each table, with its columns as a `datatable` names them.
    pub(super) fn csl_schema(&self) -> CommandTable {
        let tables = self.databases.iter().flat_map(|(_, tables)| tables);
        let rows = tables.map(|table| table_schema_row(table, csl_columns(table, ",")));
        CommandTable { columns: table_schema_columns(), rows: rows.collect() }
    }

    /// Returns a command for each table that makes one like it in Kusto, one after the other in one text.
    pub(super) fn script(&self) -> CommandTable {
        let tables = self.databases.iter().flat_map(|(_, tables)| tables);
        let commands = tables.map(|table| {
            let comment = match table.comment.as_deref() {
                None | Some("") => String::new(),
                Some(comment) => format!(" with (docstring = {})", json!(comment)),
            };
            format!(".create-merge table {} ({}){comment}\n", bracketed(&table.name.table), csl_columns(table, ", "))
        });
        let script: Vec<String> = commands.collect();
        CommandTable { columns: vec![("DatabaseSchemaScript", TEXT)], rows: vec![vec![json!(script.join("\n"))]] }
    }

    /// Returns one row that holds one JSON document, with or without the tables.
    pub(super) fn document(&self, column: &'static str, has_tables: bool) -> CommandTable {
        let databases = self.databases.iter().map(|(name, tables)| {
            let tables = tables.iter().filter(|_| has_tables);
            let tables = tables.map(|table| (table.name.table.clone(), table_json(table)));
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

fn kql_type(column: &ColumnInfo) -> KqlType {
    KqlType::of_column(&column.data_type, column.is_json, column.is_uuid)
}

fn table_json(table: &TableInfo) -> Value {
    let columns = table.columns.iter().map(|column| {
        let kql_type = kql_type(column);
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

/// Returns the databases that a command is about.
async fn databases_of(
    catalog: &Catalog,
    who: &Principal,
    scope: &SchemaScope,
    in_use: &str,
) -> Result<Vec<DatabaseInfo>, ApiError> {
    let current = [in_use.to_owned()];
    let names = match scope {
        SchemaScope::All | SchemaScope::Cluster => return all_databases(catalog, who).await,
        SchemaScope::Current => current.as_slice(),
        SchemaScope::Named(names) => names.as_slice(),
    };
    let mut databases = Vec::new();
    for name in names {
        match catalog.databases().get(who, name).await? {
            Some(database) => databases.push(database),
            None => return Err(catalog.tables().not_found(who, &TableName::new(name, "")).await.into()),
        }
    }
    Ok(databases)
}

async fn all_tables(catalog: &Catalog, who: &Principal, filter: &TableFilter) -> Result<Vec<TableSummary>, ApiError> {
    all_pages("tables", |page| catalog.tables().list(who, filter, page)).await
}

async fn all_databases(catalog: &Catalog, who: &Principal) -> Result<Vec<DatabaseInfo>, ApiError> {
    all_pages("databases", |page| catalog.databases().list(who, None, page)).await
}

/// Returns all items of a listing, which `page_of` gives page by page. Errors: `kql_too_large`.
async fn all_pages<T, F>(what: &str, page_of: impl Fn(PageRequest) -> F) -> Result<Vec<T>, ApiError>
where
    F: Future<Output = Result<Page<T>, CatalogError>>,
{
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let page = page_of(PageRequest { limit: PAGE, after }).await?;
        items.extend(page.items);
        after = page.next;
        if items.len() > MAX_NAMES {
            return Err(too_many(what, MAX_NAMES));
        }
        if after.is_none() {
            return Ok(items);
        }
    }
}

fn too_many(what: &str, most: usize) -> ApiError {
    ApiError::new(ErrorCode::KqlTooLarge, format!("a command lists no more than {most} {what}"))
        .with_hint("ask for one database or one table, or page through GET /v1/catalog/schema")
}

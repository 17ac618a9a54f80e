//! Schemas as resources: the databases and tables that the caller may see, a page at a time, as Markdown for a model.
//!
//! Databases come first, then tables. A cursor is a position in the catalog's own listing, so a page costs what its
//! entries cost, however many tables there are.

use std::collections::HashSet;

use querent_catalog::{
    Catalog, PageRequest, PageToken, Principal, Relationship, TableFilter, TableInfo, TableKind, TableName,
    TableSummary,
};
use querent_engine::Engine;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ListResourcesResult, ReadResourceResult, Reference,
    Resource, ResourceContents, ResourceTemplate,
};

use super::prompts::ASK;
use super::uri::SchemaUri;
use crate::error::{ApiError, ErrorCode};

const DATABASE_TEMPLATE: &str = "querent://schema/{database}";
const TABLE_TEMPLATE: &str = "querent://schema/{database}/{table}";
const MARKDOWN: &str = "text/markdown";
/// The entries of a page of the listing.
const PAGE: usize = 100;
/// The most tables that the text of a database names.
const TABLES_OF_DATABASE: usize = 200;
const MAX_COLUMNS: usize = 1_000;
const MAX_RELATIONSHIPS: usize = 60;
const MAX_COMMENT_CHARS: usize = 300;
const MAX_TYPE_CHARS: usize = 200;

/// Returns the templates of the two kinds of addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(DATABASE_TEMPLATE, "database")
            .with_title("Tables of a database")
            .with_description("The tables of a database, with what was said about them.")
            .with_mime_type(MARKDOWN),
        ResourceTemplate::new(TABLE_TEMPLATE, "table")
            .with_title("Schema of a table")
            .with_description("A table's columns, types and comments, and how it joins other tables.")
            .with_mime_type(MARKDOWN),
    ]
}

/// The position of a listing.
enum ResourceCursor {
    Databases(Option<PageToken>),
    Tables(Option<PageToken>),
}

impl ResourceCursor {
    fn parse(cursor: Option<&str>) -> Result<Self, ApiError> {
        let after = |token: &str| Some(PageToken(token.to_owned())).filter(|token| !token.0.is_empty());
        match cursor.map(|cursor| cursor.split_once(':')) {
            None => Ok(Self::Databases(None)),
            Some(Some(("databases", token))) => Ok(Self::Databases(after(token))),
            Some(Some(("tables", token))) => Ok(Self::Tables(after(token))),
            Some(_) => Err(ApiError::new(ErrorCode::BadParameter, "the cursor is not one that this server made")
                .with_hint("start without a cursor")),
        }
    }

    fn cursor(self) -> String {
        let text = |token: Option<PageToken>| token.map(|token| token.0).unwrap_or_default();
        match self {
            Self::Databases(after) => format!("databases:{}", text(after)),
            Self::Tables(after) => format!("tables:{}", text(after)),
        }
    }
}

/// Lists a page of the databases, then of the tables.
pub(super) async fn list(
    catalog: &Catalog,
    who: &Principal,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ApiError> {
    let (resources, next) = match ResourceCursor::parse(cursor)? {
        ResourceCursor::Databases(after) => {
            let page = catalog.databases().list(who, None, PageRequest { limit: PAGE, after }).await?;
            let mut resources: Vec<Resource> =
                page.items.iter().map(|database| database_resource(&database.name)).collect();
            let room = PAGE.saturating_sub(resources.len());
            match page.next {
                Some(next) => (resources, Some(ResourceCursor::Databases(Some(next)))),
                None if room == 0 => (resources, Some(ResourceCursor::Tables(None))),
                None => {
                    // A client that reads one page sees tables too.
                    let page = PageRequest { limit: room, after: None };
                    let page = catalog.tables().list(who, &TableFilter::default(), page).await?;
                    resources.extend(page.items.iter().map(table_resource));
                    (resources, page.next.map(|next| ResourceCursor::Tables(Some(next))))
                }
            }
        }
        ResourceCursor::Tables(after) => {
            let filter = TableFilter::default();
            let page = catalog.tables().list(who, &filter, PageRequest { limit: PAGE, after }).await?;
            let next = page.next.map(|next| ResourceCursor::Tables(Some(next)));
            (page.items.iter().map(table_resource).collect(), next)
        }
    };
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = next.map(ResourceCursor::cursor);
    Ok(result)
}

fn database_resource(database: &str) -> Resource {
    let uri = SchemaUri::Database { database: database.to_owned(), after: None };
    Resource::new(uri.to_string(), database)
        .with_title(format!("Tables of {database}"))
        .with_description(format!("The tables of the database {database}."))
        .with_mime_type(MARKDOWN)
}

fn table_resource(table: &TableSummary) -> Resource {
    let resource = Resource::new(uri_of(&table.name).to_string(), table.name.to_string())
        .with_title(format!("Schema of {}", table.name))
        .with_mime_type(MARKDOWN);
    match &table.comment {
        Some(comment) => resource.with_description(one_line(comment, MAX_COMMENT_CHARS)),
        None => resource,
    }
}

fn uri_of(name: &TableName) -> SchemaUri {
    SchemaUri::Table { database: name.database.clone(), table: name.table.clone() }
}

/// Reads the resource of an address. Errors: `not_found`, `database_not_found`, `table_not_found`.
pub(super) async fn read(engine: &Engine, who: &Principal, uri: &str) -> Result<ReadResourceResult, ApiError> {
    let text = match SchemaUri::parse(uri)? {
        SchemaUri::Database { database, after } => database_text(engine.catalog(), who, &database, after).await?,
        SchemaUri::Table { database, table } => table_text(engine, who, TableName { database, table }).await?,
    };
    let contents = ResourceContents::text(text, uri).with_mime_type(MARKDOWN);
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn database_text(
    catalog: &Catalog,
    who: &Principal,
    name: &str,
    after: Option<String>,
) -> Result<String, ApiError> {
    let Some(database) = catalog.databases().get(who, name).await? else {
        return Err(catalog.databases().not_found(who, name).await.into());
    };
    let filter = TableFilter { database: Some(database.name.clone()), ..TableFilter::default() };
    let page = PageRequest { limit: TABLES_OF_DATABASE, after: after.map(PageToken) };
    let page = catalog.tables().list(who, &filter, page).await?;
    let mut lines = vec![format!("# Database {}", one_line(&database.name, MAX_TYPE_CHARS)), String::new()];
    if page.items.is_empty() {
        lines.push("There are no tables here.".to_owned());
    } else {
        lines.push("| table | kind | rows | comment |\n|---|---|---|---|".to_owned());
    }
    for table in &page.items {
        let rows = table.row_count.map(|rows| rows.to_string()).unwrap_or_default();
        let comment = table.comment.as_deref().map(|comment| cell(comment, MAX_COMMENT_CHARS)).unwrap_or_default();
        let kind = kind_word(table.kind);
        lines.push(format!("| {} | {kind} | {rows} | {comment} |", cell(&table.name.table, MAX_TYPE_CHARS)));
    }
    if let Some(PageToken(after)) = page.next {
        let next = SchemaUri::Database { database: database.name, after: Some(after) };
        lines.push(format!("\nThere are more tables: read {next}"));
    }
    Ok(lines.join("\n"))
}

async fn table_text(engine: &Engine, who: &Principal, name: TableName) -> Result<String, ApiError> {
    let catalog = engine.catalog();
    let resolved = catalog.tables().resolve(who, std::slice::from_ref(&name)).await?.pop().flatten();
    let Some(table) = resolved.map(|resolved| resolved.info) else {
        return Err(catalog.tables().not_found(who, &name).await.into());
    };
    engine.queue_profiles([table.name.clone()]);
    let around = catalog.relationships().with_neighbors(who, &[table.id], MAX_RELATIONSHIPS).await?;
    let own: Vec<Relationship> =
        around.into_iter().filter(|one| one.from == table.name || one.to == table.name).collect();
    Ok(table_markdown(&table, &own))
}

fn table_markdown(table: &TableInfo, relationships: &[Relationship]) -> String {
    let mut lines = vec![format!("# Table {}", one_line(&table.name.to_string(), MAX_TYPE_CHARS)), String::new()];
    if let Some(comment) = &table.comment {
        lines.push(one_line(comment, MAX_COMMENT_CHARS));
        lines.push(String::new());
    }
    let rows = table.row_count.map(|rows| format!(", {rows} rows")).unwrap_or_default();
    lines.push(format!("Kind: {}{rows}.", kind_word(table.kind)));
    lines.push("\n| column | type | null | comment |\n|---|---|---|---|".to_owned());
    for column in table.columns.iter().take(MAX_COLUMNS) {
        let data_type = cell(&column.data_type.to_string(), MAX_TYPE_CHARS);
        let null = if column.nullable { "yes" } else { "no" };
        let comment = column.comment.as_deref().map(|comment| cell(comment, MAX_COMMENT_CHARS)).unwrap_or_default();
        lines.push(format!("| {} | {data_type} | {null} | {comment} |", cell(&column.name, MAX_TYPE_CHARS)));
    }
    if table.columns.len() > MAX_COLUMNS {
        lines.push(format!("\nThere are {} more columns.", table.columns.len() - MAX_COLUMNS));
    }
    if !relationships.is_empty() {
        lines.push("\n## Joins\n".to_owned());
    }
    for one in relationships {
        let condition = one_line(&one.condition(), MAX_COMMENT_CHARS);
        lines.push(format!("- {condition} ({}, {:.0} %)", one.origin.as_str(), one.confidence * 100.0));
    }
    lines.join("\n")
}

/// Returns names that complete a variable of an address.
pub(super) async fn complete(
    catalog: &Catalog,
    who: &Principal,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ApiError> {
    let template = match &request.r#ref {
        Reference::Resource(reference) => reference.uri.as_str(),
        // Any question will do: there is nothing to propose.
        Reference::Prompt(prompt) if prompt.name == ASK && request.argument.name == "question" => {
            return Ok(CompleteResult::new(CompletionInfo::default()));
        }
        _ => "",
    };
    if ![DATABASE_TEMPLATE, TABLE_TEMPLATE].contains(&template) {
        return Err(ApiError::new(
            ErrorCode::BadParameter,
            "only the arguments of the resource templates, and of the prompt `ask`, can be completed",
        )
        .with_hint(format!("the templates are {DATABASE_TEMPLATE} and {TABLE_TEMPLATE}")));
    }
    let like = format!("{}%", escaped(&request.argument.value));
    let page = PageRequest::first(CompletionInfo::MAX_VALUES);
    let (mut names, next): (Vec<String>, _) = match request.argument.name.as_str() {
        "database" => {
            let page = catalog.databases().list(who, Some(&like), page).await?;
            (page.items.into_iter().map(|database| database.name).collect(), page.next)
        }
        "table" if template == TABLE_TEMPLATE => {
            let database = request.context.as_ref().and_then(|context| context.get_argument("database")).cloned();
            let filter = TableFilter { database, name_like: Some(like), ..TableFilter::default() };
            let page = catalog.tables().list(who, &filter, page).await?;
            (page.items.into_iter().map(|table| table.name.table).collect(), page.next)
        }
        _ => return Err(ApiError::new(ErrorCode::BadParameter, "the template has no such argument")),
    };
    // Tables of several databases may have one name.
    let mut listed = HashSet::with_capacity(names.len());
    names.retain(|name| listed.insert(name.clone()));
    let mut completion = CompletionInfo::default();
    completion.values = names;
    completion.has_more = Some(next.is_some());
    Ok(CompleteResult::new(completion))
}

/// Escapes a string for `LIKE`, so that it only matches itself.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

fn kind_word(kind: TableKind) -> &'static str {
    match kind {
        TableKind::Managed => "table",
        TableKind::External => "external table",
        TableKind::View => "view",
    }
}

/// Returns text for a cell of a Markdown table.
fn cell(text: &str, max_chars: usize) -> String {
    one_line(text, max_chars).replace('|', "\\|")
}

fn one_line(text: &str, max_chars: usize) -> String {
    let mut line: String = text.chars().take(max_chars).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(max_chars).is_some() {
        line.push('…');
    }
    line
}

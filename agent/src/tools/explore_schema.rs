//! `explore_schema`: a table and the tables it joins, or a database, with columns, some values, and how they join.

use std::collections::BTreeSet;

use async_trait::async_trait;
use querent_catalog::{PageRequest, Relationship, TableFilter, TableInfo, TableName};
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::table_view::{TableView, relationship_json, tables_text};
use super::{Tool, ToolContext, ToolError, ToolOutput, table_name};
use crate::models::ToolSpec;
use crate::tokens::{estimate_tokens, take_tokens};

const NAME: &str = "explore_schema";
const DEFAULT_DEPTH: usize = 1;
const MAX_DEPTH: usize = 2;
const MAX_TABLES: usize = 40;
const MAX_RELATIONSHIPS: usize = 60;
/// Relationships take at most one such part of the text.
const EDGES_SHARE: usize = 4;

pub(super) struct ExploreSchema;

#[async_trait]
impl Tool for ExploreSchema {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> &'static [(&'static str, usize)] {
        &[("depth", MAX_DEPTH)]
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["table", "database"]
    }

    fn spec(&self, _default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Show a table and those it joins, or all tables of a database.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "A table, database.table, or a database."},
                    "depth": {"type": "integer", "description": format!("Joins to follow from a table; {DEFAULT_DEPTH} unless given, at most {MAX_DEPTH}.")},
                },
                "required": ["name"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let has = |name: &str| arguments.get(name).is_some_and(|value| !value.is_null());
        // A database by itself is what is asked for, and beside a table where that is.
        let (is_of_database, is_apart) = match (has("name") || has("table"), has("database")) {
            (false, true) => (true, false),
            (_, is_given) => (false, is_given),
        };
        let mut arguments = ToolArguments::new(arguments);
        let name = match is_of_database {
            true => arguments.required("database", &[]),
            false => arguments.required("name", &["table"]),
        };
        let database = if is_apart { arguments.optional("database") } else { None };
        let depth = arguments.count("depth", DEFAULT_DEPTH, 1..=MAX_DEPTH);
        arguments.finish(NAME)?;
        let session = &context.session;
        let catalog = session.engine().catalog();
        let table = table_name(session, database, &name)?;
        let resolved =
            catalog.tables().resolve(session.principal(), std::slice::from_ref(&table)).await?.pop().flatten();
        let explored = match resolved {
            Some(found) => Explored::from_table(context, found.info, depth).await?,
            None => match catalog.databases().get(session.principal(), &name).await? {
                Some(database) if !is_apart || database.name.eq_ignore_ascii_case(&table.database) => {
                    Explored::from_database(context, &database.name).await?
                }
                Some(_) | None => return Err(catalog.tables().not_found(session.principal(), &table).await.into()),
            },
        };
        explored.output(context, &name).await
    }
}

/// Tables, and how they join.
struct Explored {
    tables: Vec<TableInfo>,
    relationships: Vec<Relationship>,
    truncated: bool,
}

impl Explored {
    /// Reads a table and the tables that `depth` joins reach from it, nearest first.
    async fn from_table(context: &ToolContext, table: TableInfo, depth: usize) -> Result<Self, ToolError> {
        let session = &context.session;
        let catalog = session.engine().catalog();
        let mut known: BTreeSet<TableName> = BTreeSet::from([table.name.clone()]);
        let mut frontier = vec![table.id];
        let mut tables = vec![table];
        let mut relationships: Vec<Relationship> = Vec::new();
        let mut truncated = false;
        for _ in 0..depth {
            let around =
                catalog.relationships().with_neighbors(session.principal(), &frontier, MAX_RELATIONSHIPS + 1).await?;
            truncated |= around.len() > MAX_RELATIONSHIPS;
            let mut names = Vec::new();
            for one in around.into_iter().take(MAX_RELATIONSHIPS) {
                for side in [&one.from, &one.to] {
                    if known.insert(side.clone()) {
                        names.push(side.clone());
                    }
                }
                if !relationships.iter().any(|other| (&other.from, &other.to) == (&one.from, &one.to)) {
                    relationships.push(one);
                }
            }
            let room = MAX_TABLES - tables.len();
            truncated |= names.len() > room;
            names.truncate(room);
            let next = catalog.tables().resolve(session.principal(), &names).await?;
            frontier = next.iter().flatten().map(|found| found.info.id).collect();
            tables.extend(next.into_iter().flatten().map(|found| found.info));
            if frontier.is_empty() {
                break;
            }
        }
        Ok(Self { tables, relationships, truncated })
    }

    /// Reads the first tables of a database.
    async fn from_database(context: &ToolContext, database: &str) -> Result<Self, ToolError> {
        let session = &context.session;
        let catalog = session.engine().catalog();
        let filter = TableFilter { database: Some(database.to_owned()), ..TableFilter::default() };
        let page =
            catalog.tables().list_with_columns(session.principal(), &filter, PageRequest::first(MAX_TABLES)).await?;
        let ids: Vec<i64> = page.items.iter().map(|info| info.id).collect();
        let mut relationships = catalog.relationships().among(session.principal(), &ids).await?;
        let truncated = page.next.is_some() || relationships.len() > MAX_RELATIONSHIPS;
        relationships.truncate(MAX_RELATIONSHIPS);
        Ok(Self { tables: page.items, relationships, truncated })
    }

    async fn output(self, context: &ToolContext, name: &str) -> Result<ToolOutput, ToolError> {
        let Self { tables, relationships, truncated } = self;
        let shown = TableView::with_samples(context, tables.into_iter().map(|info| (info, None)).collect()).await?;
        let edges: Vec<Value> = relationships.iter().map(relationship_json).collect();
        let edge_lines: Vec<String> = relationships
            .iter()
            .map(|one| format!("{} ({}, {:.0} %)", one.condition(), one.origin.as_str(), one.confidence * 100.0))
            .collect();
        let edge_text = match edge_lines.is_empty() {
            true => String::new(),
            false => {
                let text = format!("\nRelationships:\n{}", edge_lines.join("\n"));
                take_tokens(&text, context.text_tokens / EDGES_SHARE).to_owned()
            }
        };
        let left = context.text_tokens.saturating_sub(estimate_tokens(&edge_text) + 16);
        // The relationships below contain the joins.
        let mut text = tables_text(context, &shown, &[], name, left);
        if truncated {
            text.push_str(&format!("\n(truncated: the first {} tables; search_schema finds others)", shown.len()));
        }
        text.push_str(&edge_text);
        let tables: Vec<Value> = shown.iter().map(|shown| Value::Object(shown.to_json())).collect();
        let json = json!({
            "name": name, "table_count": tables.len(), "tables": tables, "relationships": edges,
            "truncated": truncated,
        });
        Ok(ToolOutput::within(json, &text, context.text_tokens))
    }
}

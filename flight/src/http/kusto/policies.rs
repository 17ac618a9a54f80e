//! `.show ... policy`: policies of Kusto's kinds, of which none is set, so each is `null`, as Kusto shows one that is not
//! set. Row-level security is not among them: there are row policies here, which have a statement of their own.

use querent_catalog::{Catalog, Principal};
use serde_json::{Value, json};

use super::commands::{DatabaseListing, SchemaScope};
use super::schema;
use super::table::{CommandTable, TEXT};
use super::words::Word;
use crate::error::ApiError;

/// The word for a kind of policy in commands, and the name that the policy has in their results.
const POLICIES: &[(&str, &str)] = &[
    ("auto_delete", "AutoDeletePolicy"),
    ("caching", "CachingPolicy"),
    ("callout", "CalloutPolicy"),
    ("capacity", "CapacityPolicy"),
    ("encoding", "EncodingPolicy"),
    ("extent_tags_retention", "ExtentTagsRetentionPolicy"),
    ("ingestionbatching", "IngestionBatchingPolicy"),
    ("ingestiontime", "IngestionTimePolicy"),
    ("managed_identity", "ManagedIdentityPolicy"),
    ("merge", "ExtentsMergePolicy"),
    ("mirroring", "MirroringPolicy"),
    ("partitioning", "PartitioningPolicy"),
    ("query_acceleration", "QueryAccelerationPolicy"),
    ("query_weak_consistency", "QueryWeakConsistencyPolicy"),
    ("request_classification", "RequestClassificationPolicy"),
    ("restricted_view_access", "RestrictedViewAccessPolicy"),
    ("retention", "RetentionPolicy"),
    ("roworder", "RowOrderPolicy"),
    ("sandbox", "SandboxPolicy"),
    ("sharding", "ShardingPolicy"),
    ("streamingingestion", "StreamingIngestionPolicy"),
    ("update", "UpdatePolicy"),
];

/// A command that shows a policy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShowPolicyCommand {
    /// The name of the policy in the result.
    policy: &'static str,
    of: PolicyEntities,
}

/// What a policy is of.
#[derive(Debug, PartialEq, Eq)]
enum PolicyEntities {
    Cluster,
    Databases(SchemaScope),
    /// A table of this database, or of the current one.
    Table {
        database: Option<String>,
        table: String,
    },
    /// All tables of the current database.
    Tables,
}

impl ShowPolicyCommand {
    /// Returns the command of these words, the first of which are in lower case; `None` when it is none.
    pub(super) fn parse(lower: &[&str], words: &[Word]) -> Option<Self> {
        let (of, kind) = match lower {
            [".show", "cluster", "policy", kind] => (PolicyEntities::Cluster, kind),
            [".show", "database", "policy", kind] => (PolicyEntities::Databases(SchemaScope::Current), kind),
            [".show", "database", "*", "policy", kind] => (PolicyEntities::Databases(SchemaScope::All), kind),
            [".show", "database", _, "policy", kind] => {
                (PolicyEntities::Databases(SchemaScope::Named(vec![words.get(2)?.text.clone()])), kind)
            }
            [".show", "table", "*", "policy", kind] => (PolicyEntities::Tables, kind),
            [".show", "table", _, "policy", kind] => (named_table(words.get(2)?), kind),
            _ => return None,
        };
        let &(_, policy) = POLICIES.iter().find(|(word, _)| word == kind)?;
        Some(Self { policy, of })
    }

    /// Errors: `database_not_found`, `table_not_found`, `kql_too_large`.
    pub(super) async fn run(&self, catalog: &Catalog, who: &Principal, in_use: &str) -> Result<CommandTable, ApiError> {
        let table_entity = |database: &str, table: &str| format!("[{database}].[{table}]");
        let (entities, kind) = match &self.of {
            PolicyEntities::Cluster => (vec![String::new()], "Cluster"),
            PolicyEntities::Databases(scope) => {
                let databases = schema::databases(catalog, who, in_use, scope, DatabaseListing::Plain).await?;
                let names = first_texts(&databases).map(|database| format!("[{database}]"));
                (names.collect(), "Database")
            }
            PolicyEntities::Table { database, table } => {
                let database = database.as_deref().unwrap_or(in_use);
                schema::table(catalog, who, database, table, true).await?;
                (vec![table_entity(database, table)], "Table")
            }
            PolicyEntities::Tables => {
                let tables = schema::tables(catalog, who, in_use, &[], false).await?;
                (first_texts(&tables).map(|table| table_entity(in_use, table)).collect(), "Table")
            }
        };
        let columns = ["PolicyName", "EntityName", "Policy", "ChildEntities", "EntityType"];
        let row = |entity: String| vec![json!(self.policy), json!(entity), json!("null"), json!(""), json!(kind)];
        let rows = entities.into_iter().map(row).collect();
        Ok(CommandTable { columns: columns.map(|name| (name, TEXT)).into(), rows })
    }
}

/// Reads a table's name, before which its database may stand.
fn named_table(word: &Word) -> PolicyEntities {
    match word.text.split_once('.').filter(|_| !word.is_quoted) {
        Some((database, table)) => {
            PolicyEntities::Table { database: Some(database.to_owned()), table: table.to_owned() }
        }
        None => PolicyEntities::Table { database: None, table: word.text.clone() },
    }
}

/// Returns the texts of a listing's first column.
fn first_texts(listing: &CommandTable) -> impl Iterator<Item = &str> {
    listing.rows.iter().filter_map(|row| row.first().and_then(Value::as_str))
}

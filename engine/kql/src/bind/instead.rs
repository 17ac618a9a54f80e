//! What a query can do instead of what Kusto has and this crate has not.

use super::{BindError, BindErrorCode, Result};
use crate::span::Span;

const OTHER_CLUSTERS: &str = "a query reads the databases of this server: `database('d').T`";
const NO_EXTENTS: &str = "tables have no extents here; keep what tells rows apart in a column";
const NO_CURSORS: &str = "tables have no cursors here; keep the time of a row in a column, and compare that";
const NO_REQUESTS: &str = "a query reaches no other service; write what that answers into a table first";
const OTHER_DATABASES: &str =
    "a query reaches no other database server; make its tables external tables, or write them into tables, first";
const NO_CODE: &str =
    "a query runs no code of other languages; do it with KQL's operators, or with the rows that it returns";
const NO_MODELS: &str = "KQL calls no models; SQL has `embed(text)` where a provider of embeddings is configured";
const NO_WATCHLISTS: &str = "watchlists are Microsoft Sentinel's; write the list into a table, and name that table";
const NO_ENRICHMENT: &str = "this is a function of Microsoft Defender's own data; join a table that has what it tells";
const NO_PARSERS: &str =
    "it is a function of Microsoft Sentinel's workspaces; define it before the query: `let f = (...) { ... };`";
const FILES_BY_NAME: &str = "DESCRIBE SELECT * FROM 'file' in SQL says what columns a file has";

/// Returns what does nearly the same.
fn instead_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "alias database" => "name the database where it is read: `database('d').T`",
        "cluster" | "current_cluster_endpoint" | "execute_query" => OTHER_CLUSTERS,
        name if is_other_place(name) => OTHER_CLUSTERS,
        "current_node_id" => "a server is one node",
        "cursor_after" | "cursor_before_or_at" => NO_CURSORS,
        "row_id" | "rowstore_ordinal_range" => NO_EXTENTS,
        "stored_query_result" => "write the result into a table, with CREATE TABLE ... AS in SQL, and name that",
        "entity_group" => "write the group out: `macro-expand entity_group [database('a'), database('b')] as X (...)`",
        "passthrough" => "leave it out",
        "ai_chat_completion" | "ai_chat_completion_prompt" | "ai_embed_text" | "ai_embeddings" => NO_MODELS,
        "azure_digital_twins_query_request" | "dax_request" | "http_request" | "http_request_post" => NO_REQUESTS,
        "cosmosdb_sql_request" | "mysql_request" | "postgresql_request" | "sql_request" => OTHER_DATABASES,
        "csharp" | "python" | "r" => NO_CODE,
        "diffpatterns_text" => "use `diffpatterns` over columns of the text's parts, or `reduce by`",
        "estimate_rows_count" => "use `count`, which reads no rows where the table's statistics tell",
        "execute_show_command" => "send the command on its own, as in `.show tables`",
        "external_datatable" => "use `externaldata`, or `external_table('name')`",
        "identity_v3" => "use `identity`",
        "infer_storage_schema" | "infer_storage_schema_with_suggestions" => FILES_BY_NAME,
        _ => return None,
    })
}

/// Whether Kusto's function or plugin of this name is refused, because there is something else to do here.
pub(crate) fn is_refused(name: &str) -> bool {
    instead_of(name).is_some()
}

/// Whether a function of Azure Monitor names data that is elsewhere.
pub(super) fn is_other_place(name: &str) -> bool {
    matches!(name, "adx" | "app" | "arg" | "resource" | "workspace")
}

/// Returns what does the same as a function that Microsoft Sentinel keeps in its workspaces, watchlists and parsers of
/// its information model, or that Microsoft Defender has.
fn function_of_sentinel(name: &str) -> Option<&'static str> {
    if name.starts_with("_GetWatchlist") {
        return Some(NO_WATCHLISTS);
    }
    if ["FileProfile", "DeviceFromIP", "AssignedIPAddresses", "SeenBy"].contains(&name) {
        return Some(NO_ENRICHMENT);
    }
    let is_parser = |prefix: &&str| {
        let rest = name.strip_prefix(*prefix);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    ["_Im_", "_ASim_", "ASim", "vim", "im"].iter().any(is_parser).then_some(NO_PARSERS)
}

/// Returns the refusal of a function that is here, but where something else than a value stands.
pub(super) fn function_in_another_place(name: &str, span: Span) -> Option<BindError> {
    let (code, message, hint) = match name {
        "table" | "external_table" | "materialized_view" => (
            BindErrorCode::TypeMismatch,
            "is a table, and a value stands here",
            "take its first value with `toscalar(...)`, or begin a query with it: `table(\"T\") | count`",
        ),
        "graph" => (
            BindErrorCode::TypeMismatch,
            "is a graph, and a value stands here",
            "begin a query with it: `graph(\"Work\") | graph-match (a)-[e]->(b) project labels(a)`",
        ),
        "database" => (
            BindErrorCode::TypeMismatch,
            "is a database, and a value stands here",
            "name a table of it: `toscalar(database(\"d\").T | count)`",
        ),
        "node_id" | "node_degree_in" | "node_degree_out" | "labels" => (
            BindErrorCode::Invalid,
            "takes a node of a graph, and stands in operators over graphs",
            "it is written as in `G | graph-match (a)-[e]->(b) project node_degree_out(a)`",
        ),
        "inner_nodes" | "all" | "any" | "map" => (
            BindErrorCode::Invalid,
            "takes a path of a graph, and stands in operators over graphs",
            "it is written as in `G | graph-match (a)-[e*1..3]->(b) where all(e, w > 1) project map(e, w)`",
        ),
        _ => return None,
    };
    Some(BindError::new(code, span, format!("`{name}` {message}")).with_hint(hint))
}

/// Refuses the name of a table or a function that is not there.
pub(super) fn missing_name<T>(code: BindErrorCode, span: Span, name: &str, message: String) -> Result<T> {
    let error = BindError::new(code, span, message);
    match function_of_sentinel(name) {
        Some(instead) => Err(error.with_hint(instead).into()),
        None => Err(error.into()),
    }
}

/// Refuses a function, an aggregate or a plugin that Kusto has.
pub(crate) fn unsupported_name<T>(span: Span, kind: &str, name: &str) -> Result<T> {
    let message = format!("the {kind} `{name}` is known to Kusto, but not supported here");
    let error = BindError::new(BindErrorCode::NotSupported, span, message);
    match instead_of(name) {
        Some(instead) => Err(error.with_hint(instead).into()),
        None => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::BindStop;

    #[test]
    fn what_is_refused_names_something_else() {
        let Err(BindStop::Error(error)) = unsupported_name::<()>(Span::default(), "plugin", "python") else {
            panic!("it is refused with an error of the query's");
        };
        assert_eq!(error.hint.as_deref(), Some(NO_CODE));
        assert_eq!(instead_of("where"), None);
        assert_eq!(function_of_sentinel("_GetWatchlistAlias"), Some(NO_WATCHLISTS));
        assert_eq!(function_of_sentinel("_Im_Dns"), Some(NO_PARSERS));
        assert_eq!(function_of_sentinel("imAuthentication"), Some(NO_PARSERS));
        assert_eq!(function_of_sentinel("FileProfile"), Some(NO_ENRICHMENT));
        assert_eq!(["images", "immutable", "vimeo"].map(function_of_sentinel), [None; 3]);
    }
}

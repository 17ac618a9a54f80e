//! The `.show` commands that clients send to explore a server, and what else they send that is no query. Their results are
//! tables: operators may follow after `|`.
//! Their columns are those that Kusto documents, and what there is none of here is a table without rows.

use querent_catalog::Principal;
use querent_engine::kql::{KqlType, behind_comments, plugin_names};
use serde_json::{Value, json};

use super::activity;
use super::cancel::CancelCommand;
use super::policies::ShowPolicyCommand;
use super::schema::{self, DatabaseColumns};
use super::table::{CommandTable, TEXT};
use super::words::{CommandOption, Word, split, split_options};
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

/// A management command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShowCommand {
    what: ShowTarget,
    /// What follows the command, from its first `|`.
    pub(super) operators: Option<String>,
}

/// What a command shows.
#[derive(Debug, PartialEq, Eq)]
enum ShowTarget {
    Version,
    Databases {
        databases: SchemaScope,
        columns: DatabaseListing,
    },
    /// Tables, views and external tables of all databases.
    Entities,
    /// Tables of the current database: all, or these.
    Tables {
        names: Vec<String>,
        details: bool,
    },
    /// The details of one table, which must be there.
    TableDetails(String),
    Table {
        table: String,
        /// As JSON, or as the columns of a `datatable`.
        as_json: bool,
    },
    Schema {
        databases: SchemaScope,
        form: SchemaForm,
    },
    ExternalTables,
    /// The server's own machine.
    Cluster,
    RunningQueries(activity::WhoseQueries),
    /// Ends one of them.
    Cancel(CancelCommand),
    /// What Kusto keeps and Querent has none of.
    Absent(AbsentEntity),
    /// A stored function, of which there is none.
    Function(String),
    /// Kusto's plugins, and which of them are here.
    Plugins,
    /// Policies of Kusto's kinds, none of which is set.
    Policy(ShowPolicyCommand),
    /// Mappings of a table, of which there is none.
    TableMappings(String),
    /// What the engine answers: the plan of a query, and graph models.
    Engine,
}

/// Which databases a command is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SchemaScope {
    Current,
    Named(Vec<String>),
    All,
    /// All, as `.show schema` has them.
    Cluster,
}

/// How a command writes the tables and columns of databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaForm {
    Rows,
    /// The tables are left out where the command's options do not name them.
    Json {
        has_tables: bool,
    },
    /// A row for each table.
    CslSchema,
    /// Commands that make the tables.
    Script,
}

/// Which columns a list of databases has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseListing {
    Plain,
    Identity,
}

/// What Kusto keeps, and Querent does not: a list of it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AbsentEntity {
    Functions,
    MaterializedViews,
    EntityGroups,
    DatabaseMappings,
    WorkloadGroups,
    ContinuousExports,
}

impl ShowCommand {
    /// Errors: `kql_not_supported`.
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        let text = behind_comments(text);
        let (words, operators) = split(text);
        if let Some(cancel) = CancelCommand::parse(&words) {
            return Ok(Self { what: ShowTarget::Cancel(cancel), operators });
        }
        let (words, options) = split_options(words);
        let lower: Vec<String> = words.iter().map(|word| word.lower()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let name = |index: usize| words.get(index).map(|word| word.text.clone()).unwrap_or_default();
        let what = match lower.as_slice() {
            [".show", "version"] => ShowTarget::Version,
            [".show", "queryplan", "<"] if operators.is_some() => ShowTarget::Engine,
            [".make", "async", "graph_snapshot", ..] => ShowTarget::Engine,
            [".show" | ".create-or-alter" | ".drop" | ".make", what, ..] if what.starts_with("graph_") => {
                ShowTarget::Engine
            }
            [".show", "databases", "entities"] => ShowTarget::Entities,
            [".show", "tables"] => ShowTarget::Tables { names: Vec::new(), details: false },
            [".show", "tables", "details"] => ShowTarget::Tables { names: Vec::new(), details: true },
            [".show", "tables", "(", names @ .., ")"] => {
                ShowTarget::Tables { names: listed(&words, 3, names.len()), details: false }
            }
            [".show", "tables", "(", names @ .., ")", "details"] => {
                ShowTarget::Tables { names: listed(&words, 3, names.len()), details: true }
            }
            [".show", "table", _, "details"] => ShowTarget::TableDetails(name(2)),
            [".show", "table", _, "cslschema"] => ShowTarget::Table { table: name(2), as_json: false },
            [".show", "external", "table", _, "cslschema"] => ShowTarget::Table { table: name(3), as_json: false },
            [".show", "table", _, "schema", "as", "json"] => ShowTarget::Table { table: name(2), as_json: true },
            [".show", "external", "table", _, "schema", "as", "json"] => {
                ShowTarget::Table { table: name(3), as_json: true }
            }
            [".show", "table", _, "ingestion", .., "mappings"] => ShowTarget::TableMappings(name(2)),
            [".show", "database", _, "ingestion", .., "mappings"] => ShowTarget::Absent(AbsentEntity::DatabaseMappings),
            [".show", "functions"] => ShowTarget::Absent(AbsentEntity::Functions),
            [".show", "function", _] => ShowTarget::Function(name(2)),
            [".show", "materialized-views"] => ShowTarget::Absent(AbsentEntity::MaterializedViews),
            [".show", "entity_groups"] => ShowTarget::Absent(AbsentEntity::EntityGroups),
            [".show", "workload_groups"] => ShowTarget::Absent(AbsentEntity::WorkloadGroups),
            [".show", "continuous-exports"] => ShowTarget::Absent(AbsentEntity::ContinuousExports),
            [".show", "external", "tables"] => ShowTarget::ExternalTables,
            [".show", "cluster"] => ShowTarget::Cluster,
            [".show", "plugins"] => ShowTarget::Plugins,
            [".show", "running", "queries"] => ShowTarget::RunningQueries(activity::WhoseQueries::Own),
            [".show", "running", "queries", "by", "*"] => ShowTarget::RunningQueries(activity::WhoseQueries::All),
            [".show", "running", "queries", "by", "user", _] => {
                ShowTarget::RunningQueries(activity::WhoseQueries::Of(name(5)))
            }
            _ => {
                let of_databases = || databases_command(&lower, &words);
                let of_policies = || ShowPolicyCommand::parse(&lower, &words).map(ShowTarget::Policy);
                match schema_command(&lower, &words, &options).or_else(of_databases).or_else(of_policies) {
                    Some(what) => what,
                    None => return Err(not_supported(text, &lower)),
                }
            }
        };
        if let Some(option) = options.iter().find(|option| !what.takes_option(&option.name)) {
            let message = format!("the command `{}` takes no option `{}`", text.trim(), option.name);
            return Err(ApiError::new(ErrorCode::KqlNotSupported, message));
        }
        Ok(Self { what, operators })
    }

    /// Whether the engine answers the text as it is.
    pub(super) fn is_of_engine(&self) -> bool {
        self.what == ShowTarget::Engine
    }

    /// Errors: `database_not_found`, `table_not_found`, `object_not_found`, `kql_too_large`.
    pub(super) async fn run(
        &self,
        state: &AppState,
        who: &Principal,
        database: Option<&str>,
    ) -> Result<CommandTable, ApiError> {
        let catalog = state.engine.catalog();
        let in_use = state.session(who.clone(), state.settings.limits());
        let in_use = in_use.in_database(database).await?;
        let in_use = in_use.database();
        match &self.what {
            ShowTarget::Version => Ok(version()),
            ShowTarget::Databases { databases, columns } => {
                schema::databases(catalog, who, in_use, databases, *columns).await
            }
            ShowTarget::Entities => {
                Ok(DatabaseColumns::read(catalog, who, &SchemaScope::All, in_use).await?.entities())
            }
            ShowTarget::Tables { names, details } => schema::tables(catalog, who, in_use, names, *details).await,
            ShowTarget::TableDetails(table) => {
                schema::table(catalog, who, in_use, table, true).await?;
                schema::tables(catalog, who, in_use, std::slice::from_ref(table), true).await
            }
            ShowTarget::Table { table, as_json } => schema::table(catalog, who, in_use, table, *as_json).await,
            ShowTarget::Schema { databases, form } => {
                let columns = DatabaseColumns::read(catalog, who, databases, in_use).await?;
                Ok(match form {
                    SchemaForm::Rows => columns.listing(),
                    SchemaForm::CslSchema => columns.csl_schema(),
                    SchemaForm::Script => columns.script(),
                    SchemaForm::Json { has_tables } => {
                        let is_cluster = *databases == SchemaScope::Cluster;
                        columns.document(if is_cluster { "ClusterSchema" } else { "DatabaseSchema" }, *has_tables)
                    }
                })
            }
            ShowTarget::ExternalTables => schema::external_tables(catalog, who, in_use).await,
            ShowTarget::Cluster => Ok(activity::cluster(state)),
            ShowTarget::RunningQueries(whose) => Ok(activity::running_queries(state, who, whose)),
            ShowTarget::Cancel(cancel) => Ok(cancel.run(state, who)),
            ShowTarget::Plugins => Ok(plugins()),
            ShowTarget::Policy(policy) => policy.run(catalog, who, in_use).await,
            ShowTarget::Absent(entity) => Ok(entity.listing()),
            ShowTarget::Function(function) => {
                let message = format!("there is no stored function `{function}`");
                let error = ApiError::new(ErrorCode::ObjectNotFound, message);
                Err(error.with_hint("functions are those that a query defines with let"))
            }
            ShowTarget::TableMappings(table) => {
                schema::table(catalog, who, in_use, table, true).await?;
                Ok(table_mappings())
            }
            ShowTarget::Engine => Err(ApiError::internal("what the engine answers is not a command's to show")),
        }
    }
}

impl ShowTarget {
    /// Whether the command may have an option of this name, in lower case.
    fn takes_option(&self, option: &str) -> bool {
        match self {
            Self::Engine => true,
            Self::Entities => {
                matches!(option, "showobfuscatedstrings" | "resolvefunctionschema" | "resolvefunctionsschema")
            }
            Self::Function(_) => matches!(option, "showobfuscatedstrings" | "builtin" | "includehiddenfunctions"),
            Self::Schema { form: SchemaForm::Json { .. }, .. } => {
                matches!(option, "tables" | "externaltables" | "materializedviews" | "functions")
            }
            Self::Schema { form: SchemaForm::Script, .. } => matches!(
                option,
                "includeencodingpolicies"
                    | "includesecuritysettings"
                    | "includeingestionmappings"
                    | "showobfuscatedstrings"
            ),
            _ => false,
        }
    }
}

impl AbsentEntity {
    fn listing(self) -> CommandTable {
        let columns = match self {
            Self::Functions => texts(&["Name", "Parameters", "Body", "Folder", "DocString"]),
            Self::EntityGroups => texts(&["Name", "Entities"]),
            Self::WorkloadGroups => texts(&["WorkloadGroupName", "WorkloadGroup"]),
            Self::DatabaseMappings => vec![
                ("Name", TEXT),
                ("Kind", TEXT),
                ("Mapping", TEXT),
                ("LastUpdatedOn", KqlType::DateTime),
                ("Database", TEXT),
            ],
            Self::MaterializedViews => vec![
                ("Name", TEXT),
                ("SourceTable", TEXT),
                ("Query", TEXT),
                ("MaterializedTo", KqlType::DateTime),
                ("LastRun", KqlType::DateTime),
                ("LastRunResult", TEXT),
                ("IsHealthy", KqlType::Bool),
                ("IsEnabled", KqlType::Bool),
                ("Folder", TEXT),
                ("DocString", TEXT),
                ("AutoUpdateSchema", KqlType::Bool),
                ("EffectiveDateTime", KqlType::DateTime),
                ("Lookback", KqlType::TimeSpan),
                ("LookbackColumn", TEXT),
            ],
            Self::ContinuousExports => vec![
                ("Name", TEXT),
                ("ExternalTableName", TEXT),
                ("Query", TEXT),
                ("ForcedLatency", KqlType::TimeSpan),
                ("IntervalBetweenRuns", KqlType::TimeSpan),
                ("CursorScopedTables", TEXT),
                ("ExportProperties", TEXT),
                ("LastRunTime", KqlType::DateTime),
                ("StartCursor", TEXT),
                ("IsDisabled", KqlType::Bool),
                ("LastRunResult", TEXT),
                ("ExportedTo", KqlType::DateTime),
                ("IsRunning", KqlType::Bool),
            ],
        };
        CommandTable { columns, rows: Vec::new() }
    }
}

fn texts(names: &[&'static str]) -> Vec<(&'static str, KqlType)> {
    names.iter().map(|name| (*name, TEXT)).collect()
}

fn table_mappings() -> CommandTable {
    let mut listing = AbsentEntity::DatabaseMappings.listing();
    listing.columns.push(("Table", TEXT));
    listing
}

/// Reads the commands that show tables and columns of databases.
fn schema_command(lower: &[&str], words: &[Word], options: &[CommandOption]) -> Option<ShowTarget> {
    let (databases, rest) = match lower {
        [".show", "schema", ..] => (SchemaScope::Cluster, &lower[1..]),
        [".show", "cluster", "schema", ..] => (SchemaScope::Cluster, &lower[2..]),
        [".show", "databases", "schema", ..] => (SchemaScope::All, &lower[2..]),
        [".show", "database", "schema" | "cslschema", ..] => (SchemaScope::Current, &lower[2..]),
        [".show", "database", _, "schema" | "cslschema", ..] => {
            (SchemaScope::Named(vec![words.get(2)?.text.clone()]), &lower[3..])
        }
        [".show", "databases", "(", rest @ ..] => {
            let end = rest.iter().position(|word| *word == ")")?;
            (SchemaScope::Named(listed(words, 3, end)), rest.get(end + 1..)?)
        }
        _ => return None,
    };
    // Which version a client has says nothing here, where databases have none: it gets the schema.
    let mut rest = rest.to_vec();
    if let Some(at) = rest.iter().position(|word| *word == "if_later_than") {
        rest.drain(at..(at + 2).min(rest.len()));
    }
    let form = match rest.as_slice() {
        ["schema"] | ["schema", "details"] => SchemaForm::Rows,
        ["schema", "as", "json"] => {
            let has_tables = options.is_empty() || options.iter().any(|option| option.name == "tables" && option.is_on);
            SchemaForm::Json { has_tables }
        }
        ["schema", "as", "csl", "script"] | ["cslschema", "script"] => SchemaForm::Script,
        ["cslschema"] => SchemaForm::CslSchema,
        _ => return None,
    };
    Some(ShowTarget::Schema { databases, form })
}

/// Reads the commands that list databases.
fn databases_command(lower: &[&str], words: &[Word]) -> Option<ShowTarget> {
    let (databases, rest) = match lower {
        [".show", "cluster", "databases", "(", rest @ ..] => {
            let end = rest.iter().position(|word| *word == ")")?;
            (SchemaScope::Named(listed(words, 4, end)), rest.get(end + 1..)?)
        }
        [".show", "databases", "(", rest @ ..] => {
            let end = rest.iter().position(|word| *word == ")")?;
            (SchemaScope::Named(listed(words, 3, end)), rest.get(end + 1..)?)
        }
        [".show", "cluster", "databases", rest @ ..] | [".show", "databases", rest @ ..] => (SchemaScope::All, rest),
        [".show", "database"] => (SchemaScope::Current, &lower[2..]),
        [".show", "database", "identity"] => (SchemaScope::Current, &lower[2..]),
        [".show", "database", _, "identity"] => (SchemaScope::Named(vec![words.get(2)?.text.clone()]), &lower[3..]),
        _ => return None,
    };
    let columns = match rest {
        [] => DatabaseListing::Plain,
        ["identity"] => DatabaseListing::Identity,
        _ => return None,
    };
    Some(ShowTarget::Databases { databases, columns })
}

/// Returns the names among so many words from this one on: of each the first word.
fn listed(words: &[Word], from: usize, count: usize) -> Vec<String> {
    let within = words.get(from..from + count).unwrap_or_default();
    let names = within.split(|word| !word.is_quoted && word.text == ",").filter_map(|name| name.first());
    names.map(|word| word.text.clone()).collect()
}

/// Returns the error of a command that is none of ours, with why where there is more to say.
fn not_supported(text: &str, lower: &[&str]) -> ApiError {
    let message = format!("the command `{}` is not supported here", text.trim());
    let hint = match lower {
        [".show", "queries" | "commands" | "commands-and-queries", ..] => {
            "what has ended is not kept for commands; .show running queries lists the queries that run, and the audit \
             log has those that ended where auditing is on"
        }
        [".show", "operations" | "operation", ..] => {
            "no command goes on after its answer, so there are no operations to show"
        }
        [".show", .., "principals" | "roles"] | [".show", "principal", ..] => {
            "rights are grants and tokens here, which SHOW GRANTS and the settings show"
        }
        [".show", .., "extents"] | [".show", _, _, "extents", ..] => {
            "rows are in Parquet files here, which have no extents"
        }
        [".show", .., "policy", "row_level_security"] => "SHOW ROW POLICIES shows the policies of rows here",
        [".show", .., "policy", _] => "Kusto has no such policy of tables, databases and clusters",
        [".cancel", ..] => {
            "a query is ended by .cancel query \"id\", with the ClientActivityId that .show running queries lists"
        }
        [".get", ..] => "rows are written with SQL, POST /v1/import or Flight SQL; there is no ingestion service",
        [".create" | ".create-or-alter" | ".create-merge" | ".alter" | ".drop", "function" | "functions", ..] => {
            "functions are not stored; define them before the query, as `let f = (x:long) { x + 1 };`"
        }
        [".create" | ".alter", "graph_model", ..] => {
            "a graph model is made by .create-or-alter graph_model Name ```{...}```"
        }
        [
            ".ingest" | ".set" | ".append" | ".set-or-append" | ".set-or-replace" | ".create" | ".create-merge"
            | ".alter",
            ..,
        ]
        | [".drop" | ".delete" | ".rename" | ".clear", ..] => "tables are made, filled and dropped with SQL",
        _ => {
            ".show databases [entities], tables [details], external tables, functions, version, cluster, running \
             queries, queryplan, graph_models, plugins, table T policy P, schema [as json], database D schema [as json | as csl script], table T \
             schema as json and table T cslschema, .create-or-alter graph_model and .drop graph_model are"
        }
    };
    ApiError::new(ErrorCode::KqlNotSupported, message).with_hint(hint)
}

fn plugins() -> CommandTable {
    let rows = plugin_names().into_iter().map(|(name, is_here)| vec![json!(name), json!(is_here)]);
    CommandTable { columns: vec![("PluginName", TEXT), ("IsEnabled", KqlType::Bool)], rows: rows.collect() }
}

fn version() -> CommandTable {
    let version = env!("CARGO_PKG_VERSION");
    CommandTable {
        columns: vec![
            ("BuildVersion", TEXT),
            ("BuildTime", KqlType::DateTime),
            ("ServiceType", TEXT),
            ("ProductVersion", TEXT),
        ],
        rows: vec![vec![json!(version), Value::Null, json!("Engine"), json!(format!("Querent {version}"))]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(ShowTarget, Option<String>)> {
        ShowCommand::parse(text).ok().map(|command| (command.what, command.operators))
    }

    #[test]
    fn commands_are_read_as_clients_write_them() {
        let json = |databases| ShowTarget::Schema { databases, form: SchemaForm::Json { has_tables: true } };
        let rows = |databases| ShowTarget::Schema { databases, form: SchemaForm::Rows };
        let named = |name: &str| SchemaScope::Named(vec![name.to_owned()]);
        let tables = |names: &[&str], details| ShowTarget::Tables {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            details,
        };
        let databases = |databases, columns| ShowTarget::Databases { databases, columns };
        for (text, show) in [
            (".show version", ShowTarget::Version),
            (".show databases;", databases(SchemaScope::All, DatabaseListing::Plain)),
            (".show cluster databases", databases(SchemaScope::All, DatabaseListing::Plain)),
            (
                ".show databases (a, ['b c'])",
                databases(SchemaScope::Named(vec!["a".into(), "b c".into()]), DatabaseListing::Plain),
            ),
            (".show database identity", databases(SchemaScope::Current, DatabaseListing::Identity)),
            (".show databases entities with (resolveFunctionSchema = true)", ShowTarget::Entities),
            (" .SHOW  Tables ", tables(&[], false)),
            ("// all\n\n // of them\n.show tables", tables(&[], false)),
            (".show tables (a, ['b c'])", tables(&["a", "b c"], false)),
            (".show tables (a) details", tables(&["a"], true)),
            (".show table a details", ShowTarget::TableDetails("a".to_owned())),
            (".show table ['schema'] schema as json", ShowTarget::Table { table: "schema".into(), as_json: true }),
            (".show table T cslschema", ShowTarget::Table { table: "T".into(), as_json: false }),
            (".show database schema as json", json(SchemaScope::Current)),
            (".show database [\"my db\"] schema as json", json(named("my db"))),
            (".show database D schema if_later_than \"v1.0\" as json", json(named("D"))),
            (".show databases (D if_later_than \"v1.0\") schema as json with (Tables=True)", json(named("D"))),
            (
                ".show database D schema as json with (Functions = true)",
                ShowTarget::Schema { databases: named("D"), form: SchemaForm::Json { has_tables: false } },
            ),
            (
                ".show database D schema as csl script",
                ShowTarget::Schema { databases: named("D"), form: SchemaForm::Script },
            ),
            (".show database D schema", rows(named("D"))),
            (".show schema as json", json(SchemaScope::Cluster)),
            (".show cluster schema as json", json(SchemaScope::Cluster)),
            (".show databases schema as json", json(SchemaScope::All)),
            (".show table T ingestion csv mappings", ShowTarget::TableMappings("T".into())),
            (".show running queries by *", ShowTarget::RunningQueries(activity::WhoseQueries::All)),
            (".show materialized-views", ShowTarget::Absent(AbsentEntity::MaterializedViews)),
            (".show plugins", ShowTarget::Plugins),
        ] {
            assert_eq!(parsed(text), Some((show, None)), "{text}");
        }
        assert_eq!(
            parsed(".show tables | project TableName"),
            Some((tables(&[], false), Some("| project TableName".into())))
        );
        assert_eq!(parsed(".show queryplan <| T | take 1").map(|(show, _)| show), Some(ShowTarget::Engine));
        for text in [".show graph_models", ".create-or-alter graph_model G ```{}```", ".drop graph_model G"] {
            assert_eq!(parsed(text).map(|(show, _)| show), Some(ShowTarget::Engine), "{text}");
        }
        assert_eq!(parsed(".drop table T"), None);
        assert_eq!(parsed(".show schema as xml"), None);
        assert_eq!(parsed(".show databases entities with (nothing = true)"), None);
    }

    #[test]
    fn what_is_not_here_is_refused_with_why() {
        for (text, why) in [
            (".show queries", ".show running queries"),
            (".show operations | take 1", "no operations"),
            (".cancel operation 'a'", ".cancel query"),
            (".show database D principals", "grants"),
            (".get ingestion resources", "no ingestion service"),
            (".show table T policy row_level_security", "ROW POLICIES"),
            (".show table T policy nothing", "no such policy"),
            (".create-or-alter function f() { print 1 }", "let f"),
            (".create graph_model G {}", ".create-or-alter graph_model"),
        ] {
            let error = ShowCommand::parse(text).unwrap_err();
            assert!(error.hint().is_some_and(|hint| hint.contains(why)), "{text}: {:?}", error.hint());
        }
    }
}

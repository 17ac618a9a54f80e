//! Kusto's commands for graph models and snapshots of them, which every door of KQL takes. The rows of a command are a
//! `datatable`, so that operators may follow `.show`.

mod parse;

use std::borrow::Cow;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use querent_catalog::policy::Rights;
use querent_catalog::{
    CatalogError, DatabaseScope, DraftedTable, GraphModel, GraphSnapshot, IfExists, NewDataFile, TableName,
};
use querent_kql::graph::{GraphModelDefinition, restored, storable};
use querent_kql::{KqlParameters, KqlType};

use super::Session;
use super::apply_write::drafted_table;
use super::kql_host::SessionHost;
use crate::error::{EngineError, KqlErrorCode, Result};
use crate::identifiers::same_name;
use crate::limits::{Interrupt, QueryUsage};
use crate::sql::json_columns::TextColumns;
use crate::sql::write_statement::{GraphChange, WriteStatement};
use parse::GraphCommand;

impl Session {
    /// As [`Session::answered_command`], of a text that is only described. Errors: `unsupported` for a command that changes
    /// something: it would be carried out.
    pub(super) async fn described_command<'t>(&self, text: &'t str, interrupt: &Interrupt) -> Result<Cow<'t, str>> {
        match GraphCommand::parse(text)? {
            None | Some(GraphCommand::Show { .. } | GraphCommand::ShowSnapshots { .. }) => {
                self.answered_command(text, interrupt).await
            }
            Some(_) => Err(EngineError::Unsupported {
                what: "a command that changes graphs, sent as a query".to_owned(),
                hint: "send it as an update: CommandStatementUpdate by DoPut".to_owned(),
            }),
        }
    }

    /// Returns a text as it is planned. A command for graph models is carried out, and the query of its rows returned.
    pub(super) async fn answered_command<'t>(&self, text: &'t str, interrupt: &Interrupt) -> Result<Cow<'t, str>> {
        let Some(command) = GraphCommand::parse(text)? else { return Ok(Cow::Borrowed(text)) };
        let models = self.engine().catalog().graph_models();
        let rows = match command {
            GraphCommand::Save { name, definition } => {
                GraphModelDefinition::parse(&definition)
                    .map_err(|message| refused(format!("the graph model `{name}`: {message}")))?;
                self.change_graph(GraphChange::Save { name: name.clone(), definition }, interrupt).await?;
                saved_row(&self.stored_model(&name).await?)
            }
            GraphCommand::Drop { name, if_missing_ok } => {
                self.change_graph(GraphChange::Drop { name, if_missing_ok }, interrupt).await?;
                model_rows(&self.graph_models(interrupt).await?, false, true)
            }
            GraphCommand::Show { name, is_detailed, operators } => {
                let of_all = name.is_none();
                let shown = match name {
                    None => self.graph_models(interrupt).await?,
                    Some(name) => vec![self.graph_model(&name, interrupt).await?],
                };
                format!("{} {operators}", model_rows(&shown, is_detailed, of_all))
            }
            GraphCommand::Make { model, snapshot } => self.make_snapshot(&model, &snapshot, interrupt).await?,
            GraphCommand::DropSnapshot { model, snapshot } => {
                let model = self.graph_model(&model, interrupt).await?;
                let all = models.snapshots(&model).await?;
                let dropped = all.iter().find(|known| same_name(&known.name, &snapshot)).cloned();
                let change = GraphChange::DropSnapshot { model: Box::new(model.clone()), name: snapshot };
                self.change_graph(change, interrupt).await?;
                let dropped: Vec<(&GraphModel, GraphSnapshot)> =
                    dropped.into_iter().map(|snapshot| (&model, snapshot)).collect();
                snapshot_rows(&dropped)
            }
            GraphCommand::ShowSnapshots { model, operators } => {
                let shown = match model {
                    None => self.graph_models(interrupt).await?,
                    Some(model) => vec![self.graph_model(&model, interrupt).await?],
                };
                let mut snapshots = Vec::new();
                for model in &shown {
                    let of_model = models.snapshots(model).await?;
                    snapshots.extend(of_model.into_iter().map(|snapshot| (model, snapshot)));
                }
                format!("{} {operators}", snapshot_rows(&snapshots))
            }
        };
        Ok(Cow::Owned(rows))
    }

    /// Returns a model of which the caller may see what it is made of. Errors: `kql_invalid` where there is none of that name.
    async fn graph_model(&self, name: &str, interrupt: &Interrupt) -> Result<GraphModel> {
        let model = self.stored_model(name).await?;
        match self.sees_graph(&model.definition, interrupt).await? {
            true => Ok(model),
            false => Err(self.unknown_model(name)),
        }
    }

    /// Errors: `kql_invalid` where there is none of that name.
    async fn stored_model(&self, name: &str) -> Result<GraphModel> {
        let models = self.engine().catalog().graph_models();
        let found = models.get(self.principal(), self.database(), name).await?;
        found.ok_or_else(|| self.unknown_model(name))
    }

    fn unknown_model(&self, name: &str) -> EngineError {
        refused(format!("unknown graph model `{name}` in database `{}`", self.database()))
    }

    /// Returns the models of the session's database of which the caller may see what they are made of.
    async fn graph_models(&self, interrupt: &Interrupt) -> Result<Vec<GraphModel>> {
        let mut seen = Vec::new();
        for model in self.engine().catalog().graph_models().list(self.principal(), self.database()).await? {
            if self.sees_graph(&model.definition, interrupt).await? {
                seen.push(model);
            }
        }
        Ok(seen)
    }

    /// Whether the caller may see all that a graph is made of. Otherwise its definition, and errors of what it reads, would tell
    /// names of it.
    pub(super) async fn sees_graph(&self, definition: &str, interrupt: &Interrupt) -> Result<bool> {
        let policies = self.engine().catalog().policies().current();
        let is_unbound = Rights::new(self.principal(), &policies).is_unbound();
        if is_unbound && *self.principal().scope() == DatabaseScope::All {
            return Ok(true);
        }
        let Ok(definition) = GraphModelDefinition::parse(definition) else { return Ok(true) };
        for query in definition.queries() {
            let state = self.engine().planning_state();
            let host = SessionHost::new(self, &state, interrupt).beneath_a_graph();
            match querent_kql::plan(&host, query, &KqlParameters::new()).await {
                Ok(_) => {}
                Err(EngineError::Kql { .. } | EngineError::Catalog(_) | EngineError::NotAllowed { .. }) => {
                    return Ok(false);
                }
                Err(other) => return Err(other),
            }
        }
        Ok(true)
    }

    async fn change_graph(&self, change: GraphChange, interrupt: &Interrupt) -> Result<()> {
        let statement = WriteStatement::ChangeGraph { database: self.database().to_owned(), change: change.clone() };
        let plan = self.authorize(statement.into_plan())?;
        if let Some(name) = self.hidden_model(&change, interrupt).await? {
            return match change {
                GraphChange::Drop { if_missing_ok: true, .. } => Ok(()),
                GraphChange::Drop { .. } => Err(CatalogError::ObjectNotFound { what: "graph model", id: name }.into()),
                _ => Err(CatalogError::AlreadyExists { name, existing: None }.into()),
            };
        }
        self.begin_plan(plan, interrupt).await?;
        Ok(())
    }

    /// Returns the name of the model that a change replaces or drops, where it is not there for the caller.
    async fn hidden_model(&self, change: &GraphChange, interrupt: &Interrupt) -> Result<Option<String>> {
        let (GraphChange::Save { name, .. } | GraphChange::Drop { name, .. }) = change else { return Ok(None) };
        let models = self.engine().catalog().graph_models();
        let Some(known) = models.get(self.principal(), self.database(), name).await? else { return Ok(None) };
        let is_seen = self.sees_graph(&known.definition, interrupt).await?;
        Ok((!is_seen).then(|| name.clone()))
    }

    /// Makes a table of the rows of each of a model's queries, and of these a snapshot, in one change of the catalog.
    async fn make_snapshot(&self, model: &str, snapshot: &str, interrupt: &Interrupt) -> Result<String> {
        let model = self.graph_model(model, interrupt).await?;
        let known = self.engine().catalog().graph_models().snapshots(&model).await?;
        if known.iter().any(|known| same_name(&known.name, snapshot)) {
            return Err(refused(format!("the graph model `{}` has a snapshot `{snapshot}` already", model.name)));
        }
        let definition = GraphModelDefinition::parse(&model.definition)
            .map_err(|message| refused(format!("the graph model `{}`: {message}", model.name)))?;
        let (session, of, name, interrupted) = (self.clone(), model.clone(), snapshot.to_owned(), interrupt.clone());
        // To its end also when the caller goes away, which ends its queries: what they wrote is removed.
        let make = async move { session.add_snapshot(&of, &name, definition, &interrupted).await };
        self.engine().finish(QueryUsage::followed(make)).await?;
        let time = |time: DateTime<Utc>| time_literal(time);
        let (model_text, snapshot_text) = (quoted(&model.name), quoted(snapshot));
        let snapshots = self.engine().catalog().graph_models().snapshots(&model).await?;
        let made_at = snapshots.last().map_or_else(Utc::now, |latest| latest.created_at);
        let graph = format!("graph({model_text}, {snapshot_text})");
        Ok(format!(
            "print Name = {snapshot_text}, SnapshotTime = {}, ModelName = {model_text}, ModelId = {}, ModelCreationTime = {}, \
             NodesCount = toscalar({graph} | graph-to-table nodes with_node_id=__id | count), \
             EdgesCount = toscalar({graph} | graph-to-table edges | count), RetentionPolicy = ''",
            time(made_at),
            quoted(&model.id.to_string()),
            time(model.created_at),
        ))
    }

    async fn add_snapshot(
        &self,
        model: &GraphModel,
        snapshot: &str,
        definition: GraphModelDefinition,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let mut tables = Vec::new();
        let written = self.write_snapshot(model, snapshot, definition, &mut tables, interrupt).await;
        let files: Vec<NewDataFile> = tables.iter().flat_map(|table| table.files.clone()).collect();
        let authorized = async {
            let (model, name) = (Box::new(model.clone()), snapshot.to_owned());
            let change = GraphChange::AddSnapshot { model, name, definition: written?, tables };
            let statement = WriteStatement::ChangeGraph { database: self.database().to_owned(), change };
            self.authorize(statement.into_plan())
        };
        let plan = self.engine().or_remove_files(&files, authorized).await?;
        self.begin_plan(plan, interrupt).await?;
        Ok(())
    }

    /// Writes the rows of each of a model's queries, for tables that are created with the snapshot. Returns its definition over them.
    async fn write_snapshot(
        &self,
        model: &GraphModel,
        snapshot: &str,
        definition: GraphModelDefinition,
        tables: &mut Vec<DraftedTable>,
        interrupt: &Interrupt,
    ) -> Result<String> {
        let policies = self.engine().catalog().policies().in_force().await?;
        let mut queries = Vec::new();
        for (step, query) in definition.queries().enumerate() {
            let state = self.engine().planning_state();
            let host = SessionHost::new(self, &state, interrupt).for_a_copy(Arc::clone(&policies));
            let planned = querent_kql::plan(&host, query, &KqlParameters::new()).await?;
            let columns: Vec<(String, KqlType)> =
                planned.columns.into_iter().map(|column| (column.name, column.kql_type)).collect();
            let planned = querent_kql::plan(&host, &storable(query, &columns), &KqlParameters::new()).await?;
            let input = Arc::new(host.authorized(planned.in_arrow_types()?)?.into_plan());
            let table = format!("{}@{snapshot}#{step}", model.name);
            let create = WriteStatement::CreateTable {
                name: TableName::new(self.database(), &table),
                if_exists: IfExists::Error,
                with_rows: true,
                not_null: Vec::new(),
                keys: Vec::new(),
                foreign_keys: Vec::new(),
                defaults: Vec::new(),
                sort_order: Vec::new(),
                texts: TextColumns::default(),
                input,
            };
            let plan = self.authorize(create.into_plan())?;
            tables.push(Box::pin(drafted_table(self, plan, interrupt)).await?);
            queries.push(restored(&table, &columns));
            // What planning read is held until the rows are written.
            drop(host);
        }
        Ok(definition.with_queries(queries))
    }
}

fn refused(message: String) -> EngineError {
    EngineError::Kql { code: KqlErrorCode::Bind(querent_kql::BindErrorCode::Invalid), message, hint: None }
}

/// Returns a string literal of KQL.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn time_literal(time: DateTime<Utc>) -> String {
    format!("datetime({})", time.to_rfc3339_opts(SecondsFormat::Micros, true))
}

/// Returns the row of a model that was created or altered.
fn saved_row(model: &GraphModel) -> String {
    format!(
        "print Name = {}, CreationTime = {}, Id = {}, SnapshotsCount = int({}), Model = {}, AuthorizedPrincipals = '', \
         RetentionPolicy = ''",
        quoted(&model.name),
        time_literal(model.created_at),
        quoted(&model.id.to_string()),
        model.snapshots,
        quoted(&model.definition)
    )
}

/// Returns a table of models. Those of all have other columns than those of one, as in Kusto.
fn model_rows(models: &[GraphModel], is_detailed: bool, of_all: bool) -> String {
    let rows = models.iter().map(|model| {
        let id = model.id.to_string();
        let short = format!("{}, {}, {}", quoted(&model.name), time_literal(model.created_at), quoted(&id));
        match (is_detailed, of_all) {
            (true, false) => format!("{short}, long({}), dynamic({})", model.snapshots, model.definition),
            (true, true) => {
                format!(
                    "{short}, long({}), dynamic({}), dynamic(null), dynamic(null)",
                    model.snapshots, model.definition
                )
            }
            (false, _) => short,
        }
    });
    let rows: Vec<String> = rows.collect();
    let more = match (is_detailed, of_all) {
        (true, false) => ", SnapshotCount:long, Model:dynamic",
        (true, true) => ", SnapshotsCount:long, Model:dynamic, AuthorizedPrincipals:dynamic, RetentionPolicy:dynamic",
        (false, _) => "",
    };
    format!("datatable(Name:string, CreationTime:datetime, Id:string{more})[{}]", rows.join(", "))
}

fn snapshot_rows(snapshots: &[(&GraphModel, GraphSnapshot)]) -> String {
    let rows = snapshots.iter().map(|(model, snapshot)| {
        format!(
            "{}, {}, {}, {}, {}",
            quoted(&snapshot.name),
            time_literal(snapshot.created_at),
            quoted(&model.name),
            quoted(&model.id.to_string()),
            time_literal(model.created_at)
        )
    });
    let rows: Vec<String> = rows.collect();
    let columns = "Name:string, SnapshotTime:datetime, ModelName:string, ModelId:string, ModelCreationTime:datetime";
    format!("datatable({columns})[{}]", rows.join(", "))
}

//! Changes of the policy: what they name has to be there, and conditions and masks have to be plans over their table, before
//! they are kept.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, LogicalPlan};
use querent_catalog::policy::{GrantTarget, PolicyDocument, PolicyEdit, PolicySet};
use querent_catalog::{ColumnInfo, ResolvedTable, Restriction, RowRestriction, TableName, TableSource};
use querent_kql::nearest_name;

use super::Session;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;
use crate::policy;
use crate::sql::parameters::ParameterValues;
use crate::sql::parse::parse_statement;
use crate::sql::policy_statement::{PolicyStatement, parse_policy_file};
use crate::sql::restrictions::{in_types_of, restricted_plan, unfit_mask};
use crate::sql::write_statement::WriteStatement;
use crate::tables;

impl Session {
    /// Plans a statement about policies.
    pub(super) async fn plan_policy(
        &self,
        text: &str,
        statement: PolicyStatement,
        parameters: ParameterValues,
    ) -> Result<LogicalPlan> {
        match statement {
            PolicyStatement::Show(query) => Box::pin(self.plan_parsed(parse_statement(query)?, parameters)).await,
            PolicyStatement::Change(edit) => {
                Ok(WriteStatement::ChangePolicy { edit: Box::new(edit), text: text.trim().to_owned() }.into_plan())
            }
        }
    }

    /// Applies an authorised change of the policy.
    pub(super) async fn change_policy(&self, text: &str, edit: PolicyEdit) -> Result<()> {
        self.check_edit(&edit).await?;
        self.engine.catalog().policies().change(&self.principal, text, edit).await?;
        Ok(())
    }

    /// Puts the policy that the statements of a text make in place of the one that holds, all of it or nothing; with `dry_run`
    /// only checks them. Returns the policy that held and the one that then holds. Errors: those of the statements,
    /// `not_allowed` for whoever is no administrator of all databases.
    pub async fn replace_policy(&self, text: &str, dry_run: bool) -> Result<(Arc<PolicySet>, PolicyDocument)> {
        let before = self.engine.catalog().policies().in_force().await?;
        let mut document = PolicyDocument::default();
        for (statement, edit) in parse_policy_file(text, &self.database)? {
            let plan = WriteStatement::ChangePolicy { edit: Box::new(edit.clone()), text: statement }.into_plan();
            self.authorize(plan)?;
            self.check_edit(&edit).await?;
            document.apply(edit)?;
        }
        let all = PolicyEdit::Revoke { privileges: Vec::new(), on: GrantTarget::AllDatabases, from: Vec::new() };
        self.authorize(WriteStatement::ChangePolicy { edit: Box::new(all), text: String::new() }.into_plan())?;
        if !dry_run {
            self.engine.catalog().policies().replace(&self.principal, text, document.clone()).await?;
        }
        Ok((before, document))
    }

    async fn check_edit(&self, edit: &PolicyEdit) -> Result<()> {
        match edit {
            PolicyEdit::Grant { privileges, on: GrantTarget::Table(name), .. } => {
                let table = self.table_of_policy(name).await?;
                let columns = privileges.iter().flat_map(|(_, columns)| columns.iter().flatten());
                columns.into_iter().try_for_each(|column| find_column(&table, column).map(drop))
            }
            PolicyEdit::Grant { on: GrantTarget::Database(name), .. } => {
                let catalog = self.engine.catalog();
                match catalog.databases().get(&self.principal, name).await? {
                    Some(_) => Ok(()),
                    None => Err(catalog.tables().not_found(&self.principal, &TableName::new(name, "")).await.into()),
                }
            }
            PolicyEdit::CreateRowPolicy { policy, .. } => {
                let rows = RowRestriction::Any(vec![(policy.name.clone(), policy.condition.clone())]);
                self.check_expression(&policy.table, rows, None).await
            }
            PolicyEdit::CreateMask { mask, .. } => {
                let masked = (mask.column.clone(), mask.name.clone(), mask.expression.clone());
                self.check_expression(&mask.table, RowRestriction::All, Some(masked)).await
            }
            PolicyEdit::Grant { on: GrantTarget::AllDatabases, .. }
            | PolicyEdit::Revoke { .. }
            | PolicyEdit::DropRowPolicy { .. }
            | PolicyEdit::DropMask { .. } => Ok(()),
        }
    }

    async fn check_expression(
        &self,
        name: &TableName,
        rows: RowRestriction,
        mask: Option<(String, String, String)>,
    ) -> Result<()> {
        let table = self.table_of_policy(name).await?;
        if let TableSource::View { .. } = table.source {
            return Err(EngineError::Unsupported {
                what: format!("a policy of the view `{}`", table.info.name),
                hint: "make it for the tables that the view reads: views read what their caller sees of them".into(),
            });
        }
        if let Some((column, ..)) = &mask {
            find_column(&table, column)?;
        }
        let state = self.planning_state();
        let provider = tables::provider(self.engine.catalog(), &*state, &table, false).await?;
        let schema = provider.schema();
        let restriction = Restriction { whole: table.info.clone(), rows, masks: mask.into_iter().collect() };
        let plan = restricted_plan(&state, &self.principal, &table.info, &restriction, provider)?;
        policy::authorize(plan.clone(), &self.principal, policy::Mode::ReadOnly)?;
        require_each_row(&plan)?;
        // Nobody whom it is for could read the table.
        if let Some((column, mask)) = unfit_mask(&schema, &plan, &restriction) {
            let message = format!("the mask `{mask}` is a value that column `{column}` of `{name}` cannot have");
            return Err(EngineError::Plan { message });
        }
        in_types_of(&schema, plan).map(drop)
    }

    async fn table_of_policy(&self, name: &TableName) -> Result<ResolvedTable> {
        let tables = self.engine.catalog().tables();
        match tables.resolve(&self.principal, std::slice::from_ref(name)).await?.pop().flatten() {
            Some(table) => Ok(table),
            None => Err(tables.not_found(&self.principal, name).await.into()),
        }
    }
}

/// Returns an error where a condition or a mask is not of each row by itself: it would change how many rows there are, or fail
/// whenever the table is read.
fn require_each_row(plan: &LogicalPlan) -> Result<()> {
    let mut node = plan;
    loop {
        let unfit = match node {
            LogicalPlan::Filter(filter) if has_window(&filter.predicate)? => Some("a window function in a condition"),
            LogicalPlan::Aggregate(_) => Some("an aggregate function, which makes one row of many"),
            LogicalPlan::Unnest(_) => Some("unnest, which makes rows"),
            _ => None,
        };
        if let Some(what) = unfit {
            let message = format!("conditions and masks are computed of each row by itself; this one has {what}");
            return Err(EngineError::Plan { message });
        }
        // What subqueries are made of is theirs.
        match node.inputs().as_slice() {
            [input] => node = *input,
            _ => return Ok(()),
        }
    }
}

fn has_window(predicate: &Expr) -> Result<bool> {
    Ok(predicate.exists(|part| Ok(matches!(part, Expr::WindowFunction(_))))?)
}

fn find_column<'t>(table: &'t ResolvedTable, column: &str) -> Result<&'t ColumnInfo> {
    let found = table.info.columns.iter().find(|known| same_name(&known.name, column));
    found.ok_or_else(|| {
        let near = nearest_name(column, table.info.columns.iter().map(|known| known.name.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        EngineError::ColumnNotFound { column: column.to_owned(), hint: format!(" in `{}`{hint}", table.info.name) }
    })
}

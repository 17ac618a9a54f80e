//! What the policy says of one caller and one table, and why: for those who write it.

use querent_catalog::policy::{Grant, GrantTarget, Privilege, Rights};
use querent_catalog::{Principal, Role, RowRestriction, TableName};
use serde::Serialize;

use super::Session;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

/// What a caller may do with a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyExplanation {
    /// The version of the policy.
    pub version: i64,
    /// The table's database.
    pub database: String,
    /// The table.
    pub table: String,
    /// Whether grants decide in the database; otherwise roles alone do.
    pub governed: bool,
    /// Whether the table is there for the caller.
    pub visible: bool,
    /// Whether it may add rows, as far as grants say.
    pub insert: bool,
    /// Whether it may create, replace and drop, as far as grants say.
    pub modify: bool,
    /// Each column of the table.
    pub columns: Vec<ExplainedColumn>,
    /// `all`, `none`, or `some`: those that fulfil one of the conditions.
    pub rows: &'static str,
    /// The row policies that hold for the caller.
    pub row_policies: Vec<ExplainedExpression>,
    /// The grants to the caller that are about the table.
    pub grants: Vec<String>,
}

/// What a caller sees of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedColumn {
    /// Its name.
    pub name: String,
    /// Whether it is there.
    pub visible: bool,
    /// What is read in its place.
    pub mask: Option<ExplainedExpression>,
}

/// A row policy or a mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedExpression {
    /// Its name.
    pub name: String,
    /// Its condition or expression.
    pub expression: String,
}

impl Session {
    /// Returns what `who` may do with a table, and by which grants, row policies and masks. For administrators.
    /// Errors: `not_allowed`, `table_not_found`.
    pub async fn explain_policy(&self, who: &Principal, name: &TableName) -> Result<PolicyExplanation> {
        if self.principal.role() != Role::Admin {
            let why = " for this role (it needs role admin)".to_owned();
            return Err(EngineError::NotAllowed { what: "explaining the policy".to_owned(), why });
        }
        let tables = self.engine.catalog().tables();
        let Some(table) = tables.resolve(&self.principal, std::slice::from_ref(name)).await?.pop().flatten() else {
            return Err(tables.not_found(&self.principal, name).await.into());
        };
        let policies = self.engine.catalog().policies().in_force().await?;
        let (rights, name) = (Rights::new(who, &policies), &table.info.name);
        let (known, masks) = (rights.columns(name), rights.masks(name));
        let columns = table.info.columns.iter().map(|column| {
            let masked = masks.iter().find(|(masked, ..)| same_name(masked, &column.name));
            ExplainedColumn {
                name: column.name.clone(),
                visible: known.as_ref().is_none_or(|known| known.contains(&column.name.to_lowercase())),
                mask: masked.map(|(_, name, expression)| expression_of(name, expression)),
            }
        });
        let (rows, row_policies) = match rights.rows(name) {
            RowRestriction::All => ("all", Vec::new()),
            RowRestriction::None => ("none", Vec::new()),
            RowRestriction::Any(conditions) => {
                ("some", conditions.iter().map(|(name, condition)| expression_of(name, condition)).collect())
            }
        };
        let is_about = |grant: &&Grant| match &grant.on {
            GrantTarget::AllDatabases => true,
            GrantTarget::Database(database) => same_name(database, &name.database),
            GrantTarget::Table(table) => {
                same_name(&table.database, &name.database) && same_name(&table.table, &name.table)
            }
        };
        let grants = policies.document.grants.iter().filter(is_about).filter(|grant| rights.is_of_caller(&grant.to));
        Ok(PolicyExplanation {
            version: policies.version,
            database: name.database.clone(),
            table: name.table.clone(),
            governed: !rights.is_unbound() && policies.document.governs(&name.database),
            visible: rights.may_see_table(name),
            insert: rights.may(Privilege::Insert, &name.database, Some(&name.table)),
            modify: rights.may(Privilege::Modify, &name.database, Some(&name.table)),
            columns: columns.collect(),
            rows,
            row_policies,
            grants: grants.map(ToString::to_string).collect(),
        })
    }
}

fn expression_of(name: &str, expression: &str) -> ExplainedExpression {
    ExplainedExpression { name: name.to_owned(), expression: expression.to_owned() }
}

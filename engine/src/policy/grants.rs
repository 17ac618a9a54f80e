//! What grants say of a statement that is authorised otherwise: what it writes has to be granted where the database is governed,
//! and what its caller sees a part of cannot be replaced, added to or explained.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use querent_catalog::policy::{PolicyEdit, Privilege, Rights};
use querent_catalog::{CatalogError, DatabaseScope, ResolvedTable, Role, RowRestriction, TableAlteration, TableName};

use crate::error::{EngineError, Result};
use crate::sql::catalog_table::CatalogTable;
use crate::sql::write_statement::{CommentTarget, WriteStatement};

/// Returns an error unless grants let the caller run an authorised plan. Errors: `not_allowed`, `table_not_found`,
/// `database_not_found`.
pub(crate) fn check_grants(plan: &LogicalPlan, rights: Rights<'_>) -> Result<()> {
    if let Some(statement) = WriteStatement::from_plan(plan) {
        return check_write(statement, rights);
    }
    if matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)) && !rights.is_unbound() {
        return check_explained(plan);
    }
    Ok(())
}

/// Returns an error unless the caller may do something with a table, whole: add rows, or change it.
pub(crate) fn require_privilege(
    what: &str,
    privilege: Privilege,
    name: &TableName,
    existing: Option<&ResolvedTable>,
    rights: Rights<'_>,
) -> Result<()> {
    if !rights.may(privilege, &name.database, Some(&name.table)) {
        if !rights.may_see(&name.database) {
            return Err(CatalogError::DatabaseNotFound { database: name.database.clone(), nearest: None }.into());
        }
        return Err(EngineError::NotAllowed {
            what: what.to_owned(),
            why: format!(": {} on `{name}` is not granted to this caller", privilege.as_str()),
        });
    }
    let is_part = existing.is_some_and(|table| table.restriction.is_some())
        || rights.columns(name).is_some()
        || rights.rows(name) != RowRestriction::All
        || !rights.masks(name).is_empty();
    if is_part {
        return Err(EngineError::NotAllowed {
            what: what.to_owned(),
            why: format!(": this caller sees a part of `{name}` only"),
        });
    }
    Ok(())
}

fn check_write(statement: &WriteStatement, rights: Rights<'_>) -> Result<()> {
    let what = statement.label();
    match statement {
        WriteStatement::Returning { statement, .. } => check_write(statement, rights),
        WriteStatement::ChangePolicy { edit, .. } => check_policy_change(what, edit, rights),
        WriteStatement::Insert { target, overwrite, .. } => {
            let privilege = if *overwrite { Privilege::Modify } else { Privilege::Insert };
            require_privilege(what, privilege, &target.info.name, Some(target), rights)
        }
        WriteStatement::ChangeRows { target, .. }
        | WriteStatement::Analyze { target, .. }
        | WriteStatement::Optimize { target, .. } => {
            require_privilege(what, Privilege::Modify, &target.info.name, Some(target), rights)
        }
        WriteStatement::AlterTable { name, .. } if !rights.may_see_table(name) => Err(table_not_found(name)),
        WriteStatement::AlterTable { name, alterations, .. } => {
            require_privilege(what, Privilege::Modify, name, None, rights)?;
            alterations.iter().try_for_each(|alteration| match alteration {
                // Under its new name it is as if it were created there.
                TableAlteration::RenameTable { to } => {
                    let renamed = TableName::new(&name.database, to);
                    require_privilege(what, Privilege::Modify, &renamed, None, rights)
                }
                TableAlteration::AddColumn { .. }
                | TableAlteration::DropColumn { .. }
                | TableAlteration::DropNotNull { .. }
                | TableAlteration::SetNotNull { .. }
                | TableAlteration::WidenColumn { .. }
                | TableAlteration::SetJson { .. }
                | TableAlteration::SetDefault { .. }
                | TableAlteration::SetSortOrder { .. }
                | TableAlteration::AddKey { .. }
                | TableAlteration::AddForeignKey { .. }
                | TableAlteration::RenameColumn { .. } => Ok(()),
            })
        }
        WriteStatement::CreateTable { name, .. } | WriteStatement::CreateView { name, .. } => {
            require_privilege(what, Privilege::Modify, name, None, rights)
        }
        WriteStatement::CreateExternalTable(request) => {
            require_privilege(what, Privilege::Modify, &request.name, None, rights)
        }
        WriteStatement::DropTables { names, if_missing_ok, .. } => names.iter().try_for_each(|name| {
            // Nothing is dropped then: `apply_write` asks again.
            if *if_missing_ok && !rights.may_see(&name.database) {
                return Ok(());
            }
            // What may not be seen is not there.
            if !*if_missing_ok && !rights.may_see_table(name) {
                return Err(table_not_found(name));
            }
            require_privilege(what, Privilege::Modify, name, None, rights)
        }),
        WriteStatement::Comment { target, .. } => match target {
            CommentTarget::Database(name) => require_seen_database(what, name, rights),
            CommentTarget::Table(name) | CommentTarget::Column(name, _) | CommentTarget::Several(name, _)
                if !rights.may_see_table(name) =>
            {
                Err(table_not_found(name))
            }
            CommentTarget::Table(name) | CommentTarget::Column(name, _) | CommentTarget::Several(name, _) => {
                require_privilege(what, Privilege::Modify, name, None, rights)
            }
        },
        WriteStatement::CreateVectorIndex(request) => require_table(what, &request.table, rights),
        WriteStatement::DropVectorIndex { found: Some((_, table)), .. } => require_table(what, table, rights),
        WriteStatement::DropVectorIndex { found: None, .. } => Ok(()),
        WriteStatement::CreateDatabase { name, .. } => require_database(what, name, rights),
        // Nothing is dropped then: `apply_write` asks again.
        WriteStatement::DropDatabase { name, if_missing_ok: true, .. } if !rights.may_see(name) => Ok(()),
        WriteStatement::DropDatabase { name, cascade, .. } => {
            require_seen_database(what, name, rights)?;
            match rights.partly_seen(name).filter(|_| *cascade) {
                // What could not be dropped by itself does not go with its database.
                Some(part) => Err(EngineError::NotAllowed {
                    what: format!("{what} with CASCADE"),
                    why: format!(": this caller sees a part of `{part}` only"),
                }),
                None => Ok(()),
            }
        }
        WriteStatement::ChangeGraph { database, .. } => require_seen_database(what, database, rights),
        // Tables of the session, and the caller's own queries. What they read is resolved for the caller.
        WriteStatement::CreateTemporary { .. }
        | WriteStatement::InsertTemporary { .. }
        | WriteStatement::ChangeTemporary { .. }
        | WriteStatement::DropTemporary { .. }
        | WriteStatement::Session(_)
        | WriteStatement::CopyTo { .. }
        | WriteStatement::Kill { .. } => Ok(()),
    }
}

/// Returns an error unless the caller may change a table, whole.
fn require_table(what: &str, table: &TableName, rights: Rights<'_>) -> Result<()> {
    // What may not be seen is not there.
    if !rights.may_see_table(table) {
        return Err(table_not_found(table));
    }
    require_privilege(what, Privilege::Modify, table, None, rights)
}

/// As [`require_database`], of a database that is to be there. What may not be seen is not.
fn require_seen_database(what: &str, database: &str, rights: Rights<'_>) -> Result<()> {
    if !rights.may_see(database) {
        return Err(CatalogError::DatabaseNotFound { database: database.to_owned(), nearest: None }.into());
    }
    require_database(what, database, rights)
}

fn require_database(what: &str, database: &str, rights: Rights<'_>) -> Result<()> {
    if rights.may(Privilege::Modify, database, None) {
        return Ok(());
    }
    let why = format!(": MODIFY on database `{database}` is not granted to this caller");
    Err(EngineError::NotAllowed { what: what.to_owned(), why })
}

/// Administrators change the policy, of the databases that they see.
fn check_policy_change(what: &str, edit: &PolicyEdit, rights: Rights<'_>) -> Result<()> {
    let who = rights.principal();
    let denied = |why: &str| Err(EngineError::NotAllowed { what: what.to_owned(), why: why.to_owned() });
    if who.role() != Role::Admin {
        return denied(" for this role (it needs role admin)");
    }
    match edit.database() {
        Some(database) if who.may_see(database) => Ok(()),
        None if matches!(who.scope(), DatabaseScope::All) => Ok(()),
        Some(_) | None => denied(": this caller is limited to other databases"),
    }
}

/// How a query of a part of a table is carried out says what the other part is like.
fn check_explained(plan: &LogicalPlan) -> Result<()> {
    let mut hidden = None;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = CatalogTable::resolved_behind(&scan.source)
            && table.restriction.is_some()
        {
            hidden = Some(table.info.name.clone());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match hidden {
        None => Ok(()),
        Some(name) => Err(EngineError::NotAllowed {
            what: format!("EXPLAIN of a query of `{name}`"),
            why: ", of which this caller sees a part only".to_owned(),
        }),
    }
}

fn table_not_found(name: &TableName) -> EngineError {
    CatalogError::TableNotFound { database: name.database.clone(), table: name.table.clone(), nearest: None }.into()
}

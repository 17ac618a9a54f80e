//! Who may read and write what of the catalog: grants, row policies and masks, as one document with versions.
//!
//! A database that no grant names is open, as are all where there are no grants: every caller reads it, and writes what its
//! role lets it write. The first statement that grants something of a database, or revokes something of it, governs it:
//! from then on a caller finds there what is granted to it, and nothing else exists for it. Revoking never opens a database
//! again; granting it to PUBLIC does. Administrators are bound by no grant, policy or mask, only by their token's databases.
//!
//! Names of databases, tables and columns are compared without regard to case, those of roles, groups and subjects with it.

mod expressions;
mod reach;
mod rights;

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{CatalogError, Result};
use crate::model::{TableName, quote_identifier};
pub use expressions::{ColumnRewriter, PolicyName, read_policies_with};
pub use reach::ReadReach;
pub use rights::Rights;
pub(crate) use rights::is_system_database;

/// The most grants, row policies and masks of a catalog, each.
const MAX_ENTRIES: usize = 10_000;
/// The most bytes of the name of a policy and of one it is for.
const MAX_NAME: usize = 256;

/// All grants, row policies and masks of a catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyDocument {
    /// Whether databases that are not named are governed too.
    pub governs_all: bool,
    /// The databases that are governed, in lower case.
    pub governed: BTreeSet<String>,
    /// What is granted.
    pub grants: Vec<Grant>,
    /// Which rows of a table are there for whom.
    pub row_policies: Vec<RowPolicy>,
    /// What is read in the place of a column's values.
    pub masks: Vec<Mask>,
}

/// What may be done with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Privilege {
    /// Read it. Without it nothing else can be done.
    Select,
    /// Add rows.
    Insert,
    /// Create, replace, drop and comment on it, and replace its rows.
    Modify,
}

impl Privilege {
    /// The word for it in statements.
    pub fn as_str(self) -> &'static str {
        match self {
            Privilege::Select => "SELECT",
            Privilege::Insert => "INSERT",
            Privilege::Modify => "MODIFY",
        }
    }
}

/// What a grant is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantTarget {
    /// All databases, those to come included.
    AllDatabases,
    /// A database and all in it, what is to come included.
    Database(String),
    /// A table or view.
    Table(TableName),
}

/// Whom a grant or a policy is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grantee {
    /// Everybody.
    Public,
    /// Who has a role of this name.
    Role(String),
    /// Who is in a group of this name.
    Group(String),
    /// The one of this name.
    Subject(String),
}

/// A right of one grantee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// What may be done.
    pub privilege: Privilege,
    /// The only columns that are there; all where it is absent. For reading tables only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<BTreeSet<String>>,
    /// With what.
    pub on: GrantTarget,
    /// By whom.
    pub to: Grantee,
}

/// Rows of a table that are there for some callers. Those of all policies that are for a caller are; where a table has
/// policies and none is for it, none are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowPolicy {
    /// Its name, once a table.
    pub name: String,
    /// The table.
    pub table: TableName,
    /// A condition in SQL over the table's columns.
    pub condition: String,
    /// Whom it is for.
    pub to: BTreeSet<Grantee>,
    /// Whom it is not for, whatever `to` says.
    #[serde(default)]
    pub except: BTreeSet<Grantee>,
}

/// What some callers read in the place of a column's values. Of several that are for a caller the first one holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mask {
    /// Its name, once a table.
    pub name: String,
    /// The table.
    pub table: TableName,
    /// The column.
    pub column: String,
    /// What is read, in SQL over the table's columns; it is converted to the column's type.
    pub expression: String,
    /// Whom it is for.
    pub to: BTreeSet<Grantee>,
    /// Whom it is not for, whatever `to` says.
    #[serde(default)]
    pub except: BTreeSet<Grantee>,
}

/// A change of the document.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyEdit {
    /// Adds rights.
    Grant {
        /// What may be done, each with the columns it is limited to.
        privileges: Vec<(Privilege, Option<BTreeSet<String>>)>,
        /// With what.
        on: GrantTarget,
        /// By whom.
        to: Vec<Grantee>,
    },
    /// Removes rights, of columns too; what is not granted is governed nevertheless.
    Revoke {
        /// Which rights.
        privileges: Vec<(Privilege, Option<BTreeSet<String>>)>,
        /// Of what.
        on: GrantTarget,
        /// From whom.
        from: Vec<Grantee>,
    },
    /// Adds a row policy.
    CreateRowPolicy {
        /// The policy.
        policy: RowPolicy,
        /// Whether one of that name is replaced.
        or_replace: bool,
    },
    /// Removes a row policy.
    DropRowPolicy {
        /// Its name.
        name: String,
        /// Its table.
        table: TableName,
        /// Whether it need not be there.
        if_exists: bool,
    },
    /// Adds a mask.
    CreateMask {
        /// The mask.
        mask: Mask,
        /// Whether one of that name is replaced.
        or_replace: bool,
    },
    /// Removes a mask.
    DropMask {
        /// Its name.
        name: String,
        /// Its table.
        table: TableName,
        /// Whether it need not be there.
        if_exists: bool,
    },
}

impl PolicyEdit {
    /// The database that it is about; `None` for all.
    pub fn database(&self) -> Option<&str> {
        match self {
            PolicyEdit::Grant { on, .. } | PolicyEdit::Revoke { on, .. } => match on {
                GrantTarget::AllDatabases => None,
                GrantTarget::Database(name) => Some(name),
                GrantTarget::Table(name) => Some(&name.database),
            },
            PolicyEdit::CreateRowPolicy { policy, .. } => Some(&policy.table.database),
            PolicyEdit::CreateMask { mask, .. } => Some(&mask.table.database),
            PolicyEdit::DropRowPolicy { table, .. } | PolicyEdit::DropMask { table, .. } => Some(&table.database),
        }
    }
}

/// The policy that holds, and its version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicySet {
    /// Counts the changes; 0 where there was none.
    pub version: i64,
    /// What it says.
    pub document: PolicyDocument,
}

/// A table that has another name now, or columns that have.
#[derive(Debug)]
pub(crate) struct RenamedTable {
    /// The name that it had.
    pub(crate) known: TableName,
    /// The name that it has.
    pub(crate) table: TableName,
    /// The columns with other names: the one that each had, and the one that it has.
    pub(crate) columns: Vec<(String, String)>,
}

impl RenamedTable {
    fn column(&self, column: &str) -> String {
        let found = self.columns.iter().find(|(old, _)| old.to_lowercase() == column.to_lowercase());
        found.map_or_else(|| column.to_owned(), |(_, new)| new.to_lowercase())
    }

    fn expression(&self, expression: &str) -> String {
        expressions::with_renamed(expression, &self.columns, (self.known.table.as_str(), self.table.table.as_str()))
    }
}

fn lower(name: &TableName) -> TableName {
    TableName::new(name.database.to_lowercase(), name.table.to_lowercase())
}

impl PolicyDocument {
    /// Whether grants decide what is there in a database.
    pub fn governs(&self, database: &str) -> bool {
        self.governs_all || self.governed.contains(&database.to_lowercase())
    }

    /// Puts the new names of tables and of their columns in the places of the old ones, in conditions and expressions too: of all
    /// tables at once, since two may have each other's names now. One that names a column which is gone hides the table.
    pub(crate) fn follow(&mut self, tables: &[RenamedTable]) {
        let tables: HashMap<TableName, &RenamedTable> =
            tables.iter().map(|renamed| (lower(&renamed.known), renamed)).collect();
        for grant in &mut self.grants {
            let GrantTarget::Table(name) = &grant.on else { continue };
            let Some(renamed) = tables.get(&lower(name)) else { continue };
            grant.on = GrantTarget::Table(lower(&renamed.table));
            grant.columns = grant.columns.take().map(|names| names.iter().map(|name| renamed.column(name)).collect());
        }
        for policy in &mut self.row_policies {
            let Some(renamed) = tables.get(&lower(&policy.table)) else { continue };
            policy.table = lower(&renamed.table);
            policy.condition = renamed.expression(&policy.condition);
        }
        for mask in &mut self.masks {
            let Some(renamed) = tables.get(&lower(&mask.table)) else { continue };
            mask.table = lower(&renamed.table);
            mask.expression = renamed.expression(&mask.expression);
            mask.column = renamed.column(&mask.column);
        }
    }

    /// Whether a row policy or a mask is of a table.
    pub fn restricts(&self, table: &TableName) -> bool {
        let of_rows = self.row_policies.iter().map(|policy| &policy.table);
        let mut restricted = of_rows.chain(self.masks.iter().map(|mask| &mask.table));
        restricted.any(|other| lower(other) == lower(table))
    }

    /// Returns what needs a column of a table to say what it says, by its kind and name: `row policy own`.
    pub(crate) fn needs_column(&self, table: &TableName, column: &str) -> Option<String> {
        let is_of = |other: &TableName| other.to_string().to_lowercase() == table.to_string().to_lowercase();
        let policy = self
            .row_policies
            .iter()
            .find(|policy| is_of(&policy.table) && expressions::may_name(&policy.condition, column));
        let mask = self.masks.iter().find(|mask| {
            let is_its_own = mask.column.to_lowercase() == column.to_lowercase();
            is_of(&mask.table) && !is_its_own && expressions::may_name(&mask.expression, column)
        });
        let policy = policy.map(|policy| format!("row policy `{}`", policy.name));
        policy.or_else(|| mask.map(|mask| format!("mask `{}`", mask.name)))
    }

    /// Whether something is said of a subject by its name.
    pub fn names_subject(&self, subject: &str) -> bool {
        let is_meant = |grantee: &Grantee| matches!(grantee, Grantee::Subject(name) if name == subject);
        let of_rows = self.row_policies.iter().flat_map(|policy| policy.to.iter().chain(&policy.except));
        let of_masks = self.masks.iter().flat_map(|mask| mask.to.iter().chain(&mask.except));
        let mut named = self.grants.iter().map(|grant| &grant.to).chain(of_rows).chain(of_masks);
        named.any(is_meant)
    }

    /// Applies a change. Errors: `invalid_object`, `already_exists`, `object_not_found`.
    pub fn apply(&mut self, edit: PolicyEdit) -> Result<()> {
        match edit {
            PolicyEdit::Grant { privileges, on, to } => self.grant(privileges, &on, &to)?,
            PolicyEdit::Revoke { privileges, on, from } => self.revoke(&privileges, &on, &from)?,
            PolicyEdit::CreateRowPolicy { policy, or_replace } => {
                check_name(&policy.name)?;
                let found = self.row_policies.iter_mut().find(|other| is_named(&policy.name, &policy.table, *other));
                match found {
                    Some(found) if or_replace => *found = policy,
                    Some(_) => return Err(CatalogError::AlreadyExists { name: policy.name, existing: None }),
                    None => self.row_policies.push(policy),
                }
            }
            PolicyEdit::CreateMask { mask, or_replace } => {
                check_name(&mask.name)?;
                let found = self.masks.iter_mut().find(|other| is_named(&mask.name, &mask.table, *other));
                match found {
                    Some(found) if or_replace => *found = mask,
                    Some(_) => return Err(CatalogError::AlreadyExists { name: mask.name, existing: None }),
                    None => self.masks.push(mask),
                }
            }
            PolicyEdit::DropRowPolicy { name, table, if_exists } => {
                let count = self.row_policies.len();
                self.row_policies.retain(|other| !is_named(&name, &table, other));
                require_dropped(count > self.row_policies.len() || if_exists, "row policy", name)?;
            }
            PolicyEdit::DropMask { name, table, if_exists } => {
                let count = self.masks.len();
                self.masks.retain(|other| !is_named(&name, &table, other));
                require_dropped(count > self.masks.len() || if_exists, "mask", name)?;
            }
        }
        let most = [self.grants.len(), self.row_policies.len(), self.masks.len()].into_iter().max().unwrap_or(0);
        if most > MAX_ENTRIES {
            return Err(invalid(format!(
                "there are more than {MAX_ENTRIES} of a kind; name roles instead of subjects"
            )));
        }
        Ok(())
    }

    fn grant(
        &mut self,
        privileges: Vec<(Privilege, Option<BTreeSet<String>>)>,
        on: &GrantTarget,
        to: &[Grantee],
    ) -> Result<()> {
        self.govern(on);
        for (privilege, columns) in privileges {
            if columns.is_some() && (privilege != Privilege::Select || !matches!(on, GrantTarget::Table(_))) {
                return Err(invalid("columns are named for SELECT on a table only".into()));
            }
            for grantee in to {
                let is_same =
                    |grant: &&mut Grant| grant.privilege == privilege && grant.on == *on && grant.to == *grantee;
                match self.grants.iter_mut().find(is_same) {
                    // Columns add up; all columns are more than some.
                    Some(known) => match (&mut known.columns, &columns) {
                        (Some(known), Some(more)) => known.extend(more.iter().cloned()),
                        (known, None) => *known = None,
                        (None, Some(_)) => {}
                    },
                    None => {
                        let (on, to) = (on.clone(), grantee.clone());
                        self.grants.push(Grant { privilege, columns: columns.clone(), on, to });
                    }
                }
            }
        }
        Ok(())
    }

    fn revoke(
        &mut self,
        privileges: &[(Privilege, Option<BTreeSet<String>>)],
        on: &GrantTarget,
        from: &[Grantee],
    ) -> Result<()> {
        self.govern(on);
        for (privilege, columns) in privileges {
            let is_meant = |grant: &Grant| grant.privilege == *privilege && grant.on == *on && from.contains(&grant.to);
            let whole = self.grants.iter().find(|grant| is_meant(grant) && grant.columns.is_none());
            if let (Some(_), Some(grant)) = (columns, whole) {
                // What is left would grow with the table's columns.
                return Err(invalid(format!(
                    "{} reads all columns; revoke that and grant those that are left",
                    grant.to
                )));
            }
            self.grants.retain_mut(|grant| match (&mut grant.columns, columns) {
                _ if !(grant.privilege == *privilege && grant.on == *on && from.contains(&grant.to)) => true,
                (Some(known), Some(gone)) => {
                    known.retain(|column| !gone.contains(column));
                    !known.is_empty()
                }
                (_, _) => false,
            });
        }
        Ok(())
    }

    fn govern(&mut self, on: &GrantTarget) {
        match on {
            GrantTarget::AllDatabases => self.governs_all = true,
            GrantTarget::Database(name) => drop(self.governed.insert(name.clone())),
            GrantTarget::Table(name) => drop(self.governed.insert(name.database.clone())),
        }
    }
}

/// What row policies and masks are found by.
trait NamedOfTable {
    fn name(&self) -> &str;
    fn table(&self) -> &TableName;
}

impl NamedOfTable for RowPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn table(&self) -> &TableName {
        &self.table
    }
}

impl NamedOfTable for Mask {
    fn name(&self) -> &str {
        &self.name
    }

    fn table(&self) -> &TableName {
        &self.table
    }
}

fn is_named(name: &str, table: &TableName, other: &impl NamedOfTable) -> bool {
    other.name().eq_ignore_ascii_case(name) && other.table() == table
}

fn require_dropped(done: bool, what: &'static str, id: String) -> Result<()> {
    if done { Ok(()) } else { Err(CatalogError::ObjectNotFound { what, id }) }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(invalid(format!("its name has 1 to {MAX_NAME} bytes")));
    }
    Ok(())
}

fn invalid(reason: String) -> CatalogError {
    CatalogError::InvalidObject { what: "policy", reason }
}

impl fmt::Display for Grantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grantee::Public => f.write_str("PUBLIC"),
            Grantee::Role(name) => write!(f, "ROLE {}", quote_identifier(name)),
            Grantee::Group(name) => write!(f, "GROUP {}", quote_identifier(name)),
            Grantee::Subject(name) => write!(f, "SUBJECT {}", quote_identifier(name)),
        }
    }
}

impl fmt::Display for GrantTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrantTarget::AllDatabases => f.write_str("ALL DATABASES"),
            GrantTarget::Database(name) => write!(f, "DATABASE {}", quote_identifier(name)),
            GrantTarget::Table(name) => {
                write!(f, "{}.{}", quote_identifier(&name.database), quote_identifier(&name.table))
            }
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GRANT {}", self.privilege.as_str())?;
        if let Some(columns) = &self.columns {
            write!(f, " ({})", columns.iter().map(|column| quote_identifier(column)).collect::<Vec<_>>().join(", "))?;
        }
        write!(f, " ON {} TO {}", self.on, self.to)
    }
}

impl fmt::Display for RowPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = GrantTarget::Table(self.table.clone());
        write!(f, "CREATE ROW POLICY {} ON {table} USING ({})", quote_identifier(&self.name), self.condition)?;
        write_audience(f, &self.to, &self.except)
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, column) = (GrantTarget::Table(self.table.clone()), quote_identifier(&self.column));
        write!(f, "CREATE MASK {} ON {table}({column}) USING ({})", quote_identifier(&self.name), self.expression)?;
        write_audience(f, &self.to, &self.except)
    }
}

fn write_audience(f: &mut fmt::Formatter<'_>, to: &BTreeSet<Grantee>, except: &BTreeSet<Grantee>) -> fmt::Result {
    let list = |grantees: &BTreeSet<Grantee>| grantees.iter().map(Grantee::to_string).collect::<Vec<_>>().join(", ");
    write!(f, " TO {}", list(to))?;
    if except.is_empty() { Ok(()) } else { write!(f, " EXCEPT {}", list(except)) }
}

//! What one caller may do under a policy. Pure: names in, decisions out.

use std::collections::BTreeSet;

use super::reach::ReadReach;
use super::{Grant, GrantTarget, Grantee, PolicyDocument, PolicySet, Privilege};
use crate::model::{KeyConstraint, ReferredKey, Restriction, RowRestriction, TableInfo, TableName};
use crate::principal::{DatabaseScope, Principal, Role};

/// The databases of system tables, which show each caller its own.
const SYSTEM_DATABASES: [&str; 2] = ["system", "information_schema"];

/// Whether a database has the system tables.
pub(crate) fn is_system_database(name: &str) -> bool {
    SYSTEM_DATABASES.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// The rights of a caller.
#[derive(Clone, Copy)]
pub struct Rights<'a> {
    who: &'a Principal,
    policies: &'a PolicySet,
}

impl<'a> Rights<'a> {
    /// The rights of `who` under `policies`.
    pub fn new(who: &'a Principal, policies: &'a PolicySet) -> Self {
        Self { who, policies }
    }

    /// The caller.
    pub fn principal(&self) -> &'a Principal {
        self.who
    }

    /// What the caller can read, to be compared with what it can read later.
    pub fn reach(&self) -> ReadReach {
        ReadReach::of_caller(*self)
    }

    pub(super) fn document(&self) -> &'a PolicyDocument {
        &self.policies.document
    }

    /// Whether no policy binds the caller.
    pub fn is_unbound(&self) -> bool {
        self.who.role() == Role::Admin || self.policies.version == 0
    }

    /// Whether everything in all databases exists for the caller.
    pub fn sees_all(&self) -> bool {
        *self.who.scope() == DatabaseScope::All && self.is_unbound()
    }

    /// Whether a database exists for the caller.
    pub fn may_see(&self, database: &str) -> bool {
        self.who.may_see(database) && (self.is_open(database) || self.grants_in(database).next().is_some())
    }

    /// Whether everything in a database exists for the caller, what its row policies and masks leave.
    pub fn sees_all_of(&self, database: &str) -> bool {
        let whole = |grant: &Grant| grant.privilege == Privilege::Select && !matches!(grant.on, GrantTarget::Table(_));
        self.who.may_see(database) && (self.is_open(database) || self.grants_in(database).any(whole))
    }

    /// Whether a table exists for the caller.
    pub fn may_see_table(&self, name: &TableName) -> bool {
        self.may(Privilege::Select, &name.database, Some(&name.table))
    }

    /// Whether a database and tables exist for the caller, these with all their columns: so may a text that names some.
    pub(crate) fn may_see_whole(&self, database: &str, tables: &[TableName]) -> bool {
        let is_whole = |table: &TableName| self.may_see_table(table) && self.columns(table).is_none();
        self.may_see(database) && tables.iter().all(is_whole)
    }

    /// Whether the caller may do something with a table, or with all tables of a database.
    pub fn may(&self, privilege: Privilege, database: &str, table: Option<&str>) -> bool {
        if !self.who.may_see(database) {
            return false;
        }
        if self.is_open(database) {
            return true;
        }
        self.grants_in(database).any(|grant| grant.privilege == privilege && covers(&grant.on, table))
    }

    /// The columns of a table that exist for the caller, in lower case; `None` for all.
    pub fn columns(&self, name: &TableName) -> Option<BTreeSet<String>> {
        if self.is_open(&name.database) {
            return None;
        }
        let mut columns = BTreeSet::new();
        for grant in self.grants_in(&name.database) {
            if grant.privilege == Privilege::Select && covers(&grant.on, Some(&name.table)) {
                columns.extend(grant.columns.as_ref()?.iter().cloned());
            }
        }
        Some(columns)
    }

    /// Whether all of these columns of a table exist for the caller.
    pub fn sees_columns(&self, name: &TableName, columns: &[String]) -> bool {
        let known = self.columns(name);
        columns.iter().all(|column| known.as_ref().is_none_or(|known| known.contains(&column.to_lowercase())))
    }

    /// Whether all columns of a key, and those that it refers to, exist for the caller.
    pub fn sees_key(&self, key: &KeyConstraint) -> bool {
        let sees = |referred: &ReferredKey| self.sees_columns(&referred.table, &referred.columns);
        self.sees_columns(&key.table, &key.columns) && key.referred.as_ref().is_none_or(sees)
    }

    /// A table of a database of which the caller sees a part only; `None` where it sees all that there is of each.
    pub fn partly_seen(&self, database: &str) -> Option<&'a TableName> {
        if self.is_unbound() {
            return None;
        }
        let database = database.to_lowercase();
        let document = &self.policies.document;
        let restricted = document.row_policies.iter().map(|policy| &policy.table);
        let restricted = restricted.chain(document.masks.iter().map(|mask| &mask.table));
        let of_columns = self.grants_in(&database).filter(|grant| grant.columns.is_some());
        let of_columns = of_columns.filter_map(|grant| match &grant.on {
            GrantTarget::Table(name) => Some(name),
            GrantTarget::AllDatabases | GrantTarget::Database(_) => None,
        });
        let mut tables = restricted.chain(of_columns).filter(|table| table.database == database);
        tables.find(|table| {
            self.columns(table).is_some() || self.rows(table) != RowRestriction::All || !self.masks(table).is_empty()
        })
    }

    /// The rows of a table that exist for the caller.
    pub fn rows(&self, name: &TableName) -> RowRestriction {
        if self.is_unbound() {
            return RowRestriction::All;
        }
        let mut of_table =
            self.policies.document.row_policies.iter().filter(|one| is_table(&one.table, name)).peekable();
        if of_table.peek().is_none() {
            return RowRestriction::All;
        }
        let for_caller = of_table.filter(|policy| self.is_for(&policy.to, &policy.except));
        let conditions: Vec<_> = for_caller.map(|one| (one.name.clone(), one.condition.clone())).collect();
        if conditions.is_empty() { RowRestriction::None } else { RowRestriction::Any(conditions) }
    }

    /// The masks of a table's columns that hold for the caller: the column in lower case, the mask's name, its expression.
    pub fn masks(&self, name: &TableName) -> Vec<(String, String, String)> {
        let mut masks: Vec<(String, String, String)> = Vec::new();
        if self.is_unbound() {
            return masks;
        }
        for mask in self.policies.document.masks.iter().filter(|mask| is_table(&mask.table, name)) {
            let column = mask.column.to_lowercase();
            if self.is_for(&mask.to, &mask.except) && masks.iter().all(|(known, ..)| *known != column) {
                masks.push((column, mask.name.clone(), mask.expression.clone()));
            }
        }
        masks
    }

    /// Takes away what the caller does not see of a table that it sees: columns, and the number of rows where it does not see
    /// all. Returns what has to be done to its rows, if anything.
    pub fn restrict(&self, info: &mut TableInfo) -> Option<Restriction> {
        if self.is_unbound() {
            return None;
        }
        let (columns, rows, masks) = (self.columns(&info.name), self.rows(&info.name), self.masks(&info.name));
        if columns.is_none() && rows == RowRestriction::All && masks.is_empty() {
            return None;
        }
        let whole = info.clone();
        if let Some(columns) = columns {
            info.columns.retain(|column| columns.contains(&column.name.to_lowercase()));
        }
        if rows != RowRestriction::All {
            info.row_count = None;
        }
        Some(Restriction { whole, rows, masks })
    }

    /// Whether the values of a column may be told to the caller.
    pub fn may_know_values(&self, name: &TableName, column: &str) -> bool {
        if self.is_unbound() {
            return true;
        }
        let column = column.to_lowercase();
        self.rows(name) == RowRestriction::All
            && self.columns(name).is_none_or(|columns| columns.contains(&column))
            && self.masks(name).iter().all(|(masked, ..)| *masked != column)
    }

    /// Tables that are granted to the caller one by one, of databases that it does not see as a whole.
    pub(crate) fn single_tables(&self) -> BTreeSet<(String, String)> {
        if self.is_unbound() {
            return BTreeSet::new();
        }
        let tables = self.policies.document.grants.iter().filter_map(|grant| match &grant.on {
            GrantTarget::Table(name) if grant.privilege == Privilege::Select && self.is_of_caller(&grant.to) => {
                Some((name.database.to_lowercase(), name.table.to_lowercase()))
            }
            _ => None,
        });
        tables.filter(|(database, _)| self.who.may_see(database) && !self.sees_all_of(database)).collect()
    }

    /// The governed databases that the caller does not see as a whole; `None` where that is all but [`Rights::whole_databases`].
    pub(crate) fn partly_hidden(&self) -> Option<BTreeSet<String>> {
        let document = &self.policies.document;
        if self.is_unbound() {
            return Some(BTreeSet::new());
        }
        let sees_rest = !document.governs_all || self.grants_in("").any(|grant| grant.privilege == Privilege::Select);
        sees_rest.then(|| document.governed.iter().filter(|name| !self.sees_all_of(name)).cloned().collect())
    }

    /// The databases that are granted to the caller by name.
    pub(crate) fn whole_databases(&self) -> BTreeSet<String> {
        let named = self.policies.document.grants.iter().filter_map(|grant| match &grant.on {
            GrantTarget::Database(name) if grant.privilege == Privilege::Select && self.is_of_caller(&grant.to) => {
                Some(name.to_lowercase())
            }
            _ => None,
        });
        named.filter(|name| self.who.may_see(name)).collect()
    }

    /// Whether a database is bound by no grant, or the caller by none.
    fn is_open(&self, database: &str) -> bool {
        let document = &self.policies.document;
        self.is_unbound() || is_system_database(database) || !document.governs(database)
    }

    /// The grants to the caller that are about a database, all databases, or a table in it.
    fn grants_in(&self, database: &str) -> impl Iterator<Item = &'a Grant> {
        let database = database.to_lowercase();
        let grants = self.policies.document.grants.iter();
        let who = *self;
        grants.filter(move |grant| {
            let is_there = match &grant.on {
                GrantTarget::AllDatabases => true,
                GrantTarget::Database(name) => *name == database,
                GrantTarget::Table(name) => name.database == database,
            };
            is_there && who.is_of_caller(&grant.to)
        })
    }

    pub(super) fn is_for(&self, to: &BTreeSet<Grantee>, except: &BTreeSet<Grantee>) -> bool {
        to.iter().any(|grantee| self.is_of_caller(grantee)) && !except.iter().any(|grantee| self.is_of_caller(grantee))
    }

    /// Whether what is for a grantee is for the caller.
    pub fn is_of_caller(&self, grantee: &Grantee) -> bool {
        match grantee {
            Grantee::Public => true,
            Grantee::Role(name) => self.who.identity().roles.contains(name),
            Grantee::Group(name) => self.who.identity().groups.contains(name),
            Grantee::Subject(name) => self.who.subject() == name,
        }
    }
}

/// Whether a grant is about a table, or about all of its database where none is named.
fn covers(on: &GrantTarget, table: Option<&str>) -> bool {
    match (on, table) {
        (GrantTarget::AllDatabases | GrantTarget::Database(_), _) => true,
        (GrantTarget::Table(name), Some(table)) => name.table == table.to_lowercase(),
        (GrantTarget::Table(_), None) => false,
    }
}

/// Whether a policy's table, which is in lower case, is this one.
fn is_table(of_policy: &TableName, name: &TableName) -> bool {
    of_policy.database == name.database.to_lowercase() && of_policy.table == name.table.to_lowercase()
}

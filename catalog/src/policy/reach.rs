//! What a caller could read at some time, kept with what it was given then: rows of a run, an answer that is replayed. Who
//! reads it later must be able to read as much. Where that cannot be told from the policy alone, the answer is no.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::rights::Rights;
use super::{GrantTarget, Privilege};
use crate::model::TableName;
use crate::principal::{DatabaseScope, Principal};

/// What a caller can read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadReach {
    /// The only databases that it sees; all where it is absent.
    databases: Option<BTreeSet<String>>,
    /// Whether no policy binds it.
    is_unbound: bool,
    /// Whether it is an administrator of all databases, who reads the runs of others, policies and the audit log, too.
    is_server_admin: bool,
    /// Whether grants decide in databases that are not named.
    governs_all: bool,
    /// The databases in which grants decide.
    governed: BTreeSet<String>,
    /// What it was granted for reading: columns by target, `None` for all of them.
    grants: Vec<(GrantTarget, Option<BTreeSet<String>>)>,
    /// The conditions under which it sees rows of tables that have row policies.
    rows: Vec<(TableName, BTreeSet<String>)>,
    /// What it reads in the place of columns.
    masks: Vec<(TableName, BTreeMap<String, String>)>,
    /// A digest of whom conditions and masks know it as.
    identity: String,
}

impl ReadReach {
    pub(super) fn of_caller(rights: Rights<'_>) -> Self {
        let (who, document) = (rights.principal(), rights.document());
        let databases = match who.scope() {
            DatabaseScope::All => None,
            DatabaseScope::Only(names) => Some(names.as_ref().clone()),
        };
        let (identity, is_server_admin) = (identity_digest(who), who.is_server_admin());
        if rights.is_unbound() {
            return Self { databases, is_unbound: true, is_server_admin, identity, ..Self::default() };
        }
        let granted = document.grants.iter().filter(|grant| grant.privilege == Privilege::Select);
        let granted = granted.filter(|grant| rights.is_of_caller(&grant.to));
        let mut rows: BTreeMap<&TableName, BTreeSet<String>> = BTreeMap::new();
        for policy in &document.row_policies {
            let conditions = rows.entry(&policy.table).or_default();
            if rights.is_for(&policy.to, &policy.except) {
                conditions.insert(policy.condition.clone());
            }
        }
        let mut masks: BTreeMap<&TableName, BTreeMap<String, String>> = BTreeMap::new();
        for mask in document.masks.iter().filter(|mask| rights.is_for(&mask.to, &mask.except)) {
            let of_table = masks.entry(&mask.table).or_default();
            of_table.entry(mask.column.to_lowercase()).or_insert_with(|| mask.expression.clone());
        }
        Self {
            databases,
            is_unbound: false,
            is_server_admin,
            governs_all: document.governs_all,
            governed: document.governed.clone(),
            grants: granted.map(|grant| (grant.on.clone(), grant.columns.clone())).collect(),
            rows: rows.into_iter().map(|(table, conditions)| (table.clone(), conditions)).collect(),
            masks: masks.into_iter().map(|(table, columns)| (table.clone(), columns)).collect(),
            identity,
        }
    }

    /// Whether nothing limits what it reads of databases.
    pub fn is_everything(&self) -> bool {
        self.is_unbound && self.databases.is_none()
    }

    /// Whether whoever reaches this reaches all that `earlier` does.
    pub fn covers(&self, earlier: &Self) -> bool {
        let sees_databases = match (&self.databases, &earlier.databases) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(now), Some(before)) => before.is_subset(now),
        };
        let sees_server = self.is_server_admin || !earlier.is_server_admin;
        let sees_tables = self.is_unbound || (self.covers_grants(earlier) && self.covers_rows(earlier));
        sees_databases && sees_server && sees_tables
    }

    fn sees(&self, database: &str) -> bool {
        self.databases.as_ref().is_none_or(|names| names.contains(database))
    }

    fn covers_grants(&self, earlier: &Self) -> bool {
        let was_open = |database: &str| !earlier.governs_all && !earlier.governed.contains(database);
        let all_of = |database: &String| GrantTarget::Database(database.clone());
        let mut closed = self.governed.iter().filter(|database| earlier.sees(database) && was_open(database));
        if !closed.all(|database| self.grants_as_much(&all_of(database), None)) {
            return false;
        }
        if self.governs_all && !earlier.governs_all && !self.grants_as_much(&GrantTarget::AllDatabases, None) {
            return false;
        }
        earlier
            .grants
            .iter()
            .all(|(target, columns)| self.is_open(target) || self.grants_as_much(target, columns.as_ref()))
    }

    fn is_open(&self, target: &GrantTarget) -> bool {
        let database = match target {
            GrantTarget::AllDatabases => return !self.governs_all && self.governed.is_empty(),
            GrantTarget::Database(name) => name,
            GrantTarget::Table(table) => &table.database,
        };
        !self.governs_all && !self.governed.contains(database)
    }

    fn grants_as_much(&self, target: &GrantTarget, columns: Option<&BTreeSet<String>>) -> bool {
        self.grants.iter().any(|(known, known_columns)| {
            let has_columns = match (known_columns, columns) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(known), Some(wanted)) => wanted.is_subset(known),
            };
            has_columns && covers_target(known, target)
        })
    }

    /// Whether rows and values are as they were, of databases that `earlier` sees.
    fn covers_rows(&self, earlier: &Self) -> bool {
        let (rows_before, masks_before) = (by_table(&earlier.rows), by_table(&earlier.masks));
        let mut rows = self.rows.iter().filter(|(table, _)| earlier.sees(&table.database)).peekable();
        let mut masks = self.masks.iter().filter(|(table, _)| earlier.sees(&table.database)).peekable();
        if rows.peek().is_none() && masks.peek().is_none() {
            return true;
        }
        self.identity == earlier.identity
            && rows.all(|(table, now)| rows_before.get(table).is_some_and(|before| before.is_subset(now)))
            && masks.all(|(table, now)| masks_before.get(table) == Some(&now))
    }
}

fn by_table<T>(of_tables: &[(TableName, T)]) -> BTreeMap<&TableName, &T> {
    of_tables.iter().map(|(table, of_table)| (table, of_table)).collect()
}

fn covers_target(known: &GrantTarget, target: &GrantTarget) -> bool {
    match (known, target) {
        (GrantTarget::AllDatabases, _) => true,
        (GrantTarget::Database(known), GrantTarget::Database(name)) => known == name,
        (GrantTarget::Database(known), GrantTarget::Table(table)) => *known == table.database,
        (GrantTarget::Table(known), GrantTarget::Table(table)) => known == table,
        (GrantTarget::Database(_) | GrantTarget::Table(_), _) => false,
    }
}

/// Conditions may compare with anything that is known of a caller, so all of it counts.
fn identity_digest(who: &Principal) -> String {
    let known = (who.subject(), who.identity(), who.attributes());
    let text = serde_json::to_string(&known).unwrap_or_default();
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Grant, Grantee, Mask, PolicyDocument, PolicySet, RowPolicy};
    use crate::principal::Role;

    fn reach(who: &Principal, document: &PolicyDocument) -> ReadReach {
        let policies = PolicySet { version: 1, document: document.clone() };
        Rights::new(who, &policies).reach()
    }

    fn ann() -> Principal {
        Principal::new("ann", Role::Read)
    }

    fn table(name: &str) -> TableName {
        TableName { database: "sales".into(), table: name.into() }
    }

    fn granted(on: GrantTarget) -> PolicyDocument {
        let grant = Grant { privilege: Privilege::Select, columns: None, on, to: Grantee::Subject("ann".into()) };
        PolicyDocument { governed: ["sales".to_owned()].into(), grants: vec![grant], ..PolicyDocument::default() }
    }

    #[test]
    fn fewer_databases_cover_no_more() {
        let open = PolicyDocument::default();
        let (all, one) = (reach(&ann(), &open), reach(&ann().with_databases(["sales"]), &open));
        assert!(all.covers(&one) && all.covers(&all) && one.covers(&one));
        assert!(!one.covers(&all));
        assert!(!reach(&Principal::new("boss", Role::Admin).with_databases(["other"]), &open).covers(&one));
    }

    #[test]
    fn an_administrator_reads_what_nobody_else_does() {
        let open = PolicyDocument::default();
        let admin = reach(&Principal::new("ann", Role::Admin), &open);
        let of_some = reach(&Principal::new("ann", Role::Admin).with_databases(["sales"]), &open);
        let reader = reach(&ann(), &open);
        assert!(admin.covers(&reader) && admin.covers(&of_some) && admin.covers(&admin) && reader.covers(&of_some));
        assert!(!reader.covers(&admin) && !of_some.covers(&admin));
        // What was kept before this was told is as it was.
        let kept: ReadReach = serde_json::from_str(r#"{"is_unbound": true}"#).unwrap();
        assert!(reader.covers(&kept));
    }

    #[test]
    fn grants_that_went_are_missed() {
        let open = reach(&ann(), &PolicyDocument::default());
        let whole = reach(&ann(), &granted(GrantTarget::Database("sales".into())));
        let one = reach(&ann(), &granted(GrantTarget::Table(table("orders"))));
        assert!(whole.covers(&open) && whole.covers(&one) && open.covers(&one));
        assert!(!one.covers(&whole) && !one.covers(&open));
        let admin = reach(&Principal::new("boss", Role::Admin), &granted(GrantTarget::Table(table("orders"))));
        assert!(admin.covers(&open) && !one.covers(&admin));
    }

    #[test]
    fn row_policies_and_masks_that_came_hide_what_was_read() {
        let open = reach(&ann(), &PolicyDocument::default());
        let to: BTreeSet<Grantee> = [Grantee::Public].into();
        let policy = |condition: &str| RowPolicy {
            name: condition.into(),
            table: table("orders"),
            condition: condition.into(),
            to: to.clone(),
            except: BTreeSet::new(),
        };
        let policies = |conditions: &[&str]| PolicyDocument {
            row_policies: conditions.iter().map(|condition| policy(condition)).collect(),
            ..PolicyDocument::default()
        };
        let (north, both) = (reach(&ann(), &policies(&["north"])), reach(&ann(), &policies(&["north", "south"])));
        assert!(!north.covers(&open) && open.covers(&north));
        assert!(both.covers(&north) && !north.covers(&both));
        assert!(!reach(&Principal::new("ben", Role::Read), &policies(&["north"])).covers(&north));
        let mask = Mask {
            name: "m".into(),
            table: table("orders"),
            column: "name".into(),
            expression: "'x'".into(),
            to,
            except: BTreeSet::new(),
        };
        let masked = reach(&ann(), &PolicyDocument { masks: vec![mask], ..PolicyDocument::default() });
        assert!(!masked.covers(&open) && masked.covers(&masked) && open.covers(&masked));
    }
}

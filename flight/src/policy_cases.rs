//! What people ask of a policy before they trust it: what it says, what changed, and whether callers get what they should.

use std::collections::{BTreeMap, BTreeSet};

use arrow::util::display::{ArrayFormatter, FormatOptions};
use querent_catalog::policy::{PolicyDocument, PolicySet};
use querent_catalog::{Identity, PolicyVersion, Principal, Role};
use querent_engine::{Engine, Limits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most rows of an answer that a case compares.
const MAX_ROWS: u64 = 1_000;

/// A caller as a test or an explanation names it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CallerDescription {
    pub(crate) subject: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) databases: Option<Vec<String>>,
    pub(crate) roles: BTreeSet<String>,
    pub(crate) groups: BTreeSet<String>,
    pub(crate) attributes: BTreeMap<String, String>,
}

impl CallerDescription {
    /// Returns the caller. Errors: an unknown role.
    pub(crate) fn principal(&self) -> Result<Principal, String> {
        let role: Role = self.role.as_deref().unwrap_or("read").parse()?;
        let identity =
            Identity { roles: self.roles.clone(), groups: self.groups.clone(), attributes: self.attributes.clone() };
        let subject = self.subject.clone().unwrap_or_else(|| "somebody".to_owned());
        let principal = Principal::new(subject, role).with_identity(identity);
        Ok(match &self.databases {
            Some(databases) => principal.with_databases(databases),
            None => principal,
        })
    }
}

/// A statement of a caller, and what is expected of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyCase {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(rename = "as", default)]
    pub(crate) caller: CallerDescription,
    pub(crate) sql: String,
    /// The rows, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<Vec<Vec<Value>>>,
    /// How many rows there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) row_count: Option<usize>,
    /// The code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// How a case went.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PolicyOutcome {
    pub(crate) name: String,
    pub(crate) passed: bool,
    /// What came instead, where it did not pass.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) found: Option<Value>,
}

/// Runs cases, each with its caller's rights and read-only. Errors: a case that expects nothing or names no caller.
pub(crate) async fn run_cases(
    engine: &Engine,
    limits: Limits,
    cases: &[PolicyCase],
) -> Result<Vec<PolicyOutcome>, String> {
    let mut outcomes = Vec::new();
    for case in cases {
        let name = case.name.clone().unwrap_or_else(|| case.sql.clone());
        let expectations = [case.rows.is_some(), case.row_count.is_some(), case.error.is_some()];
        if expectations.iter().filter(|is_there| **is_there).count() != 1 {
            return Err(format!("case `{name}` expects one of `rows`, `row_count` and `error`"));
        }
        let limits = Limits { max_rows: Some(MAX_ROWS), ..limits.clone() };
        // The audit log tells what was asked in somebody's name from what that one asked.
        let session =
            engine.session(case.caller.principal()?, limits).through("policy test").read_only().without_files();
        let answer = async { session.sql(&case.sql).await?.collect().await }.await;
        let (passed, found) = match answer {
            Ok((batches, _)) => {
                let rows = texts(&batches)?;
                let expected = case
                    .rows
                    .as_ref()
                    .map(|rows| rows.iter().map(|row| row.iter().map(text).collect()).collect::<Vec<Vec<String>>>());
                let passed = match (expected, case.row_count) {
                    (Some(expected), _) => expected == rows,
                    (None, Some(count)) => rows.len() == count,
                    (None, None) => false,
                };
                (passed, json!({ "rows": rows }))
            }
            Err(error) => (case.error.as_deref() == Some(error.code()), json!({ "error": error.code() })),
        };
        outcomes.push(PolicyOutcome { name, passed, found: (!passed).then_some(found) });
    }
    Ok(outcomes)
}

/// Returns the policy that holds, as JSON.
pub(crate) fn policy_json(policy: &PolicySet, versions: &[PolicyVersion]) -> Value {
    let versions = versions.iter().map(|version| {
        json!({
            "version": version.version,
            "statement": version.statement,
            "changed_by": version.changed_by,
            "changed_at": version.changed_at,
        })
    });
    json!({ "version": policy.version, "policy": policy.document, "versions": versions.collect::<Vec<_>>() })
}

/// Returns what a change does, as JSON.
pub(crate) fn replaced_json(before: &PolicySet, after: &PolicyDocument, version: i64, dry_run: bool) -> Value {
    let (before_lines, after_lines) = (lines(&before.document), lines(after));
    json!({
        "dry_run": dry_run,
        "version": version,
        "added": after_lines.difference(&before_lines).collect::<Vec<_>>(),
        "removed": before_lines.difference(&after_lines).collect::<Vec<_>>(),
    })
}

fn lines(document: &PolicyDocument) -> BTreeSet<String> {
    let governed = document.governed.iter().map(|name| format!("database {name} is governed"));
    let all = document.governs_all.then(|| "all databases are governed".to_owned());
    let grants = document.grants.iter().map(ToString::to_string);
    let rows = document.row_policies.iter().map(ToString::to_string);
    governed.chain(all).chain(grants).chain(rows).chain(document.masks.iter().map(ToString::to_string)).collect()
}

fn texts(batches: &[arrow::array::RecordBatch]) -> Result<Vec<Vec<String>>, String> {
    let options = FormatOptions::default().with_null("null");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|column| column.value(row).to_string()).collect()),
        );
    }
    Ok(rows)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

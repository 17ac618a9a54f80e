//! Grants, row policies and masks as rows of `system.policies`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use querent_catalog::policy::{GrantTarget, Grantee, PolicyDocument};

use crate::error::Result;

/// One row: the values of the columns, in order.
type PolicyRow = [Option<String>; 8];

pub(super) fn rows(schema: &SchemaRef, document: &PolicyDocument) -> Result<RecordBatch> {
    let governed = document.governed.iter().map(|name| GrantTarget::Database(name.clone()).to_string());
    let governed = document.governs_all.then(|| GrantTarget::AllDatabases.to_string()).into_iter().chain(governed);
    let mut rows: Vec<PolicyRow> = governed.map(|target| row("governed", None, None, target)).collect();
    for grant in &document.grants {
        let mut row = row("grant", None, Some(grant.privilege.as_str()), grant.on.to_string());
        row[4] = grant.columns.as_ref().map(|columns| columns.iter().cloned().collect::<Vec<_>>().join(", "));
        row[6] = Some(grant.to.to_string());
        rows.push(row);
    }
    for policy in &document.row_policies {
        let mut row = row("row policy", Some(&policy.name), None, GrantTarget::Table(policy.table.clone()).to_string());
        row[5] = Some(policy.condition.clone());
        [row[6], row[7]] = audience(&policy.to, &policy.except);
        rows.push(row);
    }
    for mask in &document.masks {
        let mut row = row("mask", Some(&mask.name), None, GrantTarget::Table(mask.table.clone()).to_string());
        row[4] = Some(mask.column.clone());
        row[5] = Some(mask.expression.clone());
        [row[6], row[7]] = audience(&mask.to, &mask.except);
        rows.push(row);
    }
    let column = |index: usize| {
        let values: StringArray = rows.iter().map(|row| row[index].as_deref()).collect();
        Arc::new(values) as ArrayRef
    };
    Ok(RecordBatch::try_new(Arc::clone(schema), (0..8).map(column).collect())?)
}

fn row(kind: &str, name: Option<&str>, privilege: Option<&str>, target: String) -> PolicyRow {
    let text = |text: &str| Some(text.to_owned());
    let everybody = Some(String::new());
    [text(kind), name.and_then(text), privilege.and_then(text), Some(target), None, None, everybody, None]
}

fn audience(to: &BTreeSet<Grantee>, except: &BTreeSet<Grantee>) -> [Option<String>; 2] {
    let list = |grantees: &BTreeSet<Grantee>| grantees.iter().map(Grantee::to_string).collect::<Vec<_>>().join(", ");
    [Some(list(to)), (!except.is_empty()).then(|| list(except))]
}

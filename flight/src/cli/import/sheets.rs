//! Workbooks on the command line: each of their sheets is a table.

use std::collections::BTreeMap;
use std::path::Path;

use querent_catalog::TableName;
use querent_engine::workbook_sheets;

use super::{ImportArgs, ImportOptions, ImportPlan, SourceFormat, is_url, name_parts, table_name};
use crate::cli::error::CliError;

impl ImportPlan {
    /// Returns how the source is read.
    pub(super) fn reader_options(&self, options: &ImportOptions) -> BTreeMap<String, String> {
        let sheet = self.sheet.clone().map(|sheet| ("sheet".to_owned(), sheet));
        options.reader.clone().into_iter().chain(sheet).collect()
    }
}

/// Puts a plan for each sheet in the place of a workbook, unless a sheet is named or there is one only. A folder, a glob or a
/// URL is one table over the first sheets of its files.
pub(super) async fn expanded(plans: Vec<ImportPlan>, args: &ImportArgs) -> Result<Vec<ImportPlan>, CliError> {
    let mut expanded = Vec::new();
    for plan in plans {
        if args.reader.names_sheet() {
            expanded.push(plan);
            continue;
        }
        let tables = tables_of(&plan.source, &plan.table.table, args.format).await?;
        if args.table.is_some() && tables.len() > 1 {
            let sheets: Vec<&str> = tables.iter().filter_map(|(_, sheet)| sheet.as_deref()).collect();
            return Err(CliError::Usage(format!(
                "--table names one table, and {} has the sheets {}; say which with --sheet",
                plan.source,
                sheets.join(", ")
            )));
        }
        for (table, sheet) in tables {
            let table = TableName::new(&plan.table.database, &table);
            expanded.push(ImportPlan { source: plan.source.clone(), table, sheet });
        }
    }
    Ok(expanded)
}

/// Returns the tables that a source becomes: one, or one for each sheet of a workbook of several, with the sheet's name.
pub(in crate::cli) async fn tables_of(
    source: &str,
    table: &str,
    format: Option<SourceFormat>,
) -> Result<Vec<(String, Option<String>)>, CliError> {
    let sheets = match is_workbook(source, format) {
        true => workbook_sheets(Path::new(source)).await?,
        false => Vec::new(),
    };
    if sheets.len() < 2 {
        return Ok(vec![(table.to_owned(), None)]);
    }
    let mut tables: Vec<(String, Option<String>)> = Vec::with_capacity(sheets.len());
    for sheet in sheets {
        let suffix = table_name(&format!("s_{sheet}")).unwrap_or_default();
        let wanted = format!("{table}{}", suffix.trim_start_matches('s'));
        let (mut name, mut copy) = (wanted.clone(), 1);
        while tables.iter().any(|(other, _)| *other == name) {
            name = format!("{wanted}_{copy}");
            copy += 1;
        }
        tables.push((name, Some(sheet)));
    }
    Ok(tables)
}

fn is_workbook(source: &str, format: Option<SourceFormat>) -> bool {
    let named = || SourceFormat::from_ending(name_parts(source).1);
    !is_url(source) && Path::new(source).is_file() && format.or_else(named) == Some(SourceFormat::Xlsx)
}

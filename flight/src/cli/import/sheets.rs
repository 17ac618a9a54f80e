//! Workbooks on the command line: each of their sheets is a table.

use std::collections::BTreeMap;
use std::path::Path;

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
        let sheets = match args.reader.names_sheet() || !is_workbook(&plan.source, args.format) {
            true => Vec::new(),
            false => workbook_sheets(Path::new(&plan.source)).await?,
        };
        if sheets.len() < 2 {
            expanded.push(plan);
            continue;
        }
        if args.table.is_some() {
            return Err(CliError::Usage(format!(
                "--table names one table, and {} has the sheets {}; say which with --sheet",
                plan.source,
                sheets.join(", ")
            )));
        }
        for sheet in sheets {
            let mut own = plan.clone();
            if let Some(suffix) = table_name(&format!("s_{sheet}")) {
                own.table.table = format!("{}{}", plan.table.table, suffix.trim_start_matches('s'));
            }
            let mut copy = 1;
            while expanded.iter().any(|other: &ImportPlan| other.table == own.table) {
                own.table.table = format!("{}_{copy}", own.table.table);
                copy += 1;
            }
            expanded.push(ImportPlan { sheet: Some(sheet), ..own });
        }
    }
    Ok(expanded)
}

fn is_workbook(source: &str, format: Option<SourceFormat>) -> bool {
    let named = || SourceFormat::from_ending(name_parts(source).1);
    !is_url(source) && Path::new(source).is_file() && format.or_else(named) == Some(SourceFormat::Xlsx)
}

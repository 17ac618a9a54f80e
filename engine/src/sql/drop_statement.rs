//! DROP of databases, tables and views. Several tables of one database go in one change of the catalog, or none of them.

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{ObjectName, ObjectType};
use querent_catalog::TableKind;

use super::statement::{StatementPlanner, database_name};
use super::write_statement::WriteStatement;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

impl StatementPlanner<'_> {
    /// Plans a DROP.
    pub(super) fn drop(
        &self,
        object_type: &ObjectType,
        names: &[ObjectName],
        if_missing_ok: bool,
        cascade: bool,
    ) -> Result<LogicalPlan> {
        let kinds: &'static [TableKind] = match object_type {
            ObjectType::Schema | ObjectType::Database => {
                let [name] = names else { return Err(several("databases")) };
                let name = database_name(name)?;
                return Ok(WriteStatement::DropDatabase { name, if_missing_ok, cascade }.into_plan());
            }
            ObjectType::View => &[TableKind::View],
            _ => &[TableKind::Managed, TableKind::External],
        };
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let reference = object_name_to_table_reference(name.clone(), false)?;
            if let (ObjectType::Table, Some(name)) = (object_type, self.temporary_name(&reference)) {
                return match names.len() {
                    1 => Ok(WriteStatement::DropTemporary { name }.into_plan()),
                    _ => Err(several("tables, a temporary one among them,")),
                };
            }
            found.push(self.full_name(&reference)?);
        }
        let is_of_one = found.windows(2).all(|pair| same_name(&pair[0].database, &pair[1].database));
        if !is_of_one {
            return Err(several("tables of several databases"));
        }
        Ok(WriteStatement::DropTables { names: found, kinds, if_missing_ok }.into_plan())
    }
}

fn several(objects: &str) -> EngineError {
    EngineError::Unsupported { what: format!("dropping {objects} at once"), hint: "drop them one by one".into() }
}

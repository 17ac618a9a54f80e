//! `CREATE INDEX ... USING vector` as it is carried out: the files are read, the index is built, and then it is there.

use querent_catalog::{CatalogError, TableName, TableSource, VectorIndexSpec};

use super::Session;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;
use crate::limits::Interrupt;
use crate::sql::write_statement::VectorIndexRequest;
use crate::vector_indexing::{add_files, vector_dimension};

impl Session {
    /// Creates an index. Cut off, it leaves none. Errors: `table_not_found`, `column_not_found`, `already_exists`,
    /// `unsupported`, `invalid_object`.
    pub(super) async fn create_vector_index(&self, request: VectorIndexRequest, interrupt: &Interrupt) -> Result<()> {
        let VectorIndexRequest { name, table, column, metric, probes, if_not_exists } = request;
        let catalog = self.engine().catalog();
        let who = self.principal();
        let found = catalog.tables().resolve(who, std::slice::from_ref(&table)).await?.pop().flatten();
        let Some(resolved) = found else { return Err(catalog.tables().not_found(who, &table).await.into()) };
        let refused =
            |what: &str, hint: &str| EngineError::Unsupported { what: what.to_owned(), hint: hint.to_owned() };
        match &resolved.source {
            TableSource::Managed(_) => {}
            TableSource::External(_) => {
                return Err(refused(
                    "an index of an external table",
                    "import it, or write CREATE TABLE new AS SELECT * FROM it, and index that",
                ));
            }
            TableSource::View { .. } => {
                return Err(refused("an index of a view", "index the table that it reads"));
            }
        }
        let position = resolved.info.columns.iter().position(|known| same_name(&known.name, &column));
        let Some((position, known)) = position.zip(position.and_then(|at| resolved.info.columns.get(at))) else {
            return Err(column_not_found(&resolved.info.name, &column));
        };
        let Some(dimension) = vector_dimension(&known.data_type) else {
            let what = format!(
                "a vector index of `{}`, which is {}",
                known.name,
                crate::type_names::sql_name(&known.data_type)
            );
            return Err(refused(&what, "declare the column with the dimension of its vectors, as in FLOAT[384]"));
        };
        if if_not_exists {
            let listed = catalog.vector_indexes().list(who).await?;
            let database = &resolved.info.name.database;
            if listed.iter().any(|index| same_name(&index.name, &name) && same_name(&index.table.database, database)) {
                return Ok(());
            }
        }
        let spec = VectorIndexSpec { name, table_id: resolved.info.id, column_id: known.id, metric, dimension, probes };
        let mut writer = catalog.vector_indexes().create(who, spec).await?;
        add_files(self.engine(), &mut writer, &resolved, position, self.limits(), || Ok(interrupt.check()?)).await?;
        self.engine().finish(async move { Ok(writer.commit().await?) }).await?;
        Ok(())
    }
}

fn column_not_found(table: &TableName, column: &str) -> EngineError {
    CatalogError::ColumnNotFound { table: table.table.clone(), column: column.to_owned(), nearest: None }.into()
}

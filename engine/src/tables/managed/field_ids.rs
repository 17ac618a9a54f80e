//! Matches a managed table's columns with a data file's by Parquet field id, so that a renamed column is found in files
//! written before, and a column added later reads as null there. A nested column whose fields differ from the table's is
//! refused: it would be read wrong. UUIDs, which DuckDB writes as 16 bytes, are read as text.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result as DfResult, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::tables::external::{is_uuid_as_text, uuids_as_text};

/// Makes an adapter for each file, by field id where the file has any and by name where it has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FieldIdAdapterFactory {
    /// The table's name, for messages.
    pub table: String,
    /// Field ids of the table's columns by name.
    pub ids: BTreeMap<String, i64>,
    /// What columns are, by their names, in files that are older than they.
    #[serde(with = "values_by_name")]
    pub initial: BTreeMap<String, ScalarValue>,
}

/// Values on their way to another server, as protobuf has them.
mod values_by_name {
    use std::collections::BTreeMap;

    use datafusion::common::ScalarValue;
    use datafusion_proto::protobuf;
    use prost::Message;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    pub(super) fn serialize<S: Serializer>(
        values: &BTreeMap<String, ScalarValue>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let encoded = values.iter().map(|(name, value)| {
            let value = protobuf::ScalarValue::try_from(value).map_err(ser::Error::custom)?;
            Ok((name, value.encode_to_vec()))
        });
        encoded.collect::<Result<BTreeMap<_, _>, S::Error>>()?.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, ScalarValue>, D::Error> {
        let encoded = BTreeMap::<String, Vec<u8>>::deserialize(deserializer)?;
        let values = encoded.into_iter().map(|(name, bytes)| {
            let value = protobuf::ScalarValue::decode(bytes.as_slice()).map_err(de::Error::custom)?;
            Ok((name, ScalarValue::try_from(&value).map_err(de::Error::custom)?))
        });
        values.collect()
    }
}

impl PhysicalExprAdapterFactory for FieldIdAdapterFactory {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> DfResult<Arc<dyn PhysicalExprAdapter>> {
        let renamed = self.in_table_terms(&logical_file_schema, &physical_file_schema)?;
        let initial = self.initial.iter().filter(|(name, _)| renamed.field_with_name(name).is_err());
        let initial = initial.map(|(name, value)| (name.clone(), value.clone())).collect();
        let inner = DefaultPhysicalExprAdapterFactory.create(logical_file_schema, Arc::clone(&renamed))?;
        Ok(Arc::new(FieldIdAdapter { inner, as_read: renamed, physical_file_schema, initial }))
    }
}

impl FieldIdAdapterFactory {
    /// Returns the file's schema with the table's names, nullability and metadata, so that equal types need no cast, and with
    /// text where the file has UUIDs.
    fn in_table_terms(&self, logical: &Schema, physical: &Schema) -> DfResult<SchemaRef> {
        let file_ids: Vec<Option<i64>> = physical.fields().iter().map(|field| field_id(field)).collect();
        let has_ids = file_ids.iter().any(Option::is_some);
        // Tables may have thousands of columns: each is found at once.
        let (mut by_id, mut by_name) = (HashMap::new(), HashMap::new());
        for field in logical.fields() {
            match self.ids.get(field.name()) {
                Some(id) if has_ids => by_id.insert(*id, field),
                _ => by_name.insert(field.name(), field),
            };
        }
        let mut fields = Vec::with_capacity(physical.fields().len());
        for (index, (field, id)) in physical.fields().iter().zip(file_ids).enumerate() {
            let table_field = match id {
                Some(id) => by_id.get(&id).copied(),
                None if has_ids => None,
                None => by_name.get(field.name()).copied(),
            };
            fields.push(match table_field {
                Some(table_field) => {
                    self.check_nested(table_field, field)?;
                    match is_uuid_as_text(field.data_type(), table_field.data_type()) {
                        true => table_field.as_ref().clone(),
                        false => table_field.as_ref().clone().with_data_type(field.data_type().clone()),
                    }
                }
                // Dropped from the table since; a name that no column can have keeps positions as they are.
                None => Field::new(format!("\0{index}"), field.data_type().clone(), true),
            });
        }
        Ok(Arc::new(Schema::new(fields)))
    }

    fn check_nested(&self, table: &Field, file: &Field) -> DfResult<()> {
        if same_shape(table.data_type(), file.data_type()) {
            return Ok(());
        }
        Err(DataFusionError::from(EngineError::BadData {
            location: format!("table `{}`, column `{}`", self.table, table.name()),
            detail: format!(
                "a data file holds {}, the table {}; changed nested columns are not supported yet",
                file.data_type(),
                table.data_type()
            ),
        }))
    }
}

#[derive(Debug)]
struct FieldIdAdapter {
    inner: Arc<dyn PhysicalExprAdapter>,
    /// The file's columns as they are read.
    as_read: SchemaRef,
    physical_file_schema: SchemaRef,
    /// The values of columns that the file lacks.
    initial: HashMap<String, ScalarValue>,
}

impl PhysicalExprAdapter for FieldIdAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> DfResult<Arc<dyn PhysicalExpr>> {
        let expr = match self.initial.is_empty() {
            true => expr,
            false => replace_columns_with_literals(expr, &self.initial)?,
        };
        // The inner adapter finds positions by the table's names; readers and row group statistics go by the file's.
        let expr = self
            .inner
            .rewrite(expr)?
            .transform(|node| {
                let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
                let Some(field) = self.physical_file_schema.fields().get(column.index()) else {
                    return Err(DataFusionError::Internal(format!("no column {} in the file", column.index())));
                };
                if field.name() == column.name() {
                    return Ok(Transformed::no(node));
                }
                Ok(Transformed::yes(Arc::new(Column::new(field.name(), column.index())) as Arc<dyn PhysicalExpr>))
            })
            .data()?;
        uuids_as_text(expr, &self.physical_file_schema, &self.as_read)
    }
}

fn field_id(field: &Field) -> Option<i64> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}

/// Returns whether nested fields agree in name, order and nesting; the types of leaves are cast.
fn same_shape(table: &DataType, file: &DataType) -> bool {
    let same_fields = |left: &Fields, right: &Fields| {
        left.len() == right.len()
            && left
                .iter()
                .zip(right)
                .all(|(left, right)| left.name() == right.name() && same_shape(left.data_type(), right.data_type()))
    };
    match (table, file) {
        (DataType::Struct(left), DataType::Struct(right)) => same_fields(left, right),
        (DataType::Map(left, _), DataType::Map(right, _)) => match (left.data_type(), right.data_type()) {
            (DataType::Struct(left), DataType::Struct(right)) => {
                left.len() == right.len()
                    && left.iter().zip(right).all(|(left, right)| same_shape(left.data_type(), right.data_type()))
            }
            _ => false,
        },
        (
            DataType::List(left) | DataType::LargeList(left) | DataType::FixedSizeList(left, _),
            DataType::List(right) | DataType::LargeList(right) | DataType::FixedSizeList(right, _),
        ) => same_shape(left.data_type(), right.data_type()),
        (table, file) => table.is_nested() == file.is_nested(),
    }
}

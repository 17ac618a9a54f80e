//! The type in which structures of different fields meet, in the rows of UNION and the results of CASE: all fields by
//! their names, as in DuckDB, null where one has no such field. DataFusion takes the fields of the first, and the others are lost.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;

use super::number_types::meeting_types::meeting_type;
use crate::identifiers::same_name;

/// Returns the structure of all fields; `None` where values are none, all have the same fields of types that meet as DataFusion
/// has it, or two have none in common.
pub(super) fn common_struct(types: &[DataType]) -> Option<DataType> {
    let mut structs = types.iter().filter(|found| !found.is_null()).map(|found| match found {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    });
    let first = structs.next()??;
    let mut all: Vec<FieldRef> = first.iter().map(|field| nullable(field, field.data_type().clone())).collect();
    let mut differ = false;
    for fields in structs {
        let fields = fields?;
        let has = |name: &str| fields.iter().any(|field| same_name(field.name(), name));
        if !all.iter().any(|known| has(known.name())) {
            return None;
        }
        differ |= !all.iter().all(|known| has(known.name()));
        for field in fields {
            match all.iter_mut().find(|known| same_name(known.name(), field.name())) {
                Some(known) => {
                    let (own, other) = (known.data_type(), field.data_type());
                    let inner = meeting_type(&[own.clone(), other.clone()]);
                    differ |= inner.is_some();
                    *known = nullable(known, inner.or_else(|| type_union_coercion(own, other))?);
                }
                None => {
                    all.push(nullable(field, field.data_type().clone()));
                    differ = true;
                }
            }
        }
    }
    differ.then(|| DataType::Struct(all.into()))
}

fn nullable(field: &FieldRef, data_type: DataType) -> FieldRef {
    Arc::new(Field::new(field.name(), data_type, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(fields: &[(&str, DataType)]) -> DataType {
        DataType::Struct(fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true)).collect())
    }

    #[test]
    fn structures_meet_in_all_of_their_fields() {
        let (int, text) = (DataType::Int64, DataType::Utf8);
        let ab = structure(&[("a", int.clone()), ("b", int.clone())]);
        let ac = structure(&[("a", int.clone()), ("c", text.clone())]);
        let abc = structure(&[("a", int.clone()), ("b", int.clone()), ("c", text.clone())]);
        assert_eq!(common_struct(&[ab.clone(), ac.clone()]), Some(abc.clone()));
        assert_eq!(common_struct(&[ab.clone(), DataType::Null, ac.clone()]), Some(abc));
        let doubles = structure(&[("a", DataType::Float64)]);
        assert_eq!(common_struct(&[structure(&[("a", DataType::Decimal128(3, 1))]), doubles.clone()]), Some(doubles));
        // DataFusion's own are right.
        assert_eq!(common_struct(&[ab.clone(), ab.clone()]), None);
        assert_eq!(common_struct(&[ab.clone(), structure(&[("c", int.clone())])]), None);
        assert_eq!(common_struct(&[ab.clone(), int.clone()]), None);
        let (outer, other) = (structure(&[("s", ab)]), structure(&[("s", ac)]));
        let merged = common_struct(&[outer, other]);
        assert!(matches!(merged, Some(DataType::Struct(fields)) if fields.len() == 1));
    }
}

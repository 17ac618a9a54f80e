//! The types that functions take as arguments, by their signatures: the one type of a place, or else the likeliest of its class,
//! as a double for numbers of any kind and a timestamp for dates and times.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::types::NativeType;
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF, TypeSignature, TypeSignatureClass};

/// Returns the type that a function of so many arguments takes in one place; `None` where it takes several.
pub(super) fn argument_type(signature: &TypeSignature, count: usize, at: usize) -> Option<DataType> {
    match signature {
        TypeSignature::String(length) if *length == count => Some(DataType::Utf8),
        TypeSignature::Exact(types) if types.len() == count => types.get(at).cloned(),
        TypeSignature::Uniform(length, types) if *length == count => of_one_kind(types),
        TypeSignature::Variadic(types) => of_one_kind(types),
        TypeSignature::Coercible(coercions) if coercions.len() == count => match coercions.get(at)?.desired_type() {
            TypeSignatureClass::Native(native) => match native.native() {
                NativeType::Boolean => Some(DataType::Boolean),
                NativeType::Int64 => Some(DataType::Int64),
                NativeType::Float64 => Some(DataType::Float64),
                NativeType::String => Some(DataType::Utf8),
                _ => None,
            },
            TypeSignatureClass::Integer => Some(DataType::Int64),
            _ => None,
        },
        TypeSignature::OneOf(signatures) => {
            let fitting = signatures.iter().filter(|signature| takes(signature, count));
            let types = fitting.map(|signature| argument_type(signature, count, at)).collect::<Option<Vec<_>>>()?;
            of_one_kind(&types)
        }
        _ => None,
    }
}

/// Returns the type that stands for all of them: texts and whole numbers of whatever size are of one kind.
fn of_one_kind(types: &[DataType]) -> Option<DataType> {
    let known: Vec<&DataType> = types.iter().filter(|data_type| **data_type != DataType::Null).collect();
    let first = *known.first()?;
    if known.iter().all(|data_type| data_type.is_string()) {
        return Some(DataType::Utf8);
    }
    if known.iter().all(|data_type| data_type.is_integer()) {
        return Some(DataType::Int64);
    }
    known.iter().all(|data_type| *data_type == first).then(|| first.clone())
}

/// Whether a function may have so many arguments, as far as its signature says.
fn takes(signature: &TypeSignature, count: usize) -> bool {
    match signature {
        TypeSignature::String(length) | TypeSignature::Uniform(length, _) => *length == count,
        TypeSignature::Exact(types) => types.len() == count,
        TypeSignature::Coercible(coercions) => coercions.len() == count,
        TypeSignature::Numeric(length) | TypeSignature::Any(length) | TypeSignature::Comparable(length) => {
            *length == count
        }
        _ => true,
    }
}

/// Returns the likeliest type that a function of so many arguments takes in one place; `None` where it takes values of several
/// classes.
pub(super) fn likely_argument_type(signature: &TypeSignature, count: usize, at: usize) -> Option<DataType> {
    of_one_class(&taken_types(signature, count, at)?)
}

/// Returns the likeliest types of the arguments of a function that decides by those of all of them; none where it says none.
pub(super) fn likely_types_beside(function: &ScalarUDF, args: &[Expr], schema: &DFSchema) -> Vec<Option<DataType>> {
    let given: Option<Vec<DataType>> = args.iter().map(|argument| argument.get_type(schema).ok()).collect();
    let Some(taken) = given.and_then(|given| function.coerce_types(&given).ok()) else { return Vec::new() };
    taken.into_iter().map(|data_type| of_one_class(&[data_type])).collect()
}

/// Returns a type for each class that a function takes in a place; `None` where it takes any.
fn taken_types(signature: &TypeSignature, count: usize, at: usize) -> Option<Vec<DataType>> {
    match signature {
        TypeSignature::String(length) if *length == count => Some(vec![DataType::Utf8]),
        TypeSignature::Numeric(length) if *length == count => Some(vec![DataType::Float64]),
        TypeSignature::Exact(types) if types.len() == count => Some(vec![types.get(at)?.clone()]),
        TypeSignature::Uniform(length, types) if *length == count => Some(types.clone()),
        TypeSignature::Variadic(types) => Some(types.clone()),
        TypeSignature::Coercible(coercions) if coercions.len() == count => {
            Some(vec![type_of_class(coercions.get(at)?.desired_type())?])
        }
        TypeSignature::OneOf(signatures) => {
            let fitting = signatures.iter().filter(|signature| takes(signature, count));
            let types = fitting.map(|signature| taken_types(signature, count, at)).collect::<Option<Vec<_>>>()?;
            Some(types.concat())
        }
        _ => None,
    }
}

fn type_of_class(class: &TypeSignatureClass) -> Option<DataType> {
    match class {
        TypeSignatureClass::Native(native) => match native.native() {
            NativeType::Boolean => Some(DataType::Boolean),
            NativeType::Int8
            | NativeType::Int16
            | NativeType::Int32
            | NativeType::Int64
            | NativeType::UInt8
            | NativeType::UInt16
            | NativeType::UInt32
            | NativeType::UInt64 => Some(DataType::Int64),
            NativeType::Float16 | NativeType::Float32 | NativeType::Float64 | NativeType::Decimal(_, _) => {
                Some(DataType::Float64)
            }
            NativeType::String => Some(DataType::Utf8),
            NativeType::Binary | NativeType::FixedSizeBinary(_) => Some(DataType::Binary),
            NativeType::Date => Some(DataType::Date32),
            NativeType::Timestamp(_, _) => Some(DataType::Timestamp(TimeUnit::Microsecond, None)),
            NativeType::Time(_) => Some(DataType::Time64(TimeUnit::Microsecond)),
            NativeType::Duration(_) => Some(DataType::Duration(TimeUnit::Microsecond)),
            NativeType::Interval(_) => Some(DataType::Interval(IntervalUnit::MonthDayNano)),
            _ => None,
        },
        TypeSignatureClass::Integer => Some(DataType::Int64),
        TypeSignatureClass::Float | TypeSignatureClass::Decimal | TypeSignatureClass::Numeric => {
            Some(DataType::Float64)
        }
        TypeSignatureClass::Timestamp => Some(DataType::Timestamp(TimeUnit::Microsecond, None)),
        TypeSignatureClass::Time => Some(DataType::Time64(TimeUnit::Microsecond)),
        TypeSignatureClass::Interval => Some(DataType::Interval(IntervalUnit::MonthDayNano)),
        TypeSignatureClass::Duration => Some(DataType::Duration(TimeUnit::Microsecond)),
        TypeSignatureClass::Binary => Some(DataType::Binary),
        TypeSignatureClass::Any => None,
    }
}

/// Returns the likeliest of types that are of one class. Bytes alone say nothing: most functions of bytes take texts for them.
fn of_one_class(types: &[DataType]) -> Option<DataType> {
    let known: Vec<&DataType> = types.iter().filter(|data_type| **data_type != DataType::Null).collect();
    let first = *known.first()?;
    let all = |is_of_class: fn(&DataType) -> bool| known.iter().all(|data_type| is_of_class(data_type));
    if known.iter().any(|data_type| data_type.is_string()) {
        return all(|data_type| data_type.is_string() || data_type.is_binary()).then_some(DataType::Utf8);
    }
    if all(DataType::is_integer) {
        return Some(DataType::Int64);
    }
    if all(DataType::is_numeric) {
        return Some(DataType::Float64);
    }
    if all(|data_type| matches!(data_type, DataType::Interval(_) | DataType::Duration(_))) {
        return Some(DataType::Interval(IntervalUnit::MonthDayNano));
    }
    if all(DataType::is_temporal) {
        let zone = known.iter().find_map(|data_type| match data_type {
            DataType::Timestamp(_, zone) => Some(zone.clone().filter(|_| known.len() == 1)),
            _ => None,
        });
        if let Some(zone) = zone {
            return Some(DataType::Timestamp(TimeUnit::Microsecond, zone));
        }
    }
    (!first.is_binary() && known.iter().all(|data_type| *data_type == first)).then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_whole_numbers_are_of_one_kind() {
        let exact = |types: [DataType; 2]| TypeSignature::Exact(types.to_vec());
        let joined = TypeSignature::OneOf(vec![
            exact([DataType::LargeUtf8, DataType::Utf8]),
            exact([DataType::Utf8, DataType::Null]),
            exact([DataType::Utf8, DataType::Utf8View]),
        ]);
        assert_eq!(argument_type(&joined, 2, 1), Some(DataType::Utf8));
        let texts = TypeSignature::Variadic(vec![DataType::Utf8View, DataType::LargeUtf8]);
        assert_eq!(argument_type(&texts, 3, 2), Some(DataType::Utf8));
        let whole = TypeSignature::Uniform(1, vec![DataType::Int32, DataType::UInt64]);
        assert_eq!(argument_type(&whole, 1, 0), Some(DataType::Int64));
        let numbers = TypeSignature::Uniform(1, vec![DataType::Float64, DataType::Int64]);
        assert_eq!(argument_type(&numbers, 1, 0), None);
        assert_eq!(likely_argument_type(&numbers, 1, 0), Some(DataType::Float64));
    }

    #[test]
    fn a_class_has_a_likeliest_type() {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        let time = DataType::Time64(TimeUnit::Nanosecond);
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
        for (types, likeliest) in [
            (vec![DataType::Utf8View, DataType::BinaryView], Some(DataType::Utf8)),
            (vec![DataType::Int32, DataType::Decimal128(38, 0)], Some(DataType::Float64)),
            (vec![nanoseconds, time, interval.clone(), DataType::Date32], Some(timestamp)),
            (vec![DataType::Duration(TimeUnit::Second), interval.clone()], Some(interval)),
            (vec![DataType::Date32, DataType::Null], Some(DataType::Date32)),
            (vec![DataType::Binary], None),
            (vec![DataType::Utf8, DataType::Int64], None),
            (vec![DataType::Null], None),
        ] {
            assert_eq!(of_one_class(&types), likeliest, "{types:?}");
        }
    }
}

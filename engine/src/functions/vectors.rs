//! Distances of vectors, with pgvector's and DuckDB's names. A vector is a list of numbers; one of a declared dimension
//! (`FLOAT[384]`) is not copied. Where one side has single precision the other is read in it.

use std::hash::{Hash, Hasher};
use std::ops::{Add, AddAssign, Mul, Sub};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Float32Array, Float64Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use lance_linalg::distance::{dot_f32, l2_f32};

use super::definition::{invalid, unfit};
use crate::type_names::sql_name;

/// Sums that run side by side, so that the compiler may use wide registers.
const LANES: usize = 16;

/// What is measured of two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Measure {
    /// The length of their difference.
    Euclidean,
    /// The sum of the differences of their numbers.
    Manhattan,
    /// The sum of the products of their numbers.
    InnerProduct,
    /// That with its sign turned, so that near vectors come first.
    NegativeInnerProduct,
    /// The cosine of their angle; null where one has no length.
    CosineSimilarity,
    /// One minus that.
    CosineDistance,
}

/// The functions: a name, what it measures, and other names.
const FUNCTIONS: [(&str, Measure, &[&str]); 6] = [
    ("array_distance", Measure::Euclidean, &["l2_distance", "list_distance"]),
    ("l1_distance", Measure::Manhattan, &[]),
    (
        "inner_product",
        Measure::InnerProduct,
        &["array_inner_product", "array_dot_product", "list_inner_product", "list_dot_product", "dot_product"],
    ),
    (
        "negative_inner_product",
        Measure::NegativeInnerProduct,
        &[
            "array_negative_inner_product",
            "array_negative_dot_product",
            "list_negative_inner_product",
            "list_negative_dot_product",
        ],
    ),
    ("cosine_similarity", Measure::CosineSimilarity, &["array_cosine_similarity", "list_cosine_similarity"]),
    ("cosine_distance", Measure::CosineDistance, &["array_cosine_distance", "list_cosine_distance"]),
];

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let function = |(name, measure, aliases): (&'static str, Measure, &[&str])| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(VectorFunction { name, measure, aliases, signature }))
    };
    FUNCTIONS.into_iter().map(function).collect()
}

/// Returns whether the function of a name measures vectors, which are hundreds of operations a row.
pub(crate) fn measures_vectors(function: &str) -> bool {
    FUNCTIONS.iter().any(|(name, ..)| *name == function)
}

#[derive(Debug)]
struct VectorFunction {
    name: &'static str,
    measure: Measure,
    aliases: Vec<String>,
    signature: Signature,
}

// A measure has one name.
impl PartialEq for VectorFunction {
    fn eq(&self, other: &Self) -> bool {
        self.measure == other.measure
    }
}

impl Eq for VectorFunction {}

impl Hash for VectorFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.measure.hash(state);
    }
}

impl ScalarUDFImpl for VectorFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = types else {
            return Err(unfit(format!("{} takes 2 arguments, not {}", self.name, types.len())));
        };
        let elements = [self.element(left)?, self.element(right)?];
        let is_single =
            elements.iter().flatten().any(|element| matches!(element, DataType::Float32 | DataType::Float16));
        let element = if is_single { DataType::Float32 } else { DataType::Float64 };
        if let (DataType::FixedSizeList(_, left), DataType::FixedSizeList(_, right)) = (left, right)
            && left != right
        {
            return Err(unfit(format!("{}: one vector has {left} dimensions, the other {right}", self.name)));
        }
        Ok([left, right].map(|side| vector_of(side, element.clone())).into())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let first = types.first().map(|first| self.element(first)).transpose()?.flatten();
        Ok(first.unwrap_or(DataType::Float64))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let wanted = self.coerce_types(&types)?;
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let mut sides = Vec::with_capacity(wanted.len());
        for (arg, wanted) in args.args.iter().zip(&wanted) {
            // A constant stays one row.
            let (array, is_constant) = match arg {
                ColumnarValue::Array(array) => (Arc::clone(array), false),
                ColumnarValue::Scalar(scalar) => (scalar.to_array_of_size(1)?, true),
            };
            let array = if array.data_type() == wanted { array } else { cast(&array, wanted)? };
            sides.push((array, is_constant));
        }
        let [left, right] = sides.as_slice() else { return Err(unfit(format!("{} takes 2 arguments", self.name))) };
        let result: ArrayRef = if self.return_type(&wanted)? == DataType::Float32 {
            let [left, right] = [left, right].map(Vectors::<Float32Type>::new);
            let measured = self.measure_all(&left, &right, rows)?;
            Arc::new(measured.into_iter().map(|value| value.map(|value| value as f32)).collect::<Float32Array>())
        } else {
            let [left, right] = [left, right].map(Vectors::<Float64Type>::new);
            Arc::new(self.measure_all(&left, &right, rows)?.into_iter().collect::<Float64Array>())
        };
        match is_scalar {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }
}

impl VectorFunction {
    /// Returns the type of a vector's numbers; `None` for null, and for a list of nothing.
    fn element(&self, vector: &DataType) -> Result<Option<DataType>> {
        let refused = || Err(unfit(format!("{} takes vectors, lists of numbers, not {}", self.name, sql_name(vector))));
        match vector {
            DataType::Null => Ok(None),
            DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                match field.data_type() {
                    DataType::Null => Ok(None),
                    element if element.is_numeric() => Ok(Some(element.clone())),
                    _ => refused(),
                }
            }
            _ => refused(),
        }
    }

    fn measure_all<T: ArrowPrimitiveType>(
        &self,
        left: &Vectors<'_, T>,
        right: &Vectors<'_, T>,
        rows: usize,
    ) -> Result<Vec<Option<f64>>>
    where
        T::Native: Number,
    {
        let mut measured = Vec::with_capacity(rows);
        let [left_square, right_square] = [left, right].map(|side| self.constant_square(side));
        for row in 0..rows {
            let (Some(left), Some(right)) = (left.vector(row), right.vector(row)) else {
                measured.push(None);
                continue;
            };
            if left.len() != right.len() {
                let (left, right) = (left.len(), right.len());
                return Err(invalid(format!("{}: one vector has {left} dimensions, the other {right}", self.name)));
            }
            let squares = || {
                [
                    left_square.unwrap_or_else(|| T::Native::product(left, left)),
                    right_square.unwrap_or_else(|| T::Native::product(right, right)),
                ]
            };
            measured.push(self.measure.measured(left, right, squares));
        }
        Ok(measured)
    }

    /// Returns the square of the length of a side that is one vector for all rows, where the measure needs it.
    fn constant_square<T: ArrowPrimitiveType>(&self, side: &Vectors<'_, T>) -> Option<f64>
    where
        T::Native: Number,
    {
        let is_needed = matches!(self.measure, Measure::CosineSimilarity | Measure::CosineDistance);
        let vector = (is_needed && side.is_constant && !side.array.is_empty()).then(|| side.vector(0)).flatten()?;
        Some(T::Native::product(vector, vector))
    }
}

/// Returns the list type of a side with another type of numbers.
fn vector_of(side: &DataType, element: DataType) -> DataType {
    let field = Arc::new(Field::new_list_field(element, true));
    match side {
        DataType::FixedSizeList(_, dimension) => DataType::FixedSizeList(field, *dimension),
        DataType::LargeList(_) => DataType::LargeList(field),
        _ => DataType::List(field),
    }
}

/// One side's vectors: a row each, or one for all rows.
struct Vectors<'a, T: ArrowPrimitiveType> {
    array: &'a ArrayRef,
    numbers: &'a PrimitiveArray<T>,
    is_constant: bool,
}

impl<'a, T: ArrowPrimitiveType> Vectors<'a, T> {
    fn new((array, is_constant): &'a (ArrayRef, bool)) -> Self {
        let numbers = match array.data_type() {
            DataType::FixedSizeList(..) => array.as_fixed_size_list().values(),
            DataType::LargeList(_) => array.as_list::<i64>().values(),
            _ => array.as_list::<i32>().values(),
        };
        Self { array, numbers: numbers.as_primitive(), is_constant: *is_constant }
    }

    /// Returns the numbers of a row's vector; `None` where it, or one of them, is null.
    fn vector(&self, row: usize) -> Option<&'a [T::Native]> {
        let row = if self.is_constant { 0 } else { row };
        if self.array.is_null(row) {
            return None;
        }
        let within = match self.array.data_type() {
            DataType::FixedSizeList(_, dimension) => {
                let start = self.array.as_fixed_size_list().value_offset(row) as usize;
                start..start + *dimension as usize
            }
            DataType::LargeList(_) => {
                let offsets = self.array.as_list::<i64>().value_offsets();
                offsets[row] as usize..offsets[row + 1] as usize
            }
            _ => {
                let offsets = self.array.as_list::<i32>().value_offsets();
                offsets[row] as usize..offsets[row + 1] as usize
            }
        };
        if self.numbers.null_count() > 0 && within.clone().any(|at| self.numbers.is_null(at)) {
            return None;
        }
        Some(&self.numbers.values()[within])
    }
}

/// Single or double precision.
trait Number:
    Copy + Default + Into<f64> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + AddAssign
{
    fn magnitude(self) -> Self;

    /// Returns the sum of the products of the numbers of two vectors of one length.
    fn product(left: &[Self], right: &[Self]) -> f64 {
        sum_of(left, right, |left, right| left * right)
    }

    /// Returns the sum of the squares of their differences.
    fn squared_distance(left: &[Self], right: &[Self]) -> f64 {
        sum_of(left, right, |left, right| {
            let difference = left - right;
            difference * difference
        })
    }
}

/// By Lance's kernels, which take the widest registers that the processor has.
impl Number for f32 {
    fn magnitude(self) -> Self {
        self.abs()
    }

    fn product(left: &[Self], right: &[Self]) -> f64 {
        dot_f32(left, right).into()
    }

    fn squared_distance(left: &[Self], right: &[Self]) -> f64 {
        l2_f32(left, right).into()
    }
}

impl Number for f64 {
    fn magnitude(self) -> Self {
        self.abs()
    }
}

impl Measure {
    /// Measures two vectors of one length; `squares` returns the squares of their lengths.
    fn measured<N: Number>(self, left: &[N], right: &[N], squares: impl Fn() -> [f64; 2]) -> Option<f64> {
        let cosine = || {
            let [left_square, right_square] = squares();
            let both = left_square * right_square;
            // One root rounds once; two of them cannot overflow.
            let lengths = if both.is_normal() { both.sqrt() } else { left_square.sqrt() * right_square.sqrt() };
            (lengths > 0.0).then(|| (N::product(left, right) / lengths).clamp(-1.0, 1.0))
        };
        match self {
            Measure::Euclidean => Some(N::squared_distance(left, right).sqrt()),
            Measure::Manhattan => Some(sum_of(left, right, |left, right| (left - right).magnitude())),
            Measure::InnerProduct => Some(N::product(left, right)),
            Measure::NegativeInnerProduct => Some(-N::product(left, right)),
            Measure::CosineSimilarity => cosine(),
            Measure::CosineDistance => cosine().map(|cosine| 1.0 - cosine),
        }
    }
}

/// Returns the sum of `term` over the numbers of two vectors of one length.
fn sum_of<N: Number>(left: &[N], right: &[N], term: impl Fn(N, N) -> N) -> f64 {
    let mut sums = [N::default(); LANES];
    let (lefts, rights) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest = lefts.remainder().iter().zip(rights.remainder());
    let rest: f64 = rest.map(|(left, right)| term(*left, *right).into()).sum();
    for (left, right) in lefts.zip(rights) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += term(*left, *right);
        }
    }
    sums.into_iter().map(Into::into).sum::<f64>() + rest
}

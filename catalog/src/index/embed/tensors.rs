//! Numbers of a safetensors file.

use half::f16;
use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// The numbers of a tensor of floating-point numbers; `None` for another type.
pub(super) fn floats(tensor: &TensorView<'_>) -> Option<Vec<f32>> {
    let bytes = tensor.data();
    match tensor.dtype() {
        Dtype::F32 => Some(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()),
        Dtype::F16 => Some(bytes.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect()),
        Dtype::F64 => Some(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as f32).collect()),
        _ => None,
    }
}

/// Row numbers; an invalid one becomes a number beyond every range.
pub(super) fn indices(tensor: &TensorView<'_>) -> Vec<usize> {
    let bytes = tensor.data();
    match tensor.dtype() {
        Dtype::I64 => {
            let numbers = bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
            numbers.map(|number| usize::try_from(number).unwrap_or(usize::MAX)).collect()
        }
        Dtype::I32 => {
            let numbers = bytes.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes));
            numbers.map(|number| usize::try_from(number).unwrap_or(usize::MAX)).collect()
        }
        _ => vec![usize::MAX],
    }
}

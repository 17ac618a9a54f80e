//! The discrete Fourier transform, which takes n log n steps for any length n: a length that is a power of two is
//! halved (Cooley and Tukey), any other becomes a convolution of such a length (Bluestein).

use std::f64::consts::PI;
use std::ops::{Add, Mul, Sub};

use datafusion::error::Result;

use crate::interrupt::check_interrupt;

/// Parts that are longer look whether the query is to end.
const LONG: usize = 4_096;

/// A complex number.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Complex {
    pub(super) re: f64,
    pub(super) im: f64,
}

/// The direction of a transform.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FftDirection {
    Forward,
    /// The inverse, not divided by the length.
    Inverse,
}

/// Returns the transform of a series. Errors: that of a query that is to end.
pub(super) fn transform(values: Vec<Complex>, direction: FftDirection) -> Result<Vec<Complex>> {
    let length = values.len();
    if length.is_power_of_two() || length == 0 {
        return transform_power_of_two(values, direction);
    }
    let sign = if direction == FftDirection::Forward { -1.0 } else { 1.0 };
    // Squares are reduced as integers, so that the angles of long series stay exact.
    let chirp = |index: usize| {
        let square = (index as u128 * index as u128) % (2 * length as u128);
        Complex::unit(sign * PI * square as f64 / length as f64)
    };
    let chirps: Vec<Complex> = (0..length).map(chirp).collect();
    let padded = (2 * length - 1).next_power_of_two();
    let mut turned: Vec<Complex> = values.iter().zip(&chirps).map(|(value, chirp)| *value * *chirp).collect();
    turned.resize(padded, Complex::default());
    let mut kernel: Vec<Complex> = chirps.iter().map(|chirp| chirp.conjugate()).collect();
    kernel.resize(padded - length + 1, Complex::default());
    kernel.extend(chirps.iter().skip(1).rev().map(|chirp| chirp.conjugate()));
    let turned = transform_power_of_two(turned, FftDirection::Forward)?;
    let kernel = transform_power_of_two(kernel, FftDirection::Forward)?;
    let product = turned.into_iter().zip(kernel).map(|(turned, kernel)| turned * kernel).collect();
    let convolved = transform_power_of_two(product, FftDirection::Inverse)?;
    let scale = 1.0 / padded as f64;
    Ok(convolved.into_iter().zip(chirps).map(|(value, chirp)| (value * chirp).times(scale)).collect())
}

fn transform_power_of_two(values: Vec<Complex>, direction: FftDirection) -> Result<Vec<Complex>> {
    let turn = if direction == FftDirection::Forward { -2.0 * PI } else { 2.0 * PI };
    let length = values.len();
    let roots: Vec<Complex> = (0..length / 2).map(|index| Complex::unit(turn * index as f64 / length as f64)).collect();
    halved(values, &roots, 1)
}

/// Combines the transforms of the even and the odd values. Every `stride`-th root of the whole is a root of this part.
fn halved(values: Vec<Complex>, roots: &[Complex], stride: usize) -> Result<Vec<Complex>> {
    if values.len() <= 1 {
        return Ok(values);
    }
    if values.len() >= LONG {
        check_interrupt()?;
    }
    let even = halved(values.iter().copied().step_by(2).collect(), roots, stride * 2)?;
    let odd = halved(values.into_iter().skip(1).step_by(2).collect(), roots, stride * 2)?;
    let odd: Vec<Complex> = odd.into_iter().zip(roots.iter().step_by(stride)).map(|(odd, root)| odd * *root).collect();
    let front = even.iter().zip(&odd).map(|(even, odd)| *even + *odd);
    let back = even.iter().zip(&odd).map(|(even, odd)| *even - *odd);
    Ok(front.chain(back).collect())
}

impl Complex {
    pub(super) fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    pub(super) fn norm_squared(self) -> f64 {
        self.re * self.re + self.im * self.im
    }

    fn unit(angle: f64) -> Self {
        let (im, re) = angle.sin_cos();
        Self { re, im }
    }

    fn conjugate(self) -> Self {
        Self { re: self.re, im: -self.im }
    }

    fn times(self, scale: f64) -> Self {
        Self { re: self.re * scale, im: self.im * scale }
    }
}

impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Complex {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }
}

impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_the_sum_that_defines_it_and_has_an_inverse() {
        for length in [1_usize, 2, 3, 5, 8, 12, 15, 31, 64, 97] {
            let value = |index: usize| Complex::new((index * index % 7) as f64, (index % 3) as f64);
            let values: Vec<Complex> = (0..length).map(value).collect();
            let found = transform(values.clone(), FftDirection::Forward).unwrap();
            for (k, found) in found.iter().enumerate() {
                let term = |(n, value): (usize, &Complex)| {
                    *value * Complex::unit(-2.0 * PI * (k * n % length) as f64 / length as f64)
                };
                let expected = values.iter().enumerate().map(term).fold(Complex::default(), Add::add);
                assert!((*found - expected).norm_squared() < 1e-18, "{length}, {k}");
            }
            let back = transform(found, FftDirection::Inverse).unwrap();
            for (value, back) in values.iter().zip(back) {
                assert!((*value - back.times(1.0 / length as f64)).norm_squared() < 1e-20, "{length}");
            }
        }
        assert_eq!(transform(Vec::new(), FftDirection::Forward).unwrap(), []);
    }
}

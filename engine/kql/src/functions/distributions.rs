//! The beta distribution and Welch's t-test, by the incomplete beta function as a continued fraction (Lentz's method).
//! `statrs` stops after 140 terms, which is too early for `beta_cdf(0.5, 1000000, 1000000)`.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;

const REAL: Returns = Returns::Is(KqlType::Real);
/// Replaces 0 in a division.
const TINY: f64 = 1e-300;
/// The greatest parameter that `beta_cdf` takes, as in Kusto.
const MOST_SHAPE: f64 = 10_000.0;
const MAX_TERMS: u32 = 10_000;
const PRECISION: f64 = 1e-16;

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("beta_cdf", "nnn", REAL, |arguments| {
        beta_distribution(arguments, |x, alpha, beta| {
            let is_inside = (0.0..=1.0).contains(&x) && alpha <= MOST_SHAPE && beta <= MOST_SHAPE;
            Some(if is_inside { incomplete_beta(x, alpha, beta) } else { f64::NAN })
        })
    }),
    entry("beta_inv", "nnn", REAL, |arguments| {
        beta_distribution(arguments, |probability, alpha, beta| {
            let is_probability = probability > 0.0 && probability <= 1.0;
            is_probability.then(|| inverse_beta(probability, alpha, beta))
        })
    }),
    entry("welch_test", "nnnnnn", REAL, welch_test),
];

fn beta_distribution(
    arguments: &FunctionArguments,
    compute: impl Fn(f64, f64, f64) -> Option<f64>,
) -> Result<ArrayRef> {
    let (numbers, alphas, betas) = (arguments.reals(0)?, arguments.reals(1)?, arguments.reals(2)?);
    arguments.make_reals(|row| {
        let (number, alpha, beta) = (numbers.get(row)?, alphas.get(row)?, betas.get(row)?);
        let is_distribution = alpha > 0.0 && beta > 0.0 && alpha.is_finite() && beta.is_finite() && !number.is_nan();
        if is_distribution { compute(number, alpha, beta) } else { Some(f64::NAN) }
    })
}

/// Returns the probability, from 0 to 1, of a value of at most `x`.
fn incomplete_beta(x: f64, alpha: f64, beta: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges fast on one side only.
    if x > (alpha + 1.0) / (alpha + beta + 2.0) {
        return 1.0 - incomplete_beta_below(1.0 - x, beta, alpha);
    }
    incomplete_beta_below(x, alpha, beta)
}

fn incomplete_beta_below(x: f64, alpha: f64, beta: f64) -> f64 {
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let logarithm = libm::lgamma(alpha + beta) - libm::lgamma(alpha) - libm::lgamma(beta);
    let front = (logarithm + alpha * x.ln() + beta * (-x).ln_1p()).exp() / alpha;
    let (mut above, mut below) = (1.0, 1.0 / away(1.0 - (alpha + beta) * x / (alpha + 1.0)));
    let mut fraction = below;
    for term in 1..MAX_TERMS {
        let m = f64::from(term);
        let even = m * (beta - m) * x / ((alpha + 2.0 * m - 1.0) * (alpha + 2.0 * m));
        let odd = -(alpha + m) * (alpha + beta + m) * x / ((alpha + 2.0 * m) * (alpha + 2.0 * m + 1.0));
        let mut change = 1.0;
        for factor in [even, odd] {
            below = 1.0 / away(1.0 + factor * below);
            above = away(1.0 + factor / above);
            change = below * above;
            fraction *= change;
        }
        if (change - 1.0).abs() < PRECISION {
            break;
        }
    }
    front * fraction
}

/// Inverts the distribution by bisection.
fn inverse_beta(probability: f64, alpha: f64, beta: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle: f64 = (low + high) / 2.0;
        if incomplete_beta(middle, alpha, beta) < probability { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Returns the probability of means at least this far apart in either direction if the true means are equal.
fn welch_test(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let numbers = (0..6).map(|index| arguments.reals(index)).collect::<Result<Vec<_>>>()?;
    arguments.make_reals(|row| {
        let numbers: Vec<f64> = numbers.iter().map(|numbers| numbers.get(row)).collect::<Option<_>>()?;
        let [mean, variance, count, other_mean, other_variance, other_count] = <[f64; 6]>::try_from(numbers).ok()?;
        let (error, other_error) = (variance / count, other_variance / other_count);
        let t_squared = (mean - other_mean).powi(2) / (error + other_error);
        let freedom =
            (error + other_error).powi(2) / (error.powi(2) / (count - 1.0) + other_error.powi(2) / (other_count - 1.0));
        if t_squared.is_nan() || freedom.is_nan() || freedom <= 0.0 {
            return Some(f64::NAN);
        }
        Some(incomplete_beta(freedom / (freedom + t_squared), freedom / 2.0, 0.5))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beta_distribution_is_as_in_tables() {
        // I(x; a, b) in closed form: x^a for b = 1, and a polynomial for small integers a and b.
        for x in [0.01_f64, 0.3, 0.5, 0.9] {
            assert!((incomplete_beta(x, 3.0, 1.0) - x.powi(3)).abs() < 1e-13);
            assert!((incomplete_beta(x, 2.0, 2.0) - x * x * (3.0 - 2.0 * x)).abs() < 1e-13);
        }
        for x in [0.1, 0.3, 0.5] {
            assert!((inverse_beta(incomplete_beta(x, 10.0, 20.0), 10.0, 20.0) - x).abs() < 1e-9);
        }
        // A continued fraction cut off early is wrong here.
        assert!((incomplete_beta(0.5, 1e6, 1e6) - 0.5).abs() < 1e-8);
        // A t distribution with one degree of freedom is a Cauchy distribution.
        let two_sided = incomplete_beta(1.0 / 2.0, 0.5, 0.5);
        assert!((two_sided - 0.5).abs() < 1e-12, "{two_sided}");
    }
}

//! Distances on the spheroid of WGS 84, by Vincenty's inverse formula: to a tenth of a millimeter, but for places that
//! are nearly opposite, between which it finds none.

use std::f64::consts::TAU;

const MAJOR_AXIS_METERS: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
const MAX_TURNS: usize = 200;

/// Returns the meters between two places, each a longitude and a latitude in degrees.
pub(super) fn distance(
    (from_longitude, from_latitude): (f64, f64),
    (to_longitude, to_latitude): (f64, f64),
) -> Option<f64> {
    let minor_axis = (1.0 - FLATTENING) * MAJOR_AXIS_METERS;
    let turned = (to_longitude - from_longitude).to_radians();
    let apart = turned - TAU * (turned / TAU).round();
    let reduced = |latitude: f64| ((1.0 - FLATTENING) * latitude.to_radians().tan()).atan().sin_cos();
    let ((from_sin, from_cos), (to_sin, to_cos)) = (reduced(from_latitude), reduced(to_latitude));
    let mut lambda = apart;
    for _ in 0..MAX_TURNS {
        let (lambda_sin, lambda_cos) = lambda.sin_cos();
        let sigma_sin = (to_cos * lambda_sin).hypot(from_cos * to_sin - from_sin * to_cos * lambda_cos);
        let sigma_cos = from_sin * to_sin + from_cos * to_cos * lambda_cos;
        if sigma_sin == 0.0 {
            return (sigma_cos > 0.0).then_some(0.0);
        }
        let sigma = sigma_sin.atan2(sigma_cos);
        let alpha_sin = from_cos * to_cos * lambda_sin / sigma_sin;
        let alpha_cos_squared = 1.0 - alpha_sin * alpha_sin;
        // Along the equator there is no middle.
        let middle =
            if alpha_cos_squared > 1e-14 { sigma_cos - 2.0 * from_sin * to_sin / alpha_cos_squared } else { 0.0 };
        let middle_term = 2.0 * middle * middle - 1.0;
        let c = FLATTENING / 16.0 * alpha_cos_squared * (4.0 + FLATTENING * (4.0 - 3.0 * alpha_cos_squared));
        let next = apart
            + (1.0 - c) * FLATTENING * alpha_sin * (sigma + c * sigma_sin * (middle + c * sigma_cos * middle_term));
        let is_near = (next - lambda).abs() < 1e-13;
        lambda = next;
        if !is_near {
            continue;
        }
        let root = (1.0 + alpha_cos_squared * (MAJOR_AXIS_METERS.powi(2) / minor_axis.powi(2) - 1.0)).sqrt();
        let k = (root - 1.0) / (root + 1.0);
        let (a, b) = ((1.0 + k * k / 4.0) / (1.0 - k), k * (1.0 - 3.0 / 8.0 * k * k));
        let last_term = b / 6.0 * middle * (4.0 * sigma_sin * sigma_sin - 3.0) * (4.0 * middle * middle - 3.0);
        let less = b * sigma_sin * (middle + b / 4.0 * (sigma_cos * middle_term - last_term));
        return Some(minor_axis * a * (sigma - less));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Karney's algorithm (geographiclib) gives.
    #[test]
    fn distances_are_those_of_the_spheroid() {
        for (from, to, meters) in [
            ((-122.407628, 47.578557), (-118.275287, 34.019056), 1_545_043.643_861_607),
            ((0.0, 0.0), (1.0, 0.0), 111_319.490_793_273_57),
            ((0.0, 0.0), (0.0, 90.0), 10_001_965.729_312_724),
            ((179.5, 0.5), (-179.5, -0.5), 156_902.496_062_478_5),
            ((10.0, 20.0), (10.0, 20.0), 0.0),
        ] {
            let found = distance(from, to);
            assert!(found.is_some_and(|found| (found - meters).abs() < 1e-4), "{from:?} {to:?}: {found:?}");
        }
        assert_eq!(distance((0.0, 0.0), (180.0, 0.0)), None);
    }
}

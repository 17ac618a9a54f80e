//! Fits the confidence to measured answers: a logistic function of what is known about each, regularised, by gradient
//! descent. How far its figures are off is measured on answers that the fit has not seen, in five parts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use querent_agent::ConfidenceFit;

use super::{Outcome, recorded_in};
use crate::Failure;
use crate::harness::cache_folder;

/// Fewer answers say nothing about twelve coefficients.
const MIN_ANSWERS: usize = 100;
const PARTS: usize = 5;
const STEPS: usize = 4_000;
const RATE: f64 = 0.5;
/// How strongly coefficients are held near zero.
const RIDGE: f64 = 0.01;

/// An answer: what is known about it, and whether it is right.
type Measured = (BTreeMap<String, f64>, bool);

/// Fits to the results of `model` in `file`, else where `make eval` keeps them. Returns the settings as TOML.
pub(crate) async fn fit(model: &str, file: Option<PathBuf>) -> Result<String, Failure> {
    let path = match file {
        Some(file) => file,
        None => default_file(model)?,
    };
    let recorded = recorded_in(&path).await?;
    let outcomes = recorded.values().map(|one| &one.agent).filter(|one| !one.features.is_empty());
    let measured: Vec<Measured> = outcomes.map(|one: &Outcome| (one.features.clone(), one.is_right())).collect();
    if measured.len() < MIN_ANSWERS {
        let path = path.display();
        return Err(format!(
            "{} answers of {path} say what is known about them; a fit needs {MIN_ANSWERS}: run `make eval`",
            measured.len()
        )
        .into());
    }
    let fit =
        ConfidenceFit { calibration_error: held_out_error(&measured), model: model.to_owned(), ..fitted(&measured) };
    Ok(format!("[agent.confidence]\n{}", toml_of(&fit)))
}

fn default_file(model: &str) -> Result<PathBuf, Failure> {
    let name = model.replace(|c: char| !c.is_alphanumeric(), "-");
    Ok(cache_folder()?.join(Path::new("answers")).join(format!("{name}.ndjson")))
}

fn fitted(measured: &[Measured]) -> ConfidenceFit {
    let names: Vec<&String> = measured.first().map(|(features, _)| features.keys().collect()).unwrap_or_default();
    let mut fit = ConfidenceFit {
        model: String::new(),
        questions: measured.len(),
        calibration_error: 0.0,
        intercept: 0.0,
        weights: names.iter().map(|name| ((*name).clone(), 0.0)).collect(),
    };
    let count = measured.len() as f64;
    for _ in 0..STEPS {
        let mut slope = 0.0;
        let mut slopes: BTreeMap<&String, f64> = BTreeMap::new();
        for (features, is_right) in measured {
            let error = fit.probability(features) - if *is_right { 1.0 } else { 0.0 };
            slope += error;
            for (name, value) in features {
                *slopes.entry(name).or_default() += error * value;
            }
        }
        fit.intercept -= RATE * slope / count;
        for (name, weight) in &mut fit.weights {
            *weight -= RATE * (slopes.get(name).unwrap_or(&0.0) / count + RIDGE * *weight);
        }
    }
    fit
}

/// Returns how far the figures are off in the mean: the difference of the mean figure and the share that is right, over
/// five groups of answers by figure, weighed by their size.
fn held_out_error(measured: &[Measured]) -> f64 {
    let mut figures: Vec<(f64, bool)> = Vec::new();
    for part in 0..PARTS {
        let (held_out, rest): (Vec<_>, Vec<_>) =
            measured.iter().cloned().enumerate().partition(|(index, _)| index % PARTS == part);
        let rest: Vec<Measured> = rest.into_iter().map(|(_, one)| one).collect();
        let fit = fitted(&rest);
        figures.extend(held_out.into_iter().map(|(_, (features, is_right))| (fit.probability(&features), is_right)));
    }
    figures.sort_by(|left, right| left.0.total_cmp(&right.0));
    let size = figures.len().div_ceil(PARTS).max(1);
    let off: f64 = figures
        .chunks(size)
        .map(|group| {
            let mean = group.iter().map(|(figure, _)| figure).sum::<f64>();
            let right = group.iter().filter(|(_, is_right)| *is_right).count() as f64;
            (mean - right).abs()
        })
        .sum();
    off / figures.len().max(1) as f64
}

fn toml_of(fit: &ConfidenceFit) -> String {
    let rounded = |number: f64| (number * 1e4).round() / 1e4;
    let weights: Vec<String> =
        fit.weights.iter().map(|(name, weight)| format!("{name} = {:?}", rounded(*weight))).collect();
    format!(
        "model = {:?}\nquestions = {}\ncalibration_error = {:?}\nintercept = {:?}\nweights = {{ {} }}\n",
        fit.model,
        fit.questions,
        rounded(fit.calibration_error),
        rounded(fit.intercept),
        weights.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_finds_what_tells_right_from_wrong() {
        let answer = |index: usize| -> Measured {
            let doubt = if index.is_multiple_of(3) { 1.0 } else { 0.0 };
            // Of doubtful answers two in eleven are right, of others nine.
            let is_right = if doubt > 0.0 { index % 11 < 2 } else { index % 11 >= 2 };
            (BTreeMap::from([("doubt".to_owned(), doubt), ("noise".to_owned(), (index % 7) as f64 / 7.0)]), is_right)
        };
        let measured: Vec<Measured> = (0..300).map(answer).collect();
        let fit = fitted(&measured);
        assert!(fit.weights["doubt"] < -1.5 && fit.weights["noise"].abs() < 0.5, "{fit:?}");
        let doubtful = BTreeMap::from([("doubt".to_owned(), 1.0)]);
        assert!(fit.probability(&doubtful) < 0.35 && fit.probability(&BTreeMap::new()) > 0.65, "{fit:?}");
        assert!(held_out_error(&measured) < 0.08);
        assert!(toml_of(&fit).contains("questions = 300"));
    }
}

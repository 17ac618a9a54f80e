//! What an answer rests on and how far it is to be trusted, as `answer_final` says it beside the text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::confidence::Confidence;
use crate::template::FilledValue;

/// The field of an answer that has its assessment, in the protocols whose clients take fields of a server's own.
pub const ASSESSMENT: &str = "assessment";

/// The verified query that answered a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedBasis {
    /// The verified query.
    pub id: i64,
    /// Its question.
    pub question: String,
    /// The values that were filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<FilledValue>,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerAssessment {
    /// Where bare names of the query that answers resolve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql_database: Option<String>,
    /// The verified query that answered, without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified_query: Option<VerifiedBasis>,
    /// How far it is to be trusted; absent where no data was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Whether the answer was held back, as its confidence is below the threshold that is set.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
    /// What the question asks for, or names, and nothing in the data is called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What the question can mean, where queries that were compared return different rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<AnswerReading>,
    /// Whether the text asks which of the readings is meant: a reply with the number of one is answered by its query.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_back: bool,
    /// What a fit weighs, by name; not sent to clients.
    #[serde(skip)]
    pub features: BTreeMap<String, f64>,
}

impl AnswerAssessment {
    /// Returns what clients are shown of it under [`ASSESSMENT`]; `None` where nothing is known.
    pub fn to_json(&self) -> Option<Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) if !fields.is_empty() => Some(Value::Object(fields)),
            _ => None,
        }
    }
}

/// One way to read a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerReading {
    /// The query.
    pub sql: String,
    /// Its first row.
    pub first_row: Value,
    /// How many rows it has.
    pub row_count: u64,
    /// How many of the queries that were compared return the same.
    pub votes: u64,
}

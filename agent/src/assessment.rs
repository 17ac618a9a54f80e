//! What an answer rests on and how far it is to be trusted, as `answer_final` says it beside the text.

use serde::{Deserialize, Serialize};

use crate::template::FilledValue;

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
}

//! The `error` of an answer: its code, its message, and the reason in the form that the version 1.0 wants of each of its own
//! errors, a list of `google.rpc.ErrorInfo`. Clients of 0.3 take any data.

use serde_json::{Value, json};

use super::{
    CONTENT_TYPE_NOT_SUPPORTED, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR,
    PUSH_NOT_SUPPORTED, TASK_NOT_CANCELABLE, TASK_NOT_FOUND, UNSUPPORTED_OPERATION, VERSION_NOT_SUPPORTED,
};

/// What the details of an error are, and whose reasons they name.
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const DOMAIN: &str = "a2a-protocol.org";

/// Returns the error, with the code that the server has for it in its metadata, where it has one.
pub fn error_object(code: i64, message: &str, own_code: Option<&str>) -> Value {
    let metadata = match own_code {
        Some(own_code) => json!({ "code": own_code }),
        None => json!({}),
    };
    let info = json!({ "@type": ERROR_INFO, "reason": reason(code), "domain": DOMAIN, "metadata": metadata });
    json!({ "code": code, "message": message, "data": [info] })
}

/// Returns the protocol's name of an error.
fn reason(code: i64) -> &'static str {
    match code {
        PARSE_ERROR => "PARSE_ERROR",
        INVALID_REQUEST => "INVALID_REQUEST",
        METHOD_NOT_FOUND => "METHOD_NOT_FOUND",
        INVALID_PARAMS => "INVALID_PARAMS",
        TASK_NOT_FOUND => "TASK_NOT_FOUND",
        TASK_NOT_CANCELABLE => "TASK_NOT_CANCELABLE",
        PUSH_NOT_SUPPORTED => "PUSH_NOTIFICATION_NOT_SUPPORTED",
        UNSUPPORTED_OPERATION => "UNSUPPORTED_OPERATION",
        CONTENT_TYPE_NOT_SUPPORTED => "CONTENT_TYPE_NOT_SUPPORTED",
        VERSION_NOT_SUPPORTED => "VERSION_NOT_SUPPORTED",
        INTERNAL_ERROR => "INTERNAL_ERROR",
        _ => "UNKNOWN_ERROR",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_its_reason_and_the_servers_code() {
        let error = error_object(TASK_NOT_FOUND, "there is no such task", None);
        let info = json!({ "@type": ERROR_INFO, "reason": "TASK_NOT_FOUND", "domain": DOMAIN, "metadata": {} });
        assert_eq!(error, json!({ "code": -32_001, "message": "there is no such task", "data": [info] }));
        let error = error_object(INTERNAL_ERROR, "no model", Some("model_unreachable"));
        assert_eq!(error["data"][0]["metadata"], json!({ "code": "model_unreachable" }));
    }
}

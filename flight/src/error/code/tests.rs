//! What must hold of every code.

use super::*;

#[test]
fn names_are_unique_and_lead_back_to_their_code() {
    for code in ErrorCode::ALL {
        assert_eq!(ErrorCode::from_name(code.as_str()), Some(*code), "{code}");
    }
}

#[test]
fn a_status_that_asks_to_come_back_says_when() {
    for code in ErrorCode::ALL {
        let status = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&code.http_status());
        assert_eq!(code.retry_after().is_some(), status, "{code}");
    }
}

#[test]
fn a_provider_that_refuses_us_is_not_a_bug_of_ours() {
    assert_eq!(ErrorCode::ModelAuth.http_status(), StatusCode::BAD_GATEWAY);
    assert_eq!(ErrorCode::ModelRateLimited.http_status(), StatusCode::SERVICE_UNAVAILABLE);
}

//! The variables of the environment that have the credentials of object stores, as errors name them.

const S3_VARIABLES: &str = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN, AWS_REGION), with \
                            AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or with AWS_SKIP_SIGNATURE=true for a public bucket";
const GCS_VARIABLES: &str = "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT_KEY, or with GOOGLE_SKIP_SIGNATURE=true for a public bucket";
const AZURE_VARIABLES: &str = "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, with \
                               AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and AZURE_TENANT_ID, or with AZURE_SKIP_SIGNATURE=true for a \
                               public container";

/// Returns the variables that have the credentials of a store, which is named by its scheme and bucket.
pub(crate) fn variables_of(store: &str) -> &'static str {
    match store.split(':').next() {
        Some("s3" | "s3a") => S3_VARIABLES,
        Some("gs") => GCS_VARIABLES,
        _ => AZURE_VARIABLES,
    }
}

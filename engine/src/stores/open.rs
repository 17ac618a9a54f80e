//! Opens a store with the credentials of the environment and with limits on every wait.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use reqwest::redirect::Policy;

use super::url::{Scheme, StoreUrl};
use super::web::{PublicOnly, same_host};
use crate::error::{Result, StoreError, variables_of};

/// The time to connect, name resolution included.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The time between two pieces of an answer, the first included.
const READ_TIME: Duration = Duration::from_secs(15);
/// The time from the begin of a request that writes to its answer: a data file is sent meanwhile.
const WRITE_TIME: Duration = Duration::from_secs(60);
/// After this time no request is repeated: a dead endpoint costs a statement this and one more wait, 30 s together.
const RETRY_TIME: Duration = Duration::from_secs(15);
const RETRIES: usize = 3;

/// Opens the store of a URL. `named`: the settings name its host, so it may be anywhere.
pub(super) fn open(url: &StoreUrl, named: bool) -> Result<Arc<dyn ObjectStore>> {
    open_with(url, named, READ_TIME)
}

/// Opens the store of a URL to write to it.
pub(super) fn open_patient(url: &StoreUrl) -> Result<Arc<dyn ObjectStore>> {
    open_with(url, true, WRITE_TIME)
}

fn open_with(url: &StoreUrl, named: bool, answer_time: Duration) -> Result<Arc<dyn ObjectStore>> {
    let store = url.store();
    let unusable = |_: object_store::Error| StoreError::AccessDenied {
        store: store.clone(),
        // The client's own message may quote the values of variables.
        detail: "the credentials or settings in the environment cannot be used".into(),
    };
    let missing = || StoreError::MissingCredentials { store: store.clone(), variables: variables_of(&store) };
    Ok(match url.scheme {
        Scheme::S3 => {
            let builder = AmazonS3Builder::from_env()
                .with_bucket_name(&url.authority)
                .with_retry(retries())
                .with_http_connector(Connector { to: Reach::Operators, answer_time });
            if !has_s3_credentials(&builder) {
                return Err(missing().into());
            }
            Arc::new(builder.build().map_err(unusable)?)
        }
        Scheme::Gs => {
            let builder = GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(&url.authority)
                .with_retry(retries())
                .with_http_connector(Connector { to: Reach::Operators, answer_time });
            if !has_gcs_credentials(&builder) {
                return Err(missing().into());
            }
            Arc::new(builder.build().map_err(unusable)?)
        }
        Scheme::Az | Scheme::Abfs | Scheme::Abfss => {
            let builder = MicrosoftAzureBuilder::from_env()
                .with_url(&store)
                .with_retry(retries())
                .with_http_connector(Connector { to: Reach::Operators, answer_time });
            if !has_azure_credentials(&builder) {
                return Err(missing().into());
            }
            Arc::new(builder.build().map_err(unusable)?)
        }
        Scheme::Http | Scheme::Https => {
            let to = if named { Reach::Named } else { Reach::Public };
            let builder = HttpBuilder::new()
                .with_url(store.clone())
                .with_retry(retries())
                .with_http_connector(Connector { to, answer_time });
            Arc::new(builder.build().map_err(unusable)?)
        }
    })
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: RETRIES,
        retry_timeout: RETRY_TIME,
    }
}

/// Returns whether the environment says how to authenticate. Otherwise the client would ask the machine's metadata service.
fn has_s3_credentials(builder: &AmazonS3Builder) -> bool {
    use AmazonS3ConfigKey as Key;
    let has = |key: Key| builder.get_config_value(&key).is_some();
    has(Key::AccessKeyId)
        || has(Key::SecretAccessKey)
        || has(Key::WebIdentityTokenFile)
        || has(Key::ContainerCredentialsRelativeUri)
        || has(Key::ContainerCredentialsFullUri)
        || has(Key::MetadataEndpoint)
        || is_true(builder.get_config_value(&Key::SkipSignature))
}

fn has_gcs_credentials(builder: &GoogleCloudStorageBuilder) -> bool {
    use GoogleConfigKey as Key;
    let has = |key: Key| builder.get_config_value(&key).is_some();
    has(Key::ServiceAccount)
        || has(Key::ServiceAccountKey)
        || has(Key::ApplicationCredentials)
        || is_true(builder.get_config_value(&Key::SkipSignature))
}

fn has_azure_credentials(builder: &MicrosoftAzureBuilder) -> bool {
    use AzureConfigKey as Key;
    let has = |key: Key| builder.get_config_value(&key).is_some();
    has(Key::AccessKey)
        || has(Key::SasKey)
        || has(Key::Token)
        || has(Key::ClientSecret)
        || has(Key::FederatedTokenFile)
        || has(Key::MsiEndpoint)
        || is_true(builder.get_config_value(&Key::UseAzureCli))
        || is_true(builder.get_config_value(&Key::UseEmulator))
        || is_true(builder.get_config_value(&Key::SkipSignature))
}

fn is_true(value: Option<String>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
}

/// Makes the HTTP client that a store is reached with.
#[derive(Debug, Clone, Copy)]
struct Connector {
    to: Reach,
    answer_time: Duration,
}

/// Which hosts a client reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Those that the environment names, or the cloud's own.
    Operators,
    /// One that the settings name.
    Named,
    /// Those of the public Internet.
    Public,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain = is_true(options.get_config_value(&ClientConfigKey::AllowHttp));
        let client = reqwest::Client::builder()
            .user_agent(concat!("querent/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIME)
            .read_timeout(self.answer_time)
            .referer(false)
            .http1_only()
            // The ranges of a body that is decompressed on the way are not those of the file.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        let client = match self.to {
            Reach::Operators => client.redirect(Policy::none()).https_only(!plain),
            // A proxy would resolve the name itself, unchecked.
            Reach::Named => client.redirect(same_host()).no_proxy(),
            Reach::Public => client.redirect(same_host()).no_proxy().dns_resolver(Arc::new(PublicOnly)),
        };
        let client = client.build().map_err(|error| object_store::Error::Generic {
            store: "external",
            source: Box::new(error.without_url()),
        })?;
        Ok(HttpClient::new(client))
    }
}

//! TLS of the port: the certificate that clients see, and the authority that signs theirs where they must have one.
//!
//! The files are read again every few seconds, so that a certificate is renewed without a restart: new connections get the
//! new one. Invariant: files that cannot be used change nothing; the server goes on with those that it has.

mod development;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsSettings;
use crate::error::ErrorCode;
use crate::shutdown::Shutdown;

/// How often the files are read again.
const RELOAD_EVERY: Duration = Duration::from_secs(2);
/// What a client may agree on, best first: gRPC needs `h2`.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What those are told that speak to the port without TLS.
pub(crate) const PORT_SPEAKS_TLS: &str = "this port speaks TLS";

/// Why there is no TLS. Its code is `config_error`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {setting} {}: {source}", .path.display())]
    Unreadable {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file does not hold what its setting says.
    #[error("{setting} {} is not usable: {detail}", .path.display())]
    Unusable {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The development certificate cannot be made or written.
    #[error("cannot make a development certificate in {}: {detail}", .folder.display())]
    Development {
        /// Where it would be.
        folder: PathBuf,
        /// Why.
        detail: String,
    },
}

impl TlsError {
    /// The stable code, documented in `docs/errors.md`.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::ConfigError
    }
}

/// The TLS of a running server.
pub(crate) struct ServerTls {
    files: TlsFiles,
    /// What new connections are served with.
    current: RwLock<Arc<ServerConfig>>,
    /// What `current` was made of.
    loaded: TlsContents,
    is_development: bool,
}

/// Where the settings say that the files lie.
#[derive(Debug)]
struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
}

/// The files' bytes.
#[derive(PartialEq, Eq, Clone)]
struct TlsContents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl ServerTls {
    /// Reads the files of the settings, or makes a development certificate in the data folder; `None` without either.
    pub(crate) async fn open(settings: &TlsSettings, data: &Path) -> Result<Option<Self>, TlsError> {
        let (certificate, key) = match (&settings.certificate, &settings.key) {
            (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
            _ if settings.development => development::certificate(data).await?,
            _ => return Ok(None),
        };
        let files = TlsFiles { certificate, key, client_ca: settings.client_ca.clone() };
        let loaded = files.read().await?;
        let current = RwLock::new(Arc::new(files.server_config(&loaded)?));
        Ok(Some(Self { files, current, loaded, is_development: settings.development }))
    }

    /// Returns what accepts a new connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.read()))
    }

    /// Returns the file that clients must be told to trust, where no authority has signed it.
    pub(crate) fn development_certificate(&self) -> Option<&Path> {
        self.is_development.then_some(self.files.certificate.as_path())
    }

    /// Follows changes of the files until the server stops.
    pub(crate) async fn follow(self: Arc<Self>, shutdown: Shutdown) {
        let mut loaded = self.loaded.clone();
        let mut last_fault = String::new();
        while tokio::time::timeout(RELOAD_EVERY, shutdown.draining()).await.is_err() {
            let made = match self.files.read().await {
                Ok(contents) if contents == loaded => {
                    last_fault.clear();
                    continue;
                }
                Ok(contents) => self.files.server_config(&contents).map(|config| (contents, config)),
                Err(error) => Err(error),
            };
            match made {
                Ok((contents, config)) => {
                    *self.current.write() = Arc::new(config);
                    loaded = contents;
                    last_fault.clear();
                    tracing::info!(certificate = %self.files.certificate.display(), "the certificate was replaced");
                }
                // A file may be half written, or its pair not yet there: the next look finds out.
                Err(error) => {
                    let fault = error.to_string();
                    if fault != last_fault {
                        tracing::warn!(%error, "the new certificate is not used; the old one goes on");
                        last_fault = fault;
                    }
                }
            }
        }
    }
}

impl TlsFiles {
    async fn read(&self) -> Result<TlsContents, TlsError> {
        let client_ca = match &self.client_ca {
            Some(path) => Some(read("tls.client_ca", path).await?),
            None => None,
        };
        Ok(TlsContents {
            certificate: read("tls.certificate", &self.certificate).await?,
            key: read("tls.key", &self.key).await?,
            client_ca,
        })
    }

    fn server_config(&self, contents: &TlsContents) -> Result<ServerConfig, TlsError> {
        let unusable = |setting: &'static str, path: &Path, detail: &dyn std::fmt::Display| TlsError::Unusable {
            setting,
            path: path.to_owned(),
            detail: detail.to_string(),
        };
        let chain = certificates(&contents.certificate)
            .map_err(|detail| unusable("tls.certificate", &self.certificate, &detail))?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|error| unusable("tls.key", &self.key, &format!("it holds no private key as PEM: {error}")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("tls.certificate", &self.certificate, &error))?;
        let builder = match (&contents.client_ca, &self.client_ca) {
            (Some(pem), Some(path)) => {
                let mut roots = RootCertStore::empty();
                for root in certificates(pem).map_err(|detail| unusable("tls.client_ca", path, &detail))? {
                    roots.add(root).map_err(|error| unusable("tls.client_ca", path, &error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = verifier.build().map_err(|error| unusable("tls.client_ca", path, &error))?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        // It fails where the key is not the certificate's.
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| unusable("tls.certificate", &self.certificate, &error))?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(config)
    }
}

/// Reads the file of a setting.
pub(crate) async fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    tokio::fs::read(path).await.map_err(|source| TlsError::Unreadable { setting, path: path.to_owned(), source })
}

/// Returns the certificates of a PEM text, at least one.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err("it holds no certificate as PEM".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("it is not PEM: {error}")),
    }
}

//! TLS of the connections to workers: which authorities are trusted, and the certificate that is shown.
//!
//! The files are read for each connection, so that a renewed certificate needs no restart, and once before any, so that a
//! server whose settings are wrong does not start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Url;

use crate::config::ClusterSettings;
use crate::tls::{TlsError, certificates, read};

/// The files of the settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterTls {
    ca: Option<PathBuf>,
    /// The certificate that is shown, and its key.
    shown: Option<(PathBuf, PathBuf)>,
}

impl ClusterTls {
    /// Checks the files that the settings name.
    pub(crate) async fn open(settings: &ClusterSettings) -> Result<Self, TlsError> {
        let shown = settings.client_certificate.clone().zip(settings.client_key.clone());
        let tls = Self { ca: settings.ca.clone(), shown };
        if tls.ca.is_some() || tls.shown.is_some() {
            tls.client_config().await?;
        }
        Ok(tls)
    }

    async fn client_config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let here = Path::new("");
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("cluster.ca", self.ca.as_deref().unwrap_or(here), &error))?
            .with_root_certificates(self.roots().await?);
        let mut config = match &self.shown {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(&read("cluster.client_certificate", certificate).await?)
                    .map_err(|detail| unusable("cluster.client_certificate", certificate, &detail))?;
                let pem = read("cluster.client_key", key).await?;
                let private_key =
                    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| unusable("cluster.client_key", key, &error))?;
                builder
                    .with_client_auth_cert(chain, private_key)
                    .map_err(|error| unusable("cluster.client_certificate", certificate, &error))?
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }

    async fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        let Some(ca) = &self.ca else {
            let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
            // Some of a system's certificates are usually too old to be read.
            roots.add_parsable_certificates(found.map(|found| found.certs).unwrap_or_default());
            return Ok(roots);
        };
        let pem = read("cluster.ca", ca).await?;
        for root in certificates(&pem).map_err(|detail| unusable("cluster.ca", ca, &detail))? {
            roots.add(root).map_err(|error| unusable("cluster.ca", ca, &error))?;
        }
        Ok(roots)
    }

    /// Connects to a worker whose certificate has to be for `name`.
    pub(super) async fn connect(&self, url: &Url, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let config = self.client_config().await.map_err(std::io::Error::other)?;
        // An address of IPv6 stands in brackets in a URL, and only there.
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().unwrap_or_default();
        let name = ServerName::try_from(name.trim_matches(['[', ']']).to_owned()).map_err(std::io::Error::other)?;
        let stream = TcpStream::connect((host.as_str(), port)).await?;
        stream.set_nodelay(true)?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

/// Returns why there is no encrypted connection, with what to do.
pub(super) fn connect_fault(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let hint = match inner {
        Some(rustls::Error::InvalidCertificate(_)) => {
            "; cluster.ca names a file with the authority of its certificate, which has to be for the name that \
             cluster.workers has"
        }
        Some(rustls::Error::InvalidMessage(_)) => "; a worker without TLS is named with http:// or dns://",
        Some(rustls::Error::AlertReceived(_)) => {
            "; cluster.client_certificate and cluster.client_key name the certificate that it asks for"
        }
        _ => return error.to_string(),
    };
    format!("no TLS with it: {error}{hint}")
}

/// Returns what TLS says of a connection that ended; `None` where it ended otherwise. A worker that wants a certificate
/// says so after the handshake.
pub(super) fn tls_fault(error: &std::io::Error) -> Option<String> {
    error.get_ref()?.downcast_ref::<rustls::Error>().map(|_| connect_fault(error))
}

fn unusable(setting: &'static str, path: &Path, detail: &dyn std::fmt::Display) -> TlsError {
    TlsError::Unusable { setting, path: path.to_owned(), detail: detail.to_string() }
}

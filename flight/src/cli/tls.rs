//! TLS of the command line's clients: which authorities they trust, and the certificate that they show.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Url;

use super::error::CliError;

/// Flags of TLS, for an https server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(super) struct ClientTlsArgs {
    /// A PEM file: the authorities to trust instead of the system's, for an https:// server with a certificate of its own
    #[arg(long, value_name = "FILE", env = "QUERENT_CA")]
    pub(super) ca: Option<PathBuf>,
    /// A PEM file: the certificate to show to an https:// server that asks for one
    #[arg(long, value_name = "FILE", env = "QUERENT_CLIENT_CERTIFICATE", requires = "client_key")]
    pub(super) client_certificate: Option<PathBuf>,
    /// A PEM file: the private key of --client-certificate
    #[arg(long, value_name = "FILE", env = "QUERENT_CLIENT_KEY", requires = "client_certificate")]
    pub(super) client_key: Option<PathBuf>,
}

impl ClientTlsArgs {
    /// Reads the files. Errors: what is missing or is not PEM.
    pub(super) fn config(&self) -> Result<ClientConfig, CliError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| CliError::failed(format!("no TLS: {error}")))?
            .with_root_certificates(self.roots()?);
        let (Some(certificate), Some(key)) = (&self.client_certificate, &self.client_key) else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates("--client-certificate", certificate)?;
        let private_key = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable("--client-key", key, &error))?;
        builder.with_client_auth_cert(chain, private_key).map_err(|error| unusable("--client-key", key, &error))
    }

    fn roots(&self) -> Result<RootCertStore, CliError> {
        let mut roots = RootCertStore::empty();
        let Some(ca) = &self.ca else {
            // Some of a system's certificates are usually too old to be read.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return Ok(roots);
        };
        for root in certificates("--ca", ca)? {
            roots.add(root).map_err(|error| unusable("--ca", ca, &error))?;
        }
        Ok(roots)
    }
}

/// Connects to the host of a URL, for gRPC.
pub(super) async fn connect(url: &Url, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    let invalid = |detail: String| std::io::Error::new(std::io::ErrorKind::InvalidInput, detail);
    // An address of IPv6 stands in brackets in a URL, and only there.
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or_default();
    let name = ServerName::try_from(host.clone()).map_err(|error| invalid(format!("{host}: {error}")))?;
    let mut config = config;
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect((host.as_str(), port)).await?;
    stream.set_nodelay(true)?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Returns what TLS found wrong, if that is the reason of an error.
pub(super) fn tls_fault<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // The source of an error of I/O is not what it wraps, but that one's source.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match wrapped {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn certificates(flag: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, CliError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match found {
        Ok(found) if found.is_empty() => Err(unusable(flag, path, &"it holds no certificate as PEM")),
        Ok(found) => Ok(found),
        Err(error) => Err(unusable(flag, path, &error)),
    }
}

fn unusable(flag: &str, path: &Path, detail: &dyn std::fmt::Display) -> CliError {
    CliError::Usage(format!("{flag} {}: {detail}", path.display()))
}

//! Encrypted connections to a server of PostgreSQL. Its certificate is always checked, against the authorities of the system
//! or those of one file: what libpq calls `verify-full`. A certificate of ours is shown to a server that asks for one.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// The PEM files that a server's URL names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PostgresTlsFiles {
    /// The authorities of the server's certificate; `None`: those of the system.
    pub(super) authorities: Option<PathBuf>,
    /// The certificate that is shown to the server.
    pub(super) certificate: Option<PathBuf>,
    /// Its key.
    pub(super) key: Option<PathBuf>,
}

/// What connections are encrypted with.
#[derive(Clone)]
pub(super) struct EncryptedConnections {
    config: Arc<ClientConfig>,
}

impl EncryptedConnections {
    /// Reads the files. Errors: what cannot be read.
    pub(super) fn new(files: &PostgresTlsFiles) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        match &files.authorities {
            Some(file) => {
                for certificate in certificates(file)? {
                    let added = roots.add(certificate);
                    added.map_err(|error| format!("{} has a certificate that is none: {error}", file.display()))?;
                }
            }
            // One that cannot be read is of no use to anybody.
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?.with_root_certificates(roots);
        let config = match (&files.certificate, &files.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let shown = PrivateKeyDer::from_pem_file(key);
                let shown = shown.map_err(|error| format!("{} cannot be read: {error}", key.display()))?;
                builder.with_client_auth_cert(certificates(certificate)?, shown).map_err(|error| {
                    format!("{} is not the key of {}: {error}", key.display(), certificate.display())
                })?
            }
            _ => return Err("`sslcert` and `sslkey` go together".to_owned()),
        };
        Ok(Self { config: Arc::new(config) })
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error: rustls::pki_types::pem::Error| format!("{} cannot be read: {error}", file.display());
    let read = CertificateDer::pem_file_iter(file).map_err(unreadable)?;
    let found = read.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    if found.is_empty() { Err(format!("{} has no certificate", file.display())) } else { Ok(found) }
}

/// What to do about a connection that could not be made, where encrypting it was the reason.
pub(super) fn advice(error: &tokio_postgres::Error) -> &'static str {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let fault = source.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match fault {
        Some(rustls::Error::InvalidCertificate(_)) => {
            "; `sslrootcert` in `catalog.url` names a file with the authority of its certificate, which has to be for the \
             host that the URL names"
        }
        Some(rustls::Error::AlertReceived(_)) => {
            "; `sslcert` and `sslkey` in `catalog.url` name the certificate that it asks for"
        }
        _ => "",
    }
}

impl MakeTlsConnect<Socket> for EncryptedConnections {
    type Stream = DatabaseStream;
    type TlsConnect = EncryptedServer;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<EncryptedServer> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(EncryptedServer { config: Arc::clone(&self.config), name })
    }
}

/// A server to encrypt a connection to.
pub(super) struct EncryptedServer {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for EncryptedServer {
    type Stream = DatabaseStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<DatabaseStream>>;

    fn connect(self, socket: Socket) -> Self::Future {
        let connector = TlsConnector::from(self.config);
        connector.connect(self.name, socket).map(|stream| Ok(DatabaseStream(stream?))).boxed()
    }
}

/// An encrypted connection.
pub(super) struct DatabaseStream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for DatabaseStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for DatabaseStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for DatabaseStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

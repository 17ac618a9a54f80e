//! Encrypted connections to a server of PostgreSQL. Its certificate is always checked, against the authorities of the system
//! or those of one file: what libpq calls `verify-full`.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

/// What connections are encrypted with.
#[derive(Clone)]
pub(super) struct EncryptedConnections {
    config: Arc<ClientConfig>,
}

impl EncryptedConnections {
    /// Trusts the authorities of a PEM file, or those of the system. Errors: what cannot be read.
    pub(super) fn new(authorities: Option<&Path>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        match authorities {
            Some(file) => {
                let read = |error: rustls::pki_types::pem::Error| format!("{} cannot be read: {error}", file.display());
                for certificate in CertificateDer::pem_file_iter(file).map_err(read)? {
                    let added = roots.add(certificate.map_err(read)?);
                    added.map_err(|error| format!("{} has a certificate that is none: {error}", file.display()))?;
                }
            }
            // One that cannot be read is of no use to anybody.
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { config: Arc::new(config) })
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

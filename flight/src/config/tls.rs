//! `[tls]`: whether the port is encrypted, and with which certificate.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The certificate of the port; none: connections are not encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TlsSettings {
    /// A PEM file: the server's certificate, then those that lead to its authority.
    pub certificate: Option<PathBuf>,
    /// A PEM file: the certificate's private key.
    pub key: Option<PathBuf>,
    /// A PEM file: the authorities one of which must have signed each client's certificate; unset: clients need none.
    pub client_ca: Option<PathBuf>,
    /// Whether to make a certificate in the data folder, for this machine's own names.
    pub development: bool,
}

impl TlsSettings {
    /// Whether the port is encrypted.
    pub fn is_on(&self) -> bool {
        self.development || self.certificate.is_some()
    }

    /// Returns the setting that does not go with the others, and what to do.
    pub(super) fn fault(&self) -> Option<(&'static str, &'static str)> {
        match (&self.certificate, &self.key) {
            (Some(_), None) => return Some(("tls.certificate", "needs its private key, tls.key")),
            (None, Some(_)) => return Some(("tls.key", "needs its certificate, tls.certificate")),
            (Some(_), Some(_)) if self.development => {
                return Some(("tls.development", "makes a certificate, and tls.certificate names one; unset either"));
            }
            _ => {}
        }
        let is_plain = self.client_ca.is_some() && !self.is_on();
        is_plain.then_some(("tls.client_ca", "needs tls.certificate and tls.key, or tls.development = true"))
    }
}

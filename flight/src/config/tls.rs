//! `[tls]`: whether the port is encrypted, and with which certificate.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::RoleName;

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
    /// `[[tls.clients]]`: whom clients' certificates stand for, where a request has no token. A certificate that is not named says
    /// nothing of its client.
    pub clients: Vec<CertificateSettings>,
    /// Whether to make a certificate in the data folder, for this machine's own names.
    pub development: bool,
}

/// A certificate of a client, and whom it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateSettings {
    /// A DNS name of the certificate, one of its subject's alternative names.
    pub name: String,
    /// `read`, `write` or `admin`.
    pub role: RoleName,
    /// Who the caller is; unset: the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The only databases the caller may see; unset: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub databases: Option<Vec<String>>,
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
        let names: BTreeSet<&str> = self.clients.iter().map(|client| client.name.as_str()).collect();
        match &self.client_ca {
            None if !self.clients.is_empty() => {
                return Some(("tls.clients", "needs tls.client_ca, the authorities that sign their certificates"));
            }
            _ if names.len() < self.clients.len() => return Some(("tls.clients", "names a certificate twice")),
            _ if names.contains("") => return Some(("tls.clients", "has a certificate without a name")),
            _ => {}
        }
        let is_plain = self.client_ca.is_some() && !self.is_on();
        is_plain.then_some(("tls.client_ca", "needs tls.certificate and tls.key, or tls.development = true"))
    }
}

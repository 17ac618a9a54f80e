//! An authority of the test's own, and certificates that it signs, in files of a folder that goes with it.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// An authority with certificates in files.
pub struct Certificates {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(clippy::disallowed_methods, reason = "a test may wait for the disk")]
impl Certificates {
    /// Makes one, whose certificate is `ca.pem`.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "a test's authority");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let certificates = Self { folder: TempDir::new().unwrap(), issuer: Issuer::new(params, key) };
        std::fs::write(certificates.file("ca.pem"), certificate).unwrap();
        certificates
    }

    /// Writes a certificate for these names, `FILE.pem`, and its key, `FILE.key`.
    pub fn issue(&self, file: &str, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, file);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        std::fs::write(self.file(&format!("{file}.pem")), certificate).unwrap();
        std::fs::write(self.file(&format!("{file}.key")), key.serialize_pem()).unwrap();
    }

    /// The path of a file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path as a text, for settings.
    pub fn text(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }
}

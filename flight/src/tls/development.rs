//! A certificate for development: signed by itself, made once in the data folder, good for this machine's own names.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tokio::io::AsyncWriteExt;

use super::TlsError;

const FOLDER: &str = "tls";
const CERTIFICATE: &str = "development.pem";
const KEY: &str = "development.key";
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Where Linux says what the machine's name is.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// Returns the files of the certificate and its key, which are made unless both are there.
pub(super) async fn certificate(data: &Path) -> Result<(PathBuf, PathBuf), TlsError> {
    let folder = data.join(FOLDER);
    let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
    let is_there = |path: PathBuf| async move { tokio::fs::try_exists(path).await.unwrap_or(false) };
    if !(is_there(certificate.clone()).await && is_there(key.clone()).await) {
        make(&folder, &certificate, &key).await.map_err(|detail| TlsError::Development { folder, detail })?;
    }
    Ok((certificate, key))
}

async fn make(folder: &Path, certificate: &Path, key: &Path) -> Result<(), String> {
    let mut names = LOCAL_NAMES.map(str::to_owned).to_vec();
    names.extend(host_name().await);
    let (certificate_pem, key_pem) = signed_by_itself(names).map_err(|error| error.to_string())?;
    let mut builder = tokio::fs::DirBuilder::new();
    builder.recursive(true).mode(PRIVATE_FOLDER).create(folder).await.map_err(|error| error.to_string())?;
    write(key, &key_pem, PRIVATE_FILE).await.map_err(|error| error.to_string())?;
    write(certificate, &certificate_pem, 0o644).await.map_err(|error| error.to_string())
}

/// Returns a certificate and its key, as PEM.
fn signed_by_itself(names: Vec<String>) -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Querent, for development");
    // Clients trust this very certificate; it signs no other.
    params.is_ca = IsCa::ExplicitNoCa;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

async fn host_name() -> Option<String> {
    let name = tokio::fs::read_to_string(HOST_NAME).await.ok()?.trim().to_owned();
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    (!name.is_empty() && is_name(&name) && !LOCAL_NAMES.contains(&name.as_str())).then_some(name)
}

async fn write(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut options = tokio::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(mode).open(path).await?;
    file.write_all(text.as_bytes()).await?;
    file.sync_all().await
}

//! The signatures of tokens, checked by `ring`: what [`jsonwebtoken`] asks for where it brings no cryptography itself.
//!
//! Invariant: nothing here knows a shared secret, so a token that is signed with the provider's public key as one (`HS256`)
//! cannot be taken for the provider's.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};

/// The algorithms that are taken. Each needs a public key of its own kind.
pub(super) const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::ES256, Algorithm::EdDSA];

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: verifier,
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// Makes `ring` check the signatures of this process's tokens, unless a program around it has chosen another library.
pub(super) fn install() {
    // Its only error is that there is one.
    let _ = RING.install_default();
}

enum PublicKey {
    Rsa { parameters: &'static signature::RsaParameters, modulus: Vec<u8>, exponent: Vec<u8> },
    Point { parameters: &'static dyn VerificationAlgorithm, point: Vec<u8> },
}

struct RingVerifier {
    algorithm: Algorithm,
    key: PublicKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let rsa = |parameters| match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, e } => {
            Ok(PublicKey::Rsa { parameters, modulus: n.clone(), exponent: e.clone() })
        }
        DecodingKeyKind::SecretOrDer(_) => Err(ErrorKind::InvalidKeyFormat),
    };
    let point = |family, parameters| match key.kind() {
        DecodingKeyKind::SecretOrDer(point) if key.family() == family => {
            Ok(PublicKey::Point { parameters, point: point.clone() })
        }
        _ => Err(ErrorKind::InvalidKeyFormat),
    };
    let key = match algorithm {
        Algorithm::RS256 => rsa(&signature::RSA_PKCS1_2048_8192_SHA256)?,
        Algorithm::RS384 => rsa(&signature::RSA_PKCS1_2048_8192_SHA384)?,
        Algorithm::RS512 => rsa(&signature::RSA_PKCS1_2048_8192_SHA512)?,
        Algorithm::ES256 => point(AlgorithmFamily::Ec, &signature::ECDSA_P256_SHA256_FIXED)?,
        Algorithm::EdDSA => point(AlgorithmFamily::Ed, &signature::ED25519)?,
        _ => return Err(ErrorKind::InvalidAlgorithm.into()),
    };
    Ok(Box::new(RingVerifier { algorithm: *algorithm, key }))
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), SignatureError> {
        let verified = match &self.key {
            PublicKey::Rsa { parameters, modulus, exponent } => {
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(parameters, message, signature)
            }
            PublicKey::Point { parameters, point } => {
                UnparsedPublicKey::new(*parameters, point).verify(message, signature)
            }
        };
        verified.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

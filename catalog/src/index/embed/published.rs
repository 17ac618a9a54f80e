//! Models as their publishers keep them: which files, of which revision, with which contents. They are downloaded once
//! into the cache, and what differs from the known contents is refused.

use std::fs::File;
use std::path::{Path, PathBuf};

use hf_hub::api::sync::ApiBuilder;
use hf_hub::{Repo, RepoType};
use sha2::{Digest, Sha256};

use super::{bert, embedder_error};
use crate::error::Result;

/// A published model of BERT's shape.
pub(super) struct PublishedModel {
    /// Its name without the publisher's.
    name: &'static str,
    repository: &'static str,
    revision: &'static str,
    /// The SHA-256 of each of [`bert::FILES`].
    hashes: [&'static str; 3],
}

const PUBLISHED: &[PublishedModel] = &[PublishedModel {
    name: "all-MiniLM-L6-v2",
    repository: "sentence-transformers/all-MiniLM-L6-v2",
    revision: "c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
    hashes: [
        "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ],
}];

/// The model of that name, with or without its publisher's, in any case.
pub(super) fn published_model(name: &str) -> Option<&'static PublishedModel> {
    let named =
        |model: &&PublishedModel| name.eq_ignore_ascii_case(model.name) || name.eq_ignore_ascii_case(model.repository);
    PUBLISHED.iter().find(named)
}

impl PublishedModel {
    /// Downloads what the cache lacks, and returns the paths of [`bert::FILES`]. Blocks.
    pub(super) fn download(&self, cache_dir: &Path) -> Result<[PathBuf; 3]> {
        let failed = |error: hf_hub::api::sync::ApiError| {
            let hint = format!(
                "it is downloaded once, from {}; check the network, or set embed.model_path to a folder with {}",
                self.repository,
                bert::FILES.join(", ")
            );
            embedder_error(self.name, format!("the model is not here and cannot be downloaded: {error}"), &hint)
        };
        let cache_dir = cache_dir.to_path_buf();
        let api = ApiBuilder::from_env().with_cache_dir(cache_dir).with_progress(false).build().map_err(failed)?;
        let repository = Repo::with_revision(self.repository.to_owned(), RepoType::Model, self.revision.to_owned());
        let repository = api.repo(repository);
        let mut paths = bert::FILES.map(PathBuf::from);
        for (path, expected) in paths.iter_mut().zip(self.hashes) {
            let file = path.to_string_lossy().into_owned();
            *path = repository.get(&file).map_err(failed)?;
            self.check(path, expected)?;
        }
        Ok(paths)
    }

    fn check(&self, path: &Path, expected: &str) -> Result<()> {
        let odd = |detail: String| {
            embedder_error(
                self.name,
                format!("{}: {detail}", path.display()),
                "remove the file, it is downloaded again",
            )
        };
        let mut hasher = Sha256::new();
        #[expect(clippy::disallowed_methods, reason = "on the embedding thread")]
        let mut file = File::open(path).map_err(|error| odd(error.to_string()))?;
        std::io::copy(&mut file, &mut hasher).map_err(|error| odd(error.to_string()))?;
        let found: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        match found == expected {
            true => Ok(()),
            false => Err(odd(format!("its contents are not the published ones: SHA-256 {found}, not {expected}"))),
        }
    }
}

//! Where a lake keeps the files of its tables.

/// The lake's `DATA_PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LakeLocation {
    /// An absolute folder, or a URL of an object store; ends with a slash.
    pub data_path: String,
    /// The id by which an object store knows which lake the files are of. `None` where they are local.
    pub lake_id: Option<String>,
}

impl LakeLocation {
    /// Returns whether the files lie outside of the local file system.
    pub fn is_remote(&self) -> bool {
        is_url(&self.data_path)
    }
}

/// Returns whether a path of the lake is a URL.
pub(crate) fn is_url(path: &str) -> bool {
    path.contains("://")
}

//! The folders of a tree in an object store: prefixes, found in one listing of all that is below the root.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use querent_catalog::FileFormat;
use tokio::sync::mpsc::Sender;

use super::walk::{Entries, Walked, dataset, tables};
use crate::tables::external::{Listing, LocatedFile, format_of};

/// Wildcards, and what ends a URL's path.
const NOT_IN_URLS: [char; 5] = ['*', '[', ']', '?', '#'];

/// Sends what the folders are, in order of their paths, until nobody wants to know. `listing` is what is below the root.
pub(super) async fn walk_objects(root: &Path, listing: Listing, output: &Sender<Walked>) {
    for (folder, contents) in folders(root, listing) {
        let partitioned = contents.partitioned;
        let mut found = tables(&folder, &contents.entries, || Ok(partitioned));
        found.extend(contents.entries.datasets.into_iter().map(dataset));
        for walked in found {
            if output.send(as_prefix(walked)).await.is_err() {
                return;
            }
        }
    }
}

/// A prefix, which needs no look for an object of the same name; or why there is no URL for it.
fn as_prefix(walked: Walked) -> Walked {
    match walked {
        Walked::Table { folder, .. } if folder.to_string_lossy().contains(NOT_IN_URLS) => {
            Walked::Other { folder, reason: format!("a table's URL cannot have any of {NOT_IN_URLS:?}") }
        }
        Walked::Table { folder, mut location, format, files } => {
            if folder.to_str() == Some(location.as_str()) {
                location.push('/');
            }
            Walked::Table { folder, location, format, files }
        }
        other @ Walked::Other { .. } => other,
    }
}

#[derive(Default)]
struct Contents {
    entries: Entries,
    /// What is in the folder's partition folders.
    partitioned: Vec<LocatedFile>,
}

fn folders(root: &Path, listing: Listing) -> BTreeMap<PathBuf, Contents> {
    let mut folders: BTreeMap<PathBuf, Contents> = BTreeMap::new();
    if listing.datasets.contains(root) {
        folders.entry(root.to_owned()).or_default().entries.datasets.push(root.to_owned());
        return folders;
    }
    for dataset in &listing.datasets {
        if let Some((contents, false)) = contents_of(&mut folders, root, dataset) {
            contents.entries.datasets.push(dataset.clone());
        }
    }
    for object in listing.files {
        if object.path.ancestors().any(|folder| listing.datasets.contains(folder)) {
            continue;
        }
        let Some((contents, is_partitioned)) = contents_of(&mut folders, root, &object.path) else { continue };
        let format: Option<FileFormat> = format_of(&object.path);
        match (format, is_partitioned) {
            (Some(_), true) => contents.partitioned.extend((object.size > 0).then_some(object)),
            (Some(format), false) => contents.entries.files.entry(format).or_default().push(object),
            // What stands for an empty folder.
            (None, _) if object.size == 0 => {}
            (None, true) => {}
            (None, false) => contents.entries.others.extend(object.path.file_name().map(ToOwned::to_owned)),
        }
    }
    folders
}

/// The folder that something is in, known to those above it. Of what is in partition folders it is the one that they
/// are in, and `true`.
fn contents_of<'a>(
    folders: &'a mut BTreeMap<PathBuf, Contents>,
    root: &Path,
    path: &Path,
) -> Option<(&'a mut Contents, bool)> {
    let parent = path.strip_prefix(root).unwrap_or(path).parent()?;
    let mut folder = root.to_owned();
    let mut is_partitioned = false;
    for part in parent.components() {
        let name = part.as_os_str().to_string_lossy();
        let contents = folders.entry(folder.clone()).or_default();
        if name.split_once('=').is_some_and(|(key, _)| !key.is_empty()) {
            is_partitioned = true;
            contents.entries.partitions = true;
            break;
        }
        folder.push(name.as_ref());
        if contents.entries.folders.last() != Some(&folder) {
            contents.entries.folders.push(folder.clone());
        }
    }
    Some((folders.entry(folder).or_default(), is_partitioned))
}

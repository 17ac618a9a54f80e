//! The folders of a tree in an object store: prefixes, found in one listing of everything below the root.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use querent_catalog::FileFormat;
use tokio::sync::mpsc::Sender;

use super::walk::{Entries, VisitedFolder, dataset, tables};
use crate::tables::external::{LocatedFile, ObjectListing, format_of};

/// Wildcards, and what ends a URL's path.
const NOT_IN_URLS: [char; 5] = ['*', '[', ']', '?', '#'];

/// Sends what each folder is, in order of their paths, until the receiver is dropped. `listing` is what is below the root.
pub(super) async fn walk_objects(root: &Path, listing: ObjectListing, output: &Sender<VisitedFolder>) {
    for (folder, contents) in folders(root, listing) {
        let partitioned = contents.partitioned;
        let mut found = tables(&folder, &contents.entries, || Ok(partitioned));
        found.extend(contents.entries.datasets.into_iter().map(dataset));
        for visited in found {
            if output.send(as_prefix(visited)).await.is_err() {
                return;
            }
        }
    }
}

/// Returns a folder as a prefix, for which no object of the same name is looked up, or why there is no URL for it.
fn as_prefix(visited: VisitedFolder) -> VisitedFolder {
    match visited {
        VisitedFolder::Table { folder, .. } if folder.to_string_lossy().contains(NOT_IN_URLS) => {
            VisitedFolder::Other { folder, reason: format!("a table's URL cannot have any of {NOT_IN_URLS:?}") }
        }
        VisitedFolder::Table { folder, mut location, format, files } => {
            if folder.to_str() == Some(location.as_str()) {
                location.push('/');
            }
            VisitedFolder::Table { folder, location, format, files }
        }
        other @ VisitedFolder::Other { .. } => other,
    }
}

#[derive(Default)]
struct FolderContents {
    entries: Entries,
    /// The files in the folder's partition folders.
    partitioned: Vec<LocatedFile>,
}

fn folders(root: &Path, listing: ObjectListing) -> BTreeMap<PathBuf, FolderContents> {
    let mut folders: BTreeMap<PathBuf, FolderContents> = BTreeMap::new();
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
            // A marker of an empty folder.
            (None, _) if object.size == 0 => {}
            (None, true) => {}
            (None, false) => contents.entries.others.extend(object.path.file_name().map(ToOwned::to_owned)),
        }
    }
    folders
}

/// Returns the folder that an object is in, and registers it with the folders above it. For an object in partition folders
/// it is the folder that they are in, and `true`.
fn contents_of<'a>(
    folders: &'a mut BTreeMap<PathBuf, FolderContents>,
    root: &Path,
    path: &Path,
) -> Option<(&'a mut FolderContents, bool)> {
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

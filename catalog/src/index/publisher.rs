//! Versions of a shared index, which the holder of its lease publishes: the files that are new are laid down on the shelf, then a list
//! that names all of them, then the row of the catalog by which the others take it. What no version names any more is removed
//! when nobody can be copying it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tracing::{debug, warn};
use uuid::Uuid;

use super::IndexPart;
use super::lance::IndexWriter;
use super::published::{self, PublishedFile, PublishedFiles};
use super::shared::{
    LOOKS_APART, OWN_FOR, SharedIndex, TAKEN_FOLDER, TakenVersion, read_list, read_taken, write_taken,
};
use super::shelf::{create_parent, files_below};
use crate::connection::StoreConnection;
use crate::error::{CatalogError, Result};
use crate::leases::WorkLease;
use crate::store::pending;

/// The least time between two versions, and how many times what publishing one takes.
const VERSIONS_APART: Duration = Duration::from_secs(10);
const PUBLISHING_SHARE: u32 = 20;
/// How long a file that no version names any more stays for those who are just copying it.
const GRACE: Duration = Duration::from_secs(15 * 60);
/// Where Lance names files by numbers, which a dataset that lost its last version in a power cut gives a second time.
const NAMED_BY_NUMBER: &str = "_versions/";

/// Publishes versions of the index that the holder of the lease writes.
pub(super) struct Publisher<'p> {
    part: &'p IndexPart,
    shared: &'p SharedIndex,
    lease: &'p WorkLease,
    /// The version that is published, as far as its files are in this server's folder.
    published: Option<TakenVersion>,
    /// Its keys on the shelf, and that of its list, whether its files are here or not.
    named: BTreeSet<String>,
    /// Lance's number of it.
    version: Option<u64>,
    held: i64,
    wanted: i64,
    looked_at: Option<Instant>,
    /// When the next version may be published.
    next_at: Instant,
    /// Files that no version names any more, and since when.
    retired: Vec<(String, Instant)>,
    is_failing: bool,
}

impl<'p> Publisher<'p> {
    pub(super) async fn new(part: &'p IndexPart, shared: &'p SharedIndex, lease: &'p WorkLease) -> Result<Self> {
        let kind = part.kind;
        let row = part.store()?.read(move |connection| published::row(connection, kind)).await?;
        let taken = read_taken(part).await.filter(|taken| row.list.as_ref() == Some(&taken.list));
        let mut publisher = Self {
            part,
            shared,
            lease,
            published: taken,
            named: BTreeSet::new(),
            version: None,
            held: row.held,
            wanted: row.wanted,
            looked_at: None,
            next_at: Instant::now(),
            retired: Vec::new(),
            is_failing: false,
        };
        if let Err(error) = publisher.retire_unknown(row.list.as_deref()).await {
            debug!(%error, "files of the shared schema index that nobody has are left");
        }
        Ok(publisher)
    }

    /// Whether a server waits for rows that are not published yet.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted > self.held
    }

    /// Looks what others want, and publishes what was written where it is time for it. Errors: those of a lease that another
    /// server has; a shelf that is not reached is tried again later.
    pub(super) async fn look(&mut self, writer: &IndexWriter) -> Result<()> {
        if self.looked_at.is_some_and(|at| at.elapsed() < LOOKS_APART) {
            return Ok(());
        }
        self.looked_at = Some(Instant::now());
        self.remove_retired().await;
        let kind = self.part.kind;
        let row = self.part.store()?.read(move |connection| published::row(connection, kind)).await?;
        self.wanted = row.wanted;
        let is_lacking = row.unusable.is_some() && row.unusable == row.list;
        if is_lacking {
            self.published = None;
        }
        let is_new = self.version != Some(writer.version()) || is_lacking;
        if !(is_new || self.is_wanted()) || Instant::now() < self.next_at {
            return Ok(());
        }
        let began = Instant::now();
        let outcome = self.publish(writer, is_new).await;
        let took = began.elapsed();
        // Others make an index of their own after OWN_FOR.
        self.next_at = Instant::now() + VERSIONS_APART.max((took * PUBLISHING_SHARE).min(OWN_FOR / 4));
        match outcome {
            Ok(()) => self.is_failing = false,
            Err(error) if error.code() == "conflict" => return Err(error),
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    warn!(%error, "the schema index cannot be published; other servers search what they have");
                }
            }
        }
        Ok(())
    }

    async fn publish(&mut self, writer: &IndexWriter, is_new: bool) -> Result<()> {
        let kind = self.part.kind;
        if self.is_wanted() {
            self.part.store()?.note_all_rows().await?;
        }
        let recorded =
            move |local: &StoreConnection| Ok((pending::index_state(local, kind)?, published::own_held(local, kind)?));
        let (state, held) = self.part.store()?.pending(recorded).await?;
        let Some(state) = state.filter(|state| state.version == writer.version()) else { return Ok(()) };
        if !is_new && held <= self.held {
            return Ok(());
        }
        let folder = self.part.folder.join(&state.folder);
        // Another dataset has other files of the same names.
        let known = self.published.clone().filter(|taken| taken.folder == state.folder).unwrap_or_default().files;
        let mut files = BTreeMap::new();
        for (path, metadata) in files_below(&folder).await? {
            let is_same = |file: &&PublishedFile| file.bytes == metadata.len() && !path.starts_with(NAMED_BY_NUMBER);
            let file = match known.get(&path).filter(is_same) {
                Some(file) => file.clone(),
                None => {
                    let key = format!("{}/{}", kind.as_str(), Uuid::now_v7().simple());
                    self.shared.shelf.put(&key, &folder.join(&path)).await?;
                    PublishedFile { key, bytes: metadata.len() }
                }
            };
            files.insert(path, file);
        }
        let list = format!("{}/{}.json", kind.as_str(), Uuid::now_v7().simple());
        let version = PublishedFiles::new(&state, held, files.clone());
        let text = serde_json::to_vec(&version).map_err(|error| CatalogError::Internal(error.to_string()))?;
        let scratch = self.part.folder.join(TAKEN_FOLDER).join(format!("list-{}.json", Uuid::now_v7().simple()));
        create_parent(&scratch).await?;
        tokio::fs::write(&scratch, text).await.map_err(|source| CatalogError::of_file(&scratch, source))?;
        let put = self.shared.shelf.put(&list, &scratch).await;
        // The shelf has it, or not.
        let _ = tokio::fs::remove_file(&scratch).await;
        put?;
        let named = list.clone();
        let (store, epoch) = (self.part.store()?, writer.epoch());
        let member = store.member().unwrap_or_default().to_owned();
        let record = move |shared: &StoreConnection| {
            published::require_waited_for(shared, &member, epoch)?;
            published::record(shared, kind, &named, held)
        };
        self.lease.write(&store, record).await?;
        drop(store);
        let kept: BTreeSet<String> = files.values().map(|file| file.key.clone()).chain([list.clone()]).collect();
        let before = std::mem::replace(&mut self.named, kept);
        let now = Instant::now();
        let gone = before.into_iter().filter(|key| !self.named.contains(key));
        self.retired.extend(gone.map(|key| (key, now)));
        let taken = TakenVersion { list, folder: state.folder, files };
        write_taken(self.part, &taken).await?;
        debug!(list = taken.list, files = taken.files.len(), held, "published a version of the schema index");
        (self.published, self.version, self.held) = (Some(taken), Some(state.version), held);
        Ok(())
    }

    async fn remove_retired(&mut self) {
        let retired = std::mem::take(&mut self.retired).into_iter();
        let (old, young): (Vec<_>, Vec<_>) = retired.partition(|(_, since)| since.elapsed() >= GRACE);
        self.retired = young;
        for (key, since) in old {
            if let Err(error) = self.shared.shelf.remove(&key).await {
                debug!(%error, key, "a file of the shared schema index is left for later");
                self.retired.push((key, since));
            }
        }
    }

    /// Finds the files that the version which holds does not name: those of versions before, and of servers that were killed.
    async fn retire_unknown(&mut self, list: Option<&str>) -> Result<()> {
        let scratch = self.part.folder.join(TAKEN_FOLDER);
        tokio::fs::create_dir_all(&scratch).await.map_err(|source| CatalogError::of_file(&scratch, source))?;
        let mut named: BTreeSet<String> = BTreeSet::new();
        if let Some(list) = list {
            let version = read_list(self.shared, &scratch, list).await?;
            named.extend(version.files.into_values().map(|file| file.key));
            named.insert(list.to_owned());
        }
        let prefix = format!("{}/", self.part.kind.as_str());
        let now = Instant::now();
        let unknown = self.shared.shelf.list().await?.into_iter();
        let unknown = unknown.filter(|key| key.starts_with(&prefix) && !named.contains(key));
        self.retired.extend(unknown.map(|key| (key, now)));
        self.named = named;
        Ok(())
    }
}

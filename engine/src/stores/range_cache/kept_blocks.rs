//! Which blocks are on the disk, in the order in which they were used.

use std::collections::HashMap;
use std::sync::Arc;

use hashlink::LruCache;

use super::block_files::CachedObject;

/// A block that is to be removed.
pub(super) type EvictedBlock = (Arc<CachedObject>, u64);

#[derive(Debug)]
pub(super) struct KeptBlocks {
    /// The bytes of each block's file, by the object's name and the block's number.
    blocks: LruCache<(Arc<str>, u64), u64>,
    objects: HashMap<Arc<str>, KeptObject>,
    bytes: u64,
}

#[derive(Debug)]
struct KeptObject {
    object: Arc<CachedObject>,
    blocks: usize,
}

impl Default for KeptBlocks {
    fn default() -> Self {
        Self { blocks: LruCache::new_unbounded(), objects: HashMap::new(), bytes: 0 }
    }
}

impl KeptBlocks {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn object(&self, name: &str) -> Option<Arc<CachedObject>> {
        self.objects.get(name).map(|kept| Arc::clone(&kept.object))
    }

    /// Returns whether a block is there, which is the one used last from now on.
    pub(super) fn touch(&mut self, object: &CachedObject, number: u64) -> bool {
        self.blocks.get(&(Arc::from(object.name.as_str()), number)).is_some()
    }

    /// Adds a block whose file has so many bytes.
    pub(super) fn insert(&mut self, object: &Arc<CachedObject>, number: u64, bytes: u64) {
        let name: Arc<str> = Arc::from(object.name.as_str());
        let kept = self
            .objects
            .entry(Arc::clone(&name))
            .or_insert_with(|| KeptObject { object: Arc::clone(object), blocks: 0 });
        kept.object = Arc::clone(object);
        match self.blocks.insert((name, number), bytes) {
            Some(before) => self.bytes -= before,
            None => kept.blocks += 1,
        }
        self.bytes += bytes;
    }

    /// Takes out the blocks that were not used for the longest time, until no more than `limit` bytes are left.
    pub(super) fn shrink_to(&mut self, limit: u64) -> Vec<EvictedBlock> {
        let mut evicted = Vec::new();
        while self.bytes > limit {
            let Some(((name, number), bytes)) = self.blocks.remove_lru() else { break };
            self.bytes -= bytes;
            evicted.extend(self.give_up(&name).map(|object| (object, number)));
        }
        evicted
    }

    /// Takes out all blocks of an object.
    pub(super) fn remove_object(&mut self, name: &str) -> Vec<EvictedBlock> {
        let gone: Vec<(Arc<str>, u64)> =
            self.blocks.iter().map(|(key, _)| key).filter(|(of, _)| **of == *name).cloned().collect();
        let mut evicted = Vec::with_capacity(gone.len());
        for key in gone {
            self.bytes -= self.blocks.remove(&key).unwrap_or_default();
            evicted.extend(self.give_up(&key.0).map(|object| (object, key.1)));
        }
        evicted
    }

    /// Counts a block of an object less.
    fn give_up(&mut self, name: &Arc<str>) -> Option<Arc<CachedObject>> {
        let kept = self.objects.get_mut(name)?;
        kept.blocks = kept.blocks.saturating_sub(1);
        let (object, is_last) = (Arc::clone(&kept.object), kept.blocks == 0);
        if is_last {
            self.objects.remove(name);
        }
        Some(object)
    }
}

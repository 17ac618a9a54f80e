//! Ranges that are read twice, evicted, damaged, and asked for at once.

use object_store::ObjectStoreExt;
use object_store::memory::InMemory;

use super::*;

const BLOCK: usize = 1 << 20;

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

async fn filled(objects: &[(&str, usize)]) -> Arc<dyn ObjectStore> {
    let store = InMemory::new();
    for (path, length) in objects {
        store.put(&StorePath::from(*path), content(*length).into()).await.unwrap();
    }
    Arc::new(store)
}

fn cached(inner: &Arc<dyn ObjectStore>, folder: &std::path::Path, limit: u64) -> (CachedStore, Arc<RangeCache>) {
    let cache = Arc::new(RangeCache::new(folder.to_owned(), limit));
    (CachedStore::new(Arc::clone(inner), Arc::clone(&cache), "s3://b".into()), cache)
}

async fn part(store: &CachedStore, path: &str, range: Range<u64>) -> Vec<u8> {
    store.get_range(&StorePath::from(path), range).await.unwrap().to_vec()
}

#[tokio::test]
async fn every_range_is_the_stores_own_and_fetched_once() {
    let folder = tempfile::tempdir().unwrap();
    let length = 3 * BLOCK + 100;
    let (store, cache) = cached(&filled(&[("a", length)]).await, folder.path(), 1 << 30);
    let whole = content(length);
    for (start, end) in [(0, 10), (BLOCK - 1, BLOCK + 1), (2 * BLOCK, length), (0, length), (length - 1, length + 50)] {
        let expected = &whole[start..end.min(length)];
        assert_eq!(part(&store, "a", start as u64..end as u64).await, expected, "{start}..{end}");
    }
    let state = cache.state();
    assert_eq!((state.misses, state.bytes), (4, length as u64 + 4 * 8), "{state:?}");
    assert!(store.get_range(&StorePath::from("a"), length as u64..length as u64 + 1).await.is_err());
    assert!(store.get_range(&StorePath::from("b"), 0..1).await.is_err());
}

#[tokio::test]
async fn what_was_used_last_stays_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 2 * (BLOCK as u64 + 8);
    let (store, cache) = cached(&filled(&[("a", BLOCK), ("b", BLOCK), ("c", BLOCK)]).await, folder.path(), limit);
    for path in ["a", "b", "a", "c", "a"] {
        assert_eq!(part(&store, path, 0..9).await, content(9), "{path}");
    }
    let state = cache.state();
    assert_eq!((state.hits, state.misses, state.bytes), (2, 3, limit), "{state:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    assert_eq!(part(&store, "b", 0..9).await, content(9));
    assert_eq!(cache.state().misses, 4, "it had gone");
}

#[tokio::test]
async fn a_later_process_goes_on_with_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let inner = filled(&[("a", 2 * BLOCK + 5)]).await;
    {
        let (store, _) = cached(&inner, folder.path(), 1 << 30);
        part(&store, "a", 0..2 * BLOCK as u64 + 5).await;
    }
    let object = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::write(object.join("unfinished-x"), "half").unwrap();
    // A block that is cut, and one of the right length that has other bytes.
    std::fs::write(object.join("2"), "x").unwrap();
    let mut damaged = std::fs::read(object.join("1")).unwrap();
    damaged[7] ^= 1;
    std::fs::write(object.join("1"), damaged).unwrap();
    let (store, cache) = cached(&inner, folder.path(), 1 << 30);
    assert_eq!(part(&store, "a", 0..2 * BLOCK as u64 + 5).await, content(2 * BLOCK + 5));
    assert_eq!((cache.state().hits, cache.state().misses), (1, 2));
    assert!(!object.join("unfinished-x").exists());
    std::fs::write(object.join("object.json"), "{}").unwrap();
    let (store, cache) = cached(&inner, folder.path(), 1 << 30);
    assert_eq!(part(&store, "a", 3..9).await, content(9)[3..]);
    assert_eq!((cache.state().hits, cache.state().misses), (0, 1));
}

#[tokio::test]
async fn another_version_of_an_object_is_noticed_when_a_part_of_it_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let inner = filled(&[("a", 2 * BLOCK)]).await;
    let (store, _) = cached(&inner, folder.path(), 1 << 30);
    part(&store, "a", 0..9).await;
    inner.put(&StorePath::from("a"), vec![7_u8; BLOCK + 9].into()).await.unwrap();
    assert_eq!(part(&store, "a", 0..BLOCK as u64 + 9).await, vec![7; BLOCK + 9]);
    assert_eq!(part(&store, "a", 0..9).await, [7; 9]);
}

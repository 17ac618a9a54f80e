//! Files that are small on their way and large in memory.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// One file, as the body of an import.
pub(super) struct Upload {
    pub(super) name: &'static str,
    pub(super) format: &'static str,
    pub(super) body: Vec<u8>,
}

/// Returns all of them, compressed.
pub(super) fn uploads() -> Vec<Upload> {
    const LARGE: usize = 1_500 << 20;
    let upload = |name, format, body| Upload { name, format, body };
    let keys: Vec<String> = (0..100_000).map(|key| format!("\"k{key}\":1")).collect();
    let many_keys: String = (0..100_000).map(|key| format!("{{\"k{key}\":1}}\n")).collect();
    let columns: Vec<String> = (0..200_000).map(|column| format!("c{column}")).collect();
    vec![
        upload("one line of 1.5 GB, CSV", "csv", packed(b"a,b\n1,", b"x", LARGE)),
        upload("one line of 1.5 GB, NDJSON", "ndjson", packed(b"{\"a\": \"", b"x", LARGE)),
        upload("a quoted field of 1.5 GB", "csv", packed(b"a,b\n1,\"", b"x\n", LARGE)),
        upload("a header of 1.5 GB", "csv", packed(b"", b"column", LARGE)),
        upload("many short lines", "csv", packed(b"a\n", b"1\n", LARGE / 4)),
        upload("a record of 100,000 keys", "ndjson", packed(format!("{{{}}}\n", keys.join(",")).as_bytes(), b"", 0)),
        upload("100,000 records of a key each", "ndjson", packed(many_keys.as_bytes(), b"", 0)),
        upload("200,000 columns", "csv", packed(format!("{}\n", columns.join(",")).as_bytes(), b"1,", 400_000)),
        upload("nested arrays", "ndjson", packed(b"{\"a\": ", b"[", 50 << 20)),
    ]
}

/// Returns a beginning and so many bytes of a part that repeats, compressed.
fn packed(first: &[u8], part: &[u8], bytes: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(first).unwrap();
    let block = part.repeat((1 << 20) / part.len().max(1));
    let mut left = bytes;
    while left > 0 {
        let now = left.min(block.len());
        encoder.write_all(&block[..now]).unwrap();
        left -= now;
    }
    encoder.finish().unwrap()
}

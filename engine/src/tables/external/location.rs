//! Finds the files of a location: one file, a folder with everything below it, or a glob.
//!
//! Names that begin with `.` or `_` are skipped below a folder (`_SUCCESS`, `.crc`), and so is what a symbolic link
//! leads to outside of it: a folder never stands for more than what lies in it. No file is opened.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::{ObjectMeta, ObjectStore};
use querent_catalog::FileFormat;

use super::file_reader::open_local;
use super::reader_options::bad_option;
use super::unreadable;
use crate::error::{EngineError, Result};
use crate::functions::byte_of_hex;

/// A file of a table.
#[derive(Debug, Clone)]
pub(crate) struct LocatedFile {
    /// The absolute path or URL, for messages and for the file's ending.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// Last change. No two versions of a local file have the same one.
    pub modified: SystemTime,
    /// The number that the file system gives a local file, which another file at the same path does not have.
    pub inode: Option<u64>,
    /// The `key=value` folders between the location and the file, in order; `None` is Hive's null.
    pub partition: Vec<(String, Option<String>)>,
    /// Where its bytes are, unless they are at the path.
    pub object: Option<StoredObject>,
}

/// A file in an object store or on a web server.
#[derive(Debug, Clone)]
pub(crate) struct StoredObject {
    /// What it is read from.
    pub store: Arc<dyn ObjectStore>,
    /// The store as DataFusion asks for it.
    pub url: ObjectStoreUrl,
    /// The object as the store names it.
    pub meta: ObjectMeta,
}

/// How globs match.
pub(super) const GLOB: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// The folder of a Lance dataset's manifests.
pub(super) const LANCE_VERSIONS: &str = "_versions";
/// The clock of a local file system moves on in steps of at most 10 ms; twice that.
const CLOCK_STEP: Duration = Duration::from_millis(20);
/// The folder that Hive writes for a null value.
const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Returns the non-empty files of a location in order of their paths, or the one file of JSON that it names, which may have no
/// line. Blocks. Errors: `no_files`, `location_not_allowed`, and `bad_data` for what may not be read.
pub(crate) fn locate(location: &str, format: FileFormat) -> Result<Vec<LocatedFile>> {
    let path = Path::new(location);
    refuse_closed(&base_folder(location))?;
    let mut found = Vec::new();
    if let Ok(metadata) = std::fs::metadata(path) {
        if format == FileFormat::Lance {
            found.extend(is_lance(path).then(|| dataset(path, &metadata)));
        } else if metadata.is_dir() {
            let base = canonical(path)?;
            walk(path, path, &base, Some(format), &mut BTreeSet::new(), &mut found)?;
        } else if metadata.is_file() {
            found.push(located(path, path.parent().unwrap_or(path), &metadata));
        } else {
            return Err(read_once(location));
        }
    } else if is_glob(location) {
        expand(location, format, &mut found)?;
    }
    let are_empty = !found.is_empty();
    let may_be_empty = format == FileFormat::Ndjson && path.is_file();
    found.retain(|file| file.size > 0 || may_be_empty);
    if found.is_empty() {
        let empty = if are_empty { "non-empty " } else { "" };
        let is_csv = format == FileFormat::Csv;
        let format = format!("{empty}{}", format_name(format));
        let is_there = path.exists() || is_glob(location);
        let what = match () {
            () if !is_there => ", which is not there",
            () if are_empty && is_csv && path.is_file() => {
                ", which holds no byte; with a line that names columns it is a table without rows"
            }
            () => "",
        };
        return Err(EngineError::NoFiles { location: format!("{location}{what}"), format });
    }
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// Returns the error of what is neither a file nor a folder.
fn read_once(location: &str) -> EngineError {
    let detail = "is no file but a pipe or a device, and files are read more than once; write it to a file first";
    EngineError::BadData { location: location.to_owned(), detail: detail.to_owned() }
}

/// Returns an error for a file or a folder that cannot be looked at, so that nobody is told that it is not there.
fn refuse_closed(path: &Path) -> Result<()> {
    let looked = std::fs::metadata(path).and_then(|metadata| match metadata.is_dir() {
        true => std::fs::read_dir(path).map(drop),
        false => Ok(()),
    });
    match looked {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(unreadable(path, &error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns what is known of a file below a folder; `None` where a link leads nowhere. Errors: it may not be looked at.
fn metadata_below(path: &Path) -> Result<Option<std::fs::Metadata>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(unreadable(path, &error)),
        Err(_) => Ok(None),
    }
}

/// Returns the non-empty files of every known format below a folder, in order of their paths. Blocks.
pub(crate) fn locate_all(folder: &Path) -> Result<Vec<LocatedFile>> {
    let mut found = Vec::new();
    walk(folder, folder, &canonical(folder)?, None, &mut BTreeSet::new(), &mut found)?;
    found.retain(|file| file.size > 0);
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// Returns a file that was found by other means, without partition values. Blocks.
pub(crate) fn locate_one(path: &Path) -> Result<LocatedFile> {
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    Ok(located(path, path.parent().unwrap_or(path), &metadata))
}

/// Returns whether a folder is a Lance dataset. Blocks.
pub(crate) fn is_lance(folder: &Path) -> bool {
    folder.join(LANCE_VERSIONS).is_dir()
}

/// Returns a dataset as one file; Lance finds its files itself.
fn dataset(folder: &Path, metadata: &std::fs::Metadata) -> LocatedFile {
    let folder = located(folder, folder.parent().unwrap_or(folder), metadata);
    LocatedFile { size: folder.size.max(1), ..folder }
}

/// Returns the format that a file name's ending stands for, compression aside.
pub(crate) fn format_of(path: &Path) -> Option<FileFormat> {
    let name = path.file_name()?.to_str()?.to_lowercase();
    let stem = match compression_of(path) {
        FileCompressionType::UNCOMPRESSED => name.as_str(),
        _ => name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem),
    };
    match stem.rsplit_once('.')?.1 {
        "parquet" | "parq" | "pq" => Some(FileFormat::Parquet),
        "csv" | "tsv" | "tab" => Some(FileFormat::Csv),
        "ndjson" | "jsonl" | "json" | "geojson" => Some(FileFormat::Ndjson),
        "arrow" | "arrows" | "ipc" | "feather" => Some(FileFormat::Arrow),
        "xlsx" | "xlsm" | "xlsb" | "xls" | "ods" => Some(FileFormat::Xlsx),
        _ => None,
    }
}

/// Returns the format of a file whose name does not tell it, by its first bytes. Blocks. Errors: they are of no format that
/// is read.
fn format_of_content(path: &Path) -> Result<FileFormat> {
    const SAMPLE: u64 = 4 << 10;
    let mut start = Vec::new();
    let bytes = compression_of(path).convert_read(open_local(path)?)?;
    bytes.take(SAMPLE).read_to_end(&mut start).map_err(|error| unreadable(path, &error))?;
    let text = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&start).trim_ascii_start();
    let is_utf_16 = start.starts_with(b"\xFF\xFE") || start.starts_with(b"\xFE\xFF");
    let detail = match text {
        [b'P', b'A', b'R', b'1', ..] => return Ok(FileFormat::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => return Ok(FileFormat::Arrow),
        [b'P', b'K', 3, 4, ..] | [0xD0, 0xCF, 0x11, 0xE0, ..] => return Ok(FileFormat::Xlsx),
        [b'{', ..] | [b'[', b'{' | b'[' | b'\n' | b'\r' | b' ' | b'\t', ..] => return Ok(FileFormat::Ndjson),
        _ => match document(&start) {
            Some(detail) => detail,
            None if is_utf_16 || !start.contains(&0) => return Ok(FileFormat::Csv),
            None => "is of no known format; name the format, or convert it to CSV or Parquet",
        },
    };
    Err(EngineError::BadData { location: path.display().to_string(), detail: detail.to_owned() })
}

/// Returns what to do about a file whose first bytes are those of a document or a database and not of records.
pub(super) fn document(start: &[u8]) -> Option<&'static str> {
    let text = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start).trim_ascii_start();
    let begins = |with: &str| text.get(..with.len()).is_some_and(|first| first.eq_ignore_ascii_case(with.as_bytes()));
    if ["<?xml", "<!doctype", "<html", "<table>", "<table "].into_iter().any(begins) {
        return Some("is XML or HTML, which is not read; convert it to CSV or JSON");
    }
    if begins("%PDF-") {
        return Some("is a PDF, which is not read; export its tables as CSV");
    }
    // The number of its version follows, of eight bytes.
    let is_duckdb = |magic: &[u8]| magic.starts_with(b"DUCK") && magic.ends_with(&[0; 7]);
    if start.get(8..20).is_some_and(is_duckdb) {
        return Some("is a DuckDB database; export a table: duckdb FILE \"COPY t TO 't.parquet'\"");
    }
    let is_orc = start.starts_with(b"ORC") && start.iter().take(64).any(|byte| *byte == 0);
    if is_orc || start.starts_with(b"Obj\x01") {
        return Some("is ORC or Avro, which is not read; convert it to Parquet, for example with pandas or Spark");
    }
    begins("SQLite format 3")
        .then_some("is a SQLite database; export a table: sqlite3 -header -csv FILE 'SELECT * FROM t' > t.csv")
}

/// The format that all files below a location have, when their endings say one and the same, or the one that a single file
/// with another ending begins like.
pub(crate) fn infer_format(location: &str) -> Result<FileFormat> {
    refuse_closed(&base_folder(location))?;
    if is_lance(Path::new(location)) {
        return Ok(FileFormat::Lance);
    }
    if let Some(format) = format_of(Path::new(location)) {
        return Ok(format);
    }
    let path = Path::new(location);
    if path.is_file() && path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        return format_of_content(path);
    }
    if path.exists() && !path.is_file() && !path.is_dir() {
        return Err(read_once(location));
    }
    let mut formats = Vec::new();
    for format in [FileFormat::Parquet, FileFormat::Csv, FileFormat::Ndjson, FileFormat::Arrow, FileFormat::Xlsx] {
        if locate(location, format).is_ok_and(|files| files.iter().any(|file| format_of(&file.path) == Some(format))) {
            formats.push(format);
        }
    }
    only_format(location, &formats)
}

/// Returns the format and the files that an import of a local location reads, in order of their paths. Blocks. Errors: those of
/// [`infer_format`] and [`locate`].
pub(crate) fn format_and_files(location: &str, format: Option<FileFormat>) -> Result<(FileFormat, Vec<PathBuf>)> {
    let format = match format {
        Some(format) => format,
        None => infer_format(location)?,
    };
    let files = locate(location, format)?;
    Ok((format, files.into_iter().map(|file| file.path).collect()))
}

/// Returns the format that all files of a location have.
pub(super) fn only_format(location: &str, formats: &[FileFormat]) -> Result<FileFormat> {
    match formats {
        [only] => Ok(*only),
        [] => Err(EngineError::NoFiles {
            location: location.to_string(),
            format: "parquet, csv, ndjson, arrow, xlsx or lance".to_string(),
        }),
        several => Err(EngineError::BadData {
            location: location.to_string(),
            detail: format!(
                "holds files of several formats ({}); name the format, or the files of one by a glob such as \"*.csv\"",
                several.iter().map(|format| format_name(*format)).collect::<Vec<_>>().join(", ")
            ),
        }),
    }
}

/// Returns the compression that a file name's ending stands for.
pub(crate) fn compression_of(path: &Path) -> FileCompressionType {
    match path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase).as_deref() {
        Some("gz") => FileCompressionType::GZIP,
        Some("zst" | "zstd") => FileCompressionType::ZSTD,
        Some("bz2") => FileCompressionType::BZIP2,
        Some("xz") => FileCompressionType::XZ,
        _ => FileCompressionType::UNCOMPRESSED,
    }
}

/// Returns the compression that an option names.
pub(crate) fn compression(value: &str) -> Result<FileCompressionType> {
    Ok(match value.to_lowercase().as_str() {
        "" | "none" | "uncompressed" => FileCompressionType::UNCOMPRESSED,
        "gz" | "gzip" => FileCompressionType::GZIP,
        "zst" | "zstd" => FileCompressionType::ZSTD,
        "bz2" | "bzip2" => FileCompressionType::BZIP2,
        "xz" => FileCompressionType::XZ,
        _ => return Err(bad_option("compression", value, "gzip, zstd, bzip2, xz or none")),
    })
}

/// Returns the name that [`compression`] reads.
pub(crate) fn compression_name(compression: &FileCompressionType) -> &'static str {
    match *compression {
        FileCompressionType::GZIP => "gzip",
        FileCompressionType::ZSTD => "zstd",
        FileCompressionType::BZIP2 => "bzip2",
        FileCompressionType::XZ => "xz",
        _ => "none",
    }
}

/// Returns the format as messages and settings spell it.
pub(crate) fn format_name(format: FileFormat) -> &'static str {
    match format {
        FileFormat::Parquet => "parquet",
        FileFormat::Csv => "csv",
        FileFormat::Ndjson => "ndjson",
        FileFormat::Arrow => "arrow",
        FileFormat::Lance => "lance",
        FileFormat::Xlsx => "xlsx",
    }
}

/// Returns the part of a location before the first wildcard: what a caller has to be allowed to read.
pub(crate) fn base_folder(location: &str) -> PathBuf {
    if !is_glob(location) || Path::new(location).exists() {
        return PathBuf::from(location);
    }
    Path::new(location).components().take_while(|part| !is_glob(&part.as_os_str().to_string_lossy())).collect()
}

fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn expand(location: &str, format: FileFormat, found: &mut Vec<LocatedFile>) -> Result<()> {
    let bad = |detail: String| EngineError::BadData { location: location.to_string(), detail };
    let base = base_folder(location);
    let Ok(canonical_base) = canonical(&base) else { return Ok(()) };
    let matches = glob::glob_with(location, GLOB).map_err(|error| bad(format!("not a glob: {error}")))?;
    let mut visited = BTreeSet::new();
    for entry in matches {
        let path = entry.map_err(|error| bad(error.to_string()))?;
        let Some(metadata) = metadata_below(&path)? else { continue };
        if !canonical(&path)?.starts_with(&canonical_base) {
            if metadata.is_file() {
                return Err(leads_elsewhere(&path));
            }
            continue;
        }
        if metadata.is_dir() {
            walk(&path, &base, &canonical_base, Some(format), &mut visited, found)?;
        } else {
            found.push(located(&path, &base, &metadata));
        }
    }
    Ok(())
}

/// Adds the files below a folder. `visited` ends the loops that links can make. Without a format, files of all are added.
fn walk(
    folder: &Path,
    base: &Path,
    canonical_base: &Path,
    format: Option<FileFormat>,
    visited: &mut BTreeSet<PathBuf>,
    found: &mut Vec<LocatedFile>,
) -> Result<()> {
    if !visited.insert(canonical(folder)?) {
        return Ok(());
    }
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with(['.', '_']));
        if hidden {
            continue;
        }
        let Some(metadata) = metadata_below(&path)? else { continue };
        let is_wanted =
            metadata.is_file() && format_of(&path).is_some_and(|found| format.is_none_or(|wanted| wanted == found));
        if !canonical(&path)?.starts_with(canonical_base) {
            if is_wanted {
                return Err(leads_elsewhere(&path));
            }
            continue;
        }
        if metadata.is_dir() {
            walk(&path, base, canonical_base, format, visited, found)?;
        } else if is_wanted {
            found.push(located(&path, base, &metadata));
        }
    }
    Ok(())
}

/// Returns the error of a link to a file elsewhere, whose rows would be missing. Folders elsewhere are no part of a folder.
fn leads_elsewhere(link: &Path) -> EngineError {
    EngineError::LocationNotAllowed {
        location: link.display().to_string(),
        reason: "it is a link that leads out of the folder; name it by itself, or put a copy in its place".to_owned(),
    }
}

fn located(path: &Path, base: &Path, metadata: &std::fs::Metadata) -> LocatedFile {
    LocatedFile {
        path: path.to_path_buf(),
        size: metadata.len(),
        modified: changed_at(metadata),
        inode: Some(metadata.ino()),
        partition: partition_of(path.strip_prefix(base).unwrap_or(Path::new(""))),
        object: None,
    }
}

/// Returns when a file was changed: its bytes, or what the file system says of it, since a copy may keep its original's time. What
/// was changed just now may be changed again at the same time of the file system's clock, so that it has the time of this call,
/// which no other call has.
fn changed_at(metadata: &std::fs::Metadata) -> SystemTime {
    let now = SystemTime::now();
    let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let changed = match (u64::try_from(metadata.ctime()), u32::try_from(metadata.ctime_nsec())) {
        (Ok(seconds), Ok(nanoseconds)) => SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds),
        _ => SystemTime::UNIX_EPOCH,
    };
    // A time that is yet to come would hide the changes until then.
    let last = if written > now { changed } else { written.max(changed) };
    match now.duration_since(last) {
        Ok(age) if age >= CLOCK_STEP => last,
        _ => now,
    }
}

/// Returns the `key=value` folders of a path below a location.
pub(super) fn partition_of(below: &Path) -> Vec<(String, Option<String>)> {
    let folders = below.parent().unwrap_or(Path::new("")).components();
    folders
        .filter_map(|part| match part {
            Component::Normal(name) => {
                let (key, value) = name.to_str()?.split_once('=')?;
                let value = percent_decoded(value);
                Some((key.to_string(), (value != HIVE_NULL).then_some(value)))
            }
            _ => None,
        })
        .collect()
}

/// Decodes a folder's name, in which Hive writes characters that it may not hold as `%3A`.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten().and_then(byte_of_hex);
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_string())
}

fn canonical(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|error| unreadable(path, &error))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may wait")]
mod tests {
    use super::*;

    #[test]
    fn endings_name_format_and_compression() {
        assert_eq!(format_of(Path::new("/a/b.csv.gz")), Some(FileFormat::Csv));
        assert_eq!(format_of(Path::new("/a/b.JSONL")), Some(FileFormat::Ndjson));
        assert_eq!(format_of(Path::new("/a/part-0.parquet")), Some(FileFormat::Parquet));
        assert_eq!(format_of(Path::new("/a/b.txt")), None);
        assert_eq!(format_of(Path::new("/a/gz")), None);
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_said_to_be_absent() {
        let folder = tempfile::tempdir().unwrap();
        let in_circles = folder.path().join("a.csv");
        std::os::unix::fs::symlink(&in_circles, &in_circles).unwrap();
        let location = in_circles.display().to_string();
        let error = locate(&location, FileFormat::Csv).unwrap_err();
        assert!(matches!(error, EngineError::BadData { .. }), "{error}");
        assert!(matches!(infer_format(&location), Err(EngineError::BadData { .. })));
        let absent = folder.path().join("b.csv").display().to_string();
        assert!(matches!(locate(&absent, FileFormat::Csv), Err(EngineError::NoFiles { .. })));
        let closed = folder.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::write(closed.join("c.csv"), "x\n1\n").unwrap();
        std::fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        // Root may look at everything.
        if std::fs::read_dir(&closed).is_err() {
            let pattern = format!("{}/*.csv", closed.display());
            let file = closed.join("c.csv").display().to_string();
            for location in [closed.display().to_string(), pattern, file] {
                let error = locate(&location, FileFormat::Csv).unwrap_err();
                assert!(error.to_string().ends_with("the server may not read it"), "{error}");
            }
        }
        std::fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    }

    #[test]
    fn hive_values_are_unescaped() {
        assert_eq!(percent_decoded("2020-01-01 00%3A00"), "2020-01-01 00:00");
        assert_eq!(percent_decoded("100%"), "100%");
        assert_eq!(percent_decoded("5%+1"), "5%+1");
    }

    #[test]
    fn the_base_of_a_glob_has_no_wildcard() {
        assert_eq!(base_folder("/data/year=*/part-?.csv"), PathBuf::from("/data"));
        assert_eq!(base_folder("/data/t"), PathBuf::from("/data/t"));
    }
}

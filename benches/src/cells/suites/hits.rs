//! A synthetic table in the shape of ClickBench's `hits`: its column names and types, and what its documentation and queries
//! tell of its cardinalities, skew and lengths of texts. The rows are made up, so figures on them are ours alone.
//!
//! - Rows are in the order of the original's key: counter, date. Counter 62 has a hundredth of them; the rest is by rank.
//! - A tenth as many users, texts and addresses as rows or thereabouts, the frequent ones much more often than the others.
//! - Search phrases are empty in 87 of 100 rows, phone models in 94, advertising engines 0 in 99.4.
//! - The values that the queries name are there.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::Failure;

const ROWS_OF_GROUP: u64 = 250_000;
/// 2013-07-01, in days since 1970.
const FIRST_DAY: i32 = 15_887;
const DAYS: u64 = 31;
/// Counter of the last seven queries, and its share of the rows.
const COUNTER: i32 = 62;
const COUNTER_SHARE: f64 = 0.01;
/// A user, a page and a referrer that queries look for.
const USER: i64 = 435_090_932_899_640_449;
const PAGE: i64 = 2_868_770_270_353_813_622;
const REFERRER: i64 = 3_594_120_000_172_545_465;

/// How a column's values come about.
enum HitValues {
    /// One of so many small numbers, 0 in a share of the rows.
    Small(u64, f64),
    /// A number of 32 bits by rank among so many a row.
    Address(f64),
    /// A number of 64 bits, another in each row.
    Unique,
    User,
    Counter,
    Day,
    Second,
    Url(f64),
    Hash(f64, i64),
    Title,
    Phrase,
    Model,
    /// A short text, empty in a share of the rows.
    Short(f64),
    Width,
    Sources,
}

/// Writes `rows` rows to a file. Blocks.
#[expect(clippy::disallowed_methods, reason = "runs on a thread that may block")]
pub(super) fn write(path: &Path, rows: u64) -> Result<(), Failure> {
    let columns = columns();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(usize::try_from(ROWS_OF_GROUP).ok())
        .build();
    let mut writer = None;
    let mut start = 0;
    while start < rows {
        let end = (start + ROWS_OF_GROUP).min(rows);
        let arrays = columns
            .iter()
            .enumerate()
            .map(|(number, (name, values))| (*name, array(values, number as u64, start..end, rows)));
        let batch = RecordBatch::try_from_iter(arrays)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(ArrowWriter::try_new(File::create(path)?, batch.schema(), Some(properties.clone()))?),
        };
        writer.write(&batch)?;
        start = end;
    }
    if let Some(writer) = writer {
        writer.close()?;
    }
    Ok(())
}

/// A number that depends on a row and a column only, and looks random.
pub(super) fn random(row: u64, column: u64) -> u64 {
    let mut mixed = row.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ column.wrapping_mul(0xD1B5_4A32_D192_ED03);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// A number from 0 to 1.
pub(super) fn share(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// A rank among `count`, the first ones much more often than the last.
pub(super) fn rank(random: u64, count: f64) -> u64 {
    count.max(1.0).powf(share(random)) as u64 - 1
}

fn array(values: &HitValues, column: u64, rows: std::ops::Range<u64>, all: u64) -> ArrayRef {
    let many = all as f64;
    let draw = move |row: u64| random(row, column);
    // Texts and their hashes go together: both are of the same rank.
    let page = move |row: u64, part: f64| rank(random(row, 1_000), many * part);
    let place = move |row: u64| place_of(row, all);
    match values {
        HitValues::Small(count, zeros) => Arc::new(Int16Array::from_iter_values(rows.map(|row| {
            let drawn = draw(row);
            if share(drawn) < *zeros { 0 } else { (rank(drawn.rotate_left(17), *count as f64) + 1) as i16 }
        }))),
        HitValues::Width => Arc::new(Int16Array::from_iter_values(
            rows.map(|row| [1366, 1920, 1280, 1024, 1600, 1680, 1440, 768, 320, 1638][rank(draw(row), 10.0) as usize]),
        )),
        HitValues::Sources => Arc::new(Int16Array::from_iter_values(
            rows.map(|row| [-1, 0, 6, 1, 2, 3, 4, 5, 7, 8][rank(draw(row), 10.0) as usize]),
        )),
        HitValues::Address(part) => Arc::new(Int32Array::from_iter_values(
            rows.map(|row| (random(rank(draw(row), many * part), column) >> 33) as i32),
        )),
        HitValues::Counter => Arc::new(Int32Array::from_iter_values(rows.map(|row| place(row).0))),
        HitValues::Unique => Arc::new(Int64Array::from_iter_values(rows.map(|row| (draw(row) >> 1) as i64))),
        HitValues::User => Arc::new(Int64Array::from_iter_values(rows.map(|row| match rank(draw(row), many * 0.18) {
            1_000 => USER,
            user => (random(user, 2_000) >> 1) as i64,
        }))),
        HitValues::Hash(part, named) => {
            Arc::new(Int64Array::from_iter_values(rows.map(|row| match page(row, *part) {
                3 => *named,
                page => (random(page, column) >> 1) as i64,
            })))
        }
        HitValues::Day => Arc::new(Date32Array::from_iter_values(rows.map(|row| FIRST_DAY + place(row).1))),
        HitValues::Second => Arc::new(TimestampMicrosecondArray::from_iter_values(
            rows.map(|row| (i64::from(FIRST_DAY + place(row).1) * 86_400 + (draw(row) % 86_400) as i64) * 1_000_000),
        )),
        HitValues::Url(part) => texts(rows.map(|row| url(page(row, *part)))),
        HitValues::Title => texts(rows.map(|row| title(page(row, 0.1)))),
        HitValues::Phrase => texts(rows.map(|row| match share(draw(row)) < 0.87 {
            true => String::new(),
            false => words(rank(draw(row).rotate_left(23), many * 0.06), 3),
        })),
        HitValues::Model => texts(rows.map(|row| match share(draw(row)) < 0.94 {
            true => String::new(),
            false => words(rank(draw(row).rotate_left(23), 166.0), 1),
        })),
        HitValues::Short(empty) => texts(rows.map(|row| match share(draw(row)) < *empty {
            true => String::new(),
            false => words(rank(draw(row).rotate_left(23), 5_000.0), 2),
        })),
    }
}

fn texts(texts: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(texts))
}

/// The counter and the day of a row: the rows of a counter lie together, by day.
fn place_of(row: u64, all: u64) -> (i32, i32) {
    const COUNTERS: f64 = 6_500.0;
    let at = row as f64 / all as f64;
    let day = |begin: f64, end: f64| (((at - begin) / (end - begin) * DAYS as f64) as i32).min(DAYS as i32 - 1);
    if at < COUNTER_SHARE {
        return (COUNTER, day(0.0, COUNTER_SHARE));
    }
    // Shares fall with the rank, as in `rank`: counter n ends at log(n + 1) of log(all counters).
    let rest = (at - COUNTER_SHARE) / (1.0 - COUNTER_SHARE);
    let number = COUNTERS.powf(rest) as u64;
    let edge = |number: u64| COUNTER_SHARE + (number as f64).log(COUNTERS) * (1.0 - COUNTER_SHARE);
    (number as i32 + 100, day(edge(number), edge(number + 1)).max(0))
}

/// The text of a page: the host by rank, 60 to 110 characters in all. One in 200 is of or about Google.
fn url(page: u64) -> String {
    let host = random(page, 3_000);
    let (site, path) = (rank(host, 20_000.0), random(page, 3_001));
    let scheme = if host.is_multiple_of(20) { "https" } else { "http" };
    if host.is_multiple_of(200) {
        return format!("{scheme}://www.google.ru/search?q={}&page={page}", words(path, 2).replace(' ', "+"));
    }
    let dotted = if host.is_multiple_of(3) { "www." } else { "" };
    format!(
        "{scheme}://{dotted}{}.ru/{}/{page}?from={:x}",
        words(site, 1),
        words(path, 3).replace(' ', "-"),
        path >> 20
    )
}

fn title(page: u64) -> String {
    let drawn = random(page, 3_002);
    match drawn.is_multiple_of(300) {
        true => format!("{} Google {}", words(drawn, 3), words(drawn >> 7, 3)),
        false => words(drawn, 4 + drawn % 5),
    }
}

/// Some Cyrillic words that depend on a number only.
fn words(number: u64, count: u64) -> String {
    const SYLLABLES: [&str; 32] = [
        "ко", "ва", "ми", "ре", "ста", "но", "ли", "про", "да", "че", "гу", "пе", "ша", "бо", "ти", "зна", "ку", "ле",
        "фо", "ра", "жи", "мо", "се", "ны", "ту", "ха", "ви", "ле", "цо", "ды", "юр", "яв",
    ];
    let mut text = String::new();
    for word in 0..count {
        if word > 0 {
            text.push(' ');
        }
        let mut drawn = random(number, 4_000 + word);
        for _ in 0..2 + drawn % 3 {
            drawn = drawn.rotate_left(5);
            text.push_str(SYLLABLES[(drawn % 32) as usize]);
        }
    }
    text
}

/// The columns by name, in the original's order.
fn columns() -> Vec<(&'static str, HitValues)> {
    use HitValues::{
        Address, Counter, Day, Hash, Model, Phrase, Second, Short, Small, Sources, Title, Unique, Url, User, Width,
    };
    vec![
        ("WatchID", Unique),
        ("JavaEnable", Small(1, 0.2)),
        ("Title", Title),
        ("GoodEvent", Small(1, 0.0)),
        ("EventTime", Second),
        ("EventDate", Day),
        ("CounterID", Counter),
        ("ClientIP", Address(0.1)),
        ("RegionID", Address(0.0009)),
        ("UserID", User),
        ("CounterClass", Small(2, 0.7)),
        ("OS", Small(60, 0.02)),
        ("UserAgent", Small(80, 0.02)),
        ("URL", Url(0.18)),
        ("Referer", Url(0.15)),
        ("IsRefresh", Small(1, 0.9)),
        ("RefererCategoryID", Small(500, 0.8)),
        ("RefererRegionID", Address(0.0005)),
        ("URLCategoryID", Small(700, 0.3)),
        ("URLRegionID", Address(0.0005)),
        ("ResolutionWidth", Width),
        ("ResolutionHeight", Width),
        ("ResolutionDepth", Small(32, 0.1)),
        ("FlashMajor", Small(12, 0.2)),
        ("FlashMinor", Small(30, 0.3)),
        ("FlashMinor2", Short(0.9)),
        ("NetMajor", Small(4, 0.8)),
        ("NetMinor", Small(8, 0.8)),
        ("UserAgentMajor", Small(40, 0.1)),
        ("UserAgentMinor", Short(0.3)),
        ("CookieEnable", Small(1, 0.01)),
        ("JavascriptEnable", Small(1, 0.01)),
        ("IsMobile", Small(1, 0.94)),
        ("MobilePhone", Small(60, 0.94)),
        ("MobilePhoneModel", Model),
        ("Params", Short(0.97)),
        ("IPNetworkID", Address(0.02)),
        ("TraficSourceID", Sources),
        ("SearchEngineID", Small(90, 0.87)),
        ("SearchPhrase", Phrase),
        ("AdvEngineID", Small(18, 0.9937)),
        ("IsArtifical", Small(1, 0.95)),
        ("WindowClientWidth", Small(2_000, 0.05)),
        ("WindowClientHeight", Small(1_500, 0.05)),
        ("ClientTimeZone", Small(24, 0.02)),
        ("ClientEventTime", Second),
        ("SilverlightVersion1", Small(6, 0.6)),
        ("SilverlightVersion2", Small(2, 0.9)),
        ("SilverlightVersion3", Address(0.000_01)),
        ("SilverlightVersion4", Small(3, 0.98)),
        ("PageCharset", Short(0.2)),
        ("CodeVersion", Address(0.000_01)),
        ("IsLink", Small(1, 0.9)),
        ("IsDownload", Small(1, 0.99)),
        ("IsNotBounce", Small(1, 0.6)),
        ("FUniqID", Unique),
        ("OriginalURL", Short(0.95)),
        ("HID", Address(0.5)),
        ("IsOldCounter", Small(1, 0.99)),
        ("IsEvent", Small(1, 0.99)),
        ("IsParameter", Small(1, 0.98)),
        ("DontCountHits", Small(1, 0.95)),
        ("WithHash", Small(1, 0.97)),
        ("HitColor", Short(0.0)),
        ("LocalEventTime", Second),
        ("Age", Small(70, 0.8)),
        ("Sex", Small(2, 0.8)),
        ("Income", Small(4, 0.8)),
        ("Interests", Small(9_000, 0.6)),
        ("Robotness", Small(5, 0.9)),
        ("RemoteIP", Address(0.1)),
        ("WindowName", Address(0.000_1)),
        ("OpenerName", Address(0.000_1)),
        ("HistoryLength", Small(50, 0.2)),
        ("BrowserLanguage", Short(0.0)),
        ("BrowserCountry", Short(0.0)),
        ("SocialNetwork", Short(0.98)),
        ("SocialAction", Short(0.99)),
        ("HTTPError", Small(3, 0.99)),
        ("SendTiming", Address(0.001)),
        ("DNSTiming", Address(0.001)),
        ("ConnectTiming", Address(0.001)),
        ("ResponseStartTiming", Address(0.001)),
        ("ResponseEndTiming", Address(0.001)),
        ("FetchTiming", Address(0.001)),
        ("SocialSourceNetworkID", Small(8, 0.98)),
        ("SocialSourcePage", Short(0.98)),
        ("ParamPrice", Small(1_000, 0.97)),
        ("ParamOrderID", Short(0.99)),
        ("ParamCurrency", Short(0.97)),
        ("ParamCurrencyID", Small(5, 0.97)),
        ("OpenstatServiceName", Short(0.98)),
        ("OpenstatCampaignID", Short(0.98)),
        ("OpenstatAdID", Short(0.98)),
        ("OpenstatSourceID", Short(0.98)),
        ("UTMSource", Short(0.97)),
        ("UTMMedium", Short(0.97)),
        ("UTMCampaign", Short(0.97)),
        ("UTMContent", Short(0.98)),
        ("UTMTerm", Short(0.98)),
        ("FromTag", Short(0.97)),
        ("HasGCLID", Small(1, 0.99)),
        ("RefererHash", Hash(0.15, REFERRER)),
        ("URLHash", Hash(0.18, PAGE)),
        ("CLID", Small(3, 0.99)),
    ]
}

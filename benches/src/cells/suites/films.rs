//! A synthetic schema in the shape of the Join Order Benchmark's: films, people, companies, keywords, and what is said of them,
//! with the many-to-many tables between. A tenth of the original's rows; few films have most of what there is, as there.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::hits::{random, rank, share};
use crate::Failure;

const FILMS: u64 = 250_000;
const PEOPLE: u64 = 400_000;
const COMPANIES: u64 = 24_000;
const KEYWORDS: u64 = 13_000;
const CHARACTERS: u64 = 300_000;

/// Fixed words of small tables; an id is a place in them, from 1.
const KINDS: [&str; 7] = ["movie", "tv series", "tv movie", "video movie", "tv mini series", "video game", "episode"];
const COMPANY_KINDS: [&str; 4] =
    ["production companies", "distributors", "special effects companies", "miscellaneous companies"];
const ROLES: [&str; 12] = [
    "actor",
    "actress",
    "producer",
    "writer",
    "cinematographer",
    "composer",
    "costume designer",
    "director",
    "editor",
    "miscellaneous crew",
    "production designer",
    "guest",
];
const LINKS: [&str; 6] = ["follows", "followed by", "remake of", "remade as", "references", "features"];
const COUNTRIES: [&str; 12] =
    ["[us]", "[de]", "[gb]", "[fr]", "[it]", "[jp]", "[se]", "[pl]", "[in]", "[nl]", "[dk]", "[ru]"];
const GENRES: [&str; 10] =
    ["Drama", "Comedy", "Horror", "Action", "Thriller", "Romance", "Documentary", "Sci-Fi", "Crime", "War"];
const LANGUAGES: [&str; 8] =
    ["English", "German", "Swedish", "Danish", "Norwegian", "American", "Bulgarian", "Japanese"];
const COMMON_KEYWORDS: [&str; 12] = [
    "superhero",
    "sequel",
    "murder",
    "blood",
    "violence",
    "character-name-in-title",
    "based-on-novel",
    "revenge",
    "second-part",
    "marvel-comics",
    "hero",
    "martial-arts",
];

/// Writes the tables to a folder. Blocks.
pub(super) fn write(folder: &Path) -> Result<(), Failure> {
    names(folder, "kind_type", "kind", &KINDS)?;
    names(folder, "company_type", "kind", &COMPANY_KINDS)?;
    names(folder, "role_type", "role", &ROLES)?;
    names(folder, "link_type", "link", &LINKS)?;
    let info_kinds: Vec<String> = (1..=113)
        .map(|id| match id {
            2 => "genres".into(),
            3 => "languages".into(),
            4 => "countries".into(),
            5 => "release dates".into(),
            99 => "votes".into(),
            100 => "rating".into(),
            101 => "top 250 rank".into(),
            102 => "bottom 10 rank".into(),
            18 => "height".into(),
            19 => "trivia".into(),
            20 => "mini biography".into(),
            other => format!("info {other}"),
        })
        .collect();
    names(folder, "info_type", "info", &info_kinds.iter().map(String::as_str).collect::<Vec<_>>())?;
    table(
        folder,
        "title",
        FILMS,
        &[
            ("id", FilmColumn::Id),
            ("title", FilmColumn::Text(title)),
            ("kind_id", FilmColumn::Number(|film| pick(film, 10, 7))),
            ("production_year", FilmColumn::Number(|film| 2013 - rank(random(film, 11), 110.0) as i32)),
            ("episode_nr", FilmColumn::Number(|film| (random(film, 12) % 200) as i32)),
        ],
    )?;
    table(
        folder,
        "name",
        PEOPLE,
        &[
            ("id", FilmColumn::Id),
            (
                "name",
                FilmColumn::Text(|person| format!("{}, {}", word(random(person, 20), 3), word(random(person, 21), 2))),
            ),
            ("gender", FilmColumn::Text(|person| ["m", "f", ""][pick(person, 22, 3) as usize - 1].to_owned())),
            ("name_pcode_cf", FilmColumn::Text(|person| format!("{}{}", letter(person, 23), random(person, 24) % 600))),
        ],
    )?;
    table(
        folder,
        "char_name",
        CHARACTERS,
        &[("id", FilmColumn::Id), ("name", FilmColumn::Text(|character| word(random(character, 30), 3)))],
    )?;
    table(
        folder,
        "company_name",
        COMPANIES,
        &[
            ("id", FilmColumn::Id),
            ("name", FilmColumn::Text(company_name)),
            ("country_code", FilmColumn::Text(|company| COUNTRIES[pick(company, 41, 12) as usize - 1].to_owned())),
        ],
    )?;
    table(
        folder,
        "keyword",
        KEYWORDS,
        &[
            ("id", FilmColumn::Id),
            (
                "keyword",
                FilmColumn::Text(|keyword| match COMMON_KEYWORDS.get(keyword as usize) {
                    Some(common) => (*common).to_owned(),
                    None => word(random(keyword, 50), 3),
                }),
            ),
        ],
    )?;
    table(
        folder,
        "cast_info",
        3_600_000,
        &[
            ("id", FilmColumn::Id),
            ("person_id", FilmColumn::Number(|row| by_rank(row, 60, PEOPLE))),
            ("movie_id", FilmColumn::Number(|row| by_rank(row, 61, FILMS))),
            ("person_role_id", FilmColumn::Number(|row| by_rank(row, 62, CHARACTERS))),
            ("role_id", FilmColumn::Number(|row| pick(row, 63, 11))),
            (
                "note",
                FilmColumn::Text(|row| {
                    let notes = [
                        "",
                        "(voice)",
                        "(uncredited)",
                        "(producer)",
                        "(executive producer)",
                        "(writer)",
                        "(head writer)",
                    ];
                    notes[pick(row, 64, 7) as usize - 1].to_owned()
                }),
            ),
        ],
    )?;
    table(
        folder,
        "movie_companies",
        260_000,
        &[
            ("id", FilmColumn::Id),
            ("movie_id", FilmColumn::Number(|row| by_rank(row, 70, FILMS))),
            ("company_id", FilmColumn::Number(|row| by_rank(row, 71, COMPANIES))),
            ("company_type_id", FilmColumn::Number(|row| pick(row, 72, 2))),
            (
                "note",
                FilmColumn::Text(|row| {
                    let notes = [
                        "",
                        "(co-production)",
                        "(presents)",
                        "(2006) (USA) (theatrical)",
                        "(as Metro) (VHS)",
                        "(worldwide)",
                    ];
                    notes[pick(row, 73, 6) as usize - 1].to_owned()
                }),
            ),
        ],
    )?;
    table(
        folder,
        "movie_keyword",
        450_000,
        &[
            ("id", FilmColumn::Id),
            ("movie_id", FilmColumn::Number(|row| by_rank(row, 80, FILMS))),
            ("keyword_id", FilmColumn::Number(|row| by_rank(row, 81, KEYWORDS))),
        ],
    )?;
    table(
        folder,
        "movie_info",
        1_500_000,
        &[
            ("id", FilmColumn::Id),
            ("movie_id", FilmColumn::Number(|row| by_rank(row, 90, FILMS))),
            ("info_type_id", FilmColumn::Number(|row| 1 + (random(row, 91) % 20) as i32)),
            (
                "info",
                FilmColumn::Text(|row| match 1 + random(row, 91) % 20 {
                    2 => GENRES[pick(row, 92, 10) as usize - 1].to_owned(),
                    3 | 4 => LANGUAGES[pick(row, 93, 8) as usize - 1].to_owned(),
                    5 => format!("USA:{} {}", 1 + random(row, 94) % 28, 1980 + random(row, 95) % 34),
                    _ => word(random(row, 96), 6),
                }),
            ),
        ],
    )?;
    table(
        folder,
        "movie_info_idx",
        138_000,
        &[
            ("id", FilmColumn::Id),
            ("movie_id", FilmColumn::Number(|row| (row / 3 % FILMS) as i32 + 1)),
            ("info_type_id", FilmColumn::Number(|row| 99 + (row % 3) as i32)),
            (
                "info",
                FilmColumn::Text(|row| match row % 3 {
                    0 => (5 + rank(random(row, 100), 90_000.0)).to_string(),
                    1 => format!("{:.1}", 1.0 + 9.0 * share(random(row, 101))),
                    _ => (1 + random(row, 102) % 250).to_string(),
                }),
            ),
        ],
    )?;
    table(
        folder,
        "movie_link",
        3_000,
        &[
            ("id", FilmColumn::Id),
            ("movie_id", FilmColumn::Number(|row| by_rank(row, 110, FILMS))),
            ("linked_movie_id", FilmColumn::Number(|row| by_rank(row, 111, FILMS))),
            ("link_type_id", FilmColumn::Number(|row| pick(row, 112, 6))),
        ],
    )?;
    table(
        folder,
        "aka_name",
        90_000,
        &[
            ("id", FilmColumn::Id),
            ("person_id", FilmColumn::Number(|row| by_rank(row, 120, PEOPLE))),
            ("name", FilmColumn::Text(|row| word(random(row, 121), 4))),
        ],
    )?;
    table(
        folder,
        "person_info",
        300_000,
        &[
            ("id", FilmColumn::Id),
            ("person_id", FilmColumn::Number(|row| by_rank(row, 130, PEOPLE))),
            ("info_type_id", FilmColumn::Number(|row| 15 + (random(row, 131) % 25) as i32)),
            (
                "note",
                FilmColumn::Text(|row| {
                    if random(row, 132).is_multiple_of(40) { "Volker Boehm" } else { "" }.to_owned()
                }),
            ),
        ],
    )
}

/// How a column comes about from the number of a row, from 0.
enum FilmColumn {
    /// The number, from 1.
    Id,
    Number(fn(u64) -> i32),
    Text(fn(u64) -> String),
}

fn table(folder: &Path, name: &str, rows: u64, columns: &[(&str, FilmColumn)]) -> Result<(), Failure> {
    const ROWS_OF_BATCH: u64 = 100_000;
    let mut writer = None;
    for start in (0..rows).step_by(ROWS_OF_BATCH as usize) {
        let rows = start..(start + ROWS_OF_BATCH).min(rows);
        let arrays = columns.iter().map(|(name, column)| {
            let array: ArrayRef = match column {
                FilmColumn::Id => Arc::new(Int32Array::from_iter_values(rows.clone().map(|row| row as i32 + 1))),
                FilmColumn::Number(value) => Arc::new(Int32Array::from_iter_values(rows.clone().map(value))),
                FilmColumn::Text(value) => Arc::new(StringArray::from_iter_values(rows.clone().map(value))),
            };
            (*name, array)
        });
        add(&mut writer, folder, name, &RecordBatch::try_from_iter(arrays)?)?;
    }
    if let Some(writer) = writer {
        writer.close()?;
    }
    Ok(())
}

fn names(folder: &Path, table: &str, column: &str, names: &[&str]) -> Result<(), Failure> {
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(1..=names.len() as i32));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let mut writer = None;
    add(&mut writer, folder, table, &RecordBatch::try_from_iter([("id", ids), (column, texts)])?)?;
    if let Some(writer) = writer {
        writer.close()?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "runs on a thread that may block")]
fn add(writer: &mut Option<ArrowWriter<File>>, folder: &Path, table: &str, batch: &RecordBatch) -> Result<(), Failure> {
    let writer = match writer {
        Some(writer) => writer,
        None => {
            let file = File::create(folder.join(format!("{table}.parquet")))?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_max_row_group_row_count(Some(200_000))
                .build();
            writer.insert(ArrowWriter::try_new(file, batch.schema(), Some(properties))?)
        }
    };
    writer.write(batch)?;
    Ok(())
}

/// One of `count`, from 1, the first ones more often.
fn pick(row: u64, column: u64, count: u64) -> i32 {
    rank(random(row, column), count as f64) as i32 + 1
}

/// An id among `count`, the first ones more often: of 250,000 films the first has one in 4,000 rows, most have the usual few.
fn by_rank(row: u64, column: u64, count: u64) -> i32 {
    (count as f64 * share(random(row, column)).powf(1.5)) as i32 + 1
}

fn title(film: u64) -> String {
    let words = word(random(film, 13), 4);
    match random(film, 14) % 50 {
        0 => format!("{words} Champion"),
        1 => format!("Kung Fu {words}"),
        2 => format!("{words} (#{}.{})", film % 20, film % 7),
        _ => words,
    }
}

fn company_name(company: u64) -> String {
    let words = word(random(company, 40), 2);
    match random(company, 42) % 10 {
        0 => format!("{words} Film"),
        1 => format!("Warner {words}"),
        2 => format!("{words} Pictures"),
        _ => words,
    }
}

fn letter(row: u64, column: u64) -> char {
    char::from(b'A' + (random(row, column) % 26) as u8)
}

/// A word of some syllables that depends on a number only.
fn word(number: u64, syllables: u64) -> String {
    const SYLLABLES: [&str; 16] =
        ["An", "bert", "col", "dan", "el", "fro", "gar", "hil", "in", "jo", "kar", "lu", "mor", "nes", "ol", "Tim"];
    (0..syllables).map(|place| SYLLABLES[(random(number, 200 + place) % 16) as usize]).collect()
}

//! Catalogs of any size from a seed: tables about a hundred kinds of things in 26 domains, named as people name them.
//! Table n of a seed is the same in every run and at every size, so a larger catalog holds the smaller one.
//!
//! Names come in snake case, camel case and abbreviated; look-alikes are made by stages, regions, years and versions
//! (`stg_order_2019`, `OrderHistory`, `ord_eu_v2`). Three tables in ten and one column in twenty have a comment. The
//! words are in `vocabulary.txt`; column texts repeat: of two million, fewer than one in ten is distinct.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use querent_catalog::{NewTable, TableName};

/// Columns of every table.
pub(crate) const COLUMNS: usize = 20;
/// Tables of one database.
pub(crate) const TABLES_A_DATABASE: u64 = 100;

const VOCABULARY: &str = include_str!("generator/vocabulary.txt");
const STAGES: [&str; 6] = ["stg", "raw", "dim", "fact", "tmp", "mart"];
const SUFFIXES: [&str; 12] =
    ["history", "archive", "summary", "detail", "daily", "monthly", "eu", "us", "apac", "v2", "backup", "audit"];
const QUALIFIERS: [&str; 28] = [
    "billing",
    "shipping",
    "previous",
    "next",
    "total",
    "average",
    "minimum",
    "maximum",
    "first",
    "last",
    "original",
    "adjusted",
    "local",
    "foreign",
    "internal",
    "external",
    "planned",
    "actual",
    "expected",
    "primary",
    "secondary",
    "parent",
    "source",
    "target",
    "legacy",
    "gross",
    "net",
    "estimated",
];
const ABBREVIATIONS: [(&str, &str); 24] = [
    ("customer", "cust"),
    ("order", "ord"),
    ("account", "acct"),
    ("number", "no"),
    ("amount", "amt"),
    ("quantity", "qty"),
    ("invoice", "inv"),
    ("transaction", "txn"),
    ("product", "prod"),
    ("employee", "emp"),
    ("department", "dept"),
    ("address", "addr"),
    ("description", "descr"),
    ("average", "avg"),
    ("minimum", "min"),
    ("maximum", "max"),
    ("total", "tot"),
    ("temperature", "temp"),
    ("reference", "ref"),
    ("previous", "prev"),
    ("message", "msg"),
    ("category", "cat"),
    ("manager", "mgr"),
    ("country", "ctry"),
];
/// Columns that tables of all kinds have.
const COMMON: [(&str, DataType); 10] = [
    ("created_at", TIMESTAMP),
    ("updated_at", TIMESTAMP),
    ("created_by", DataType::Utf8),
    ("is_deleted", DataType::Boolean),
    ("status", DataType::Utf8),
    ("source_system", DataType::Utf8),
    ("batch_id", DataType::Int64),
    ("version", DataType::Int64),
    ("valid_from", TIMESTAMP),
    ("remarks", DataType::Utf8),
];
/// No suffix or one of twelve, no stage or one of six, no year or one of eleven.
const VARIANTS: u64 = 13 * 7 * 12;
/// Has no divisor in common with [`VARIANTS`], so that steps of it reach every variant.
const VARIANT_STEP: u64 = 37;
const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// One kind of thing that tables are about.
struct Entity {
    domain: &'static str,
    name: &'static str,
    attributes: Vec<(&'static str, DataType)>,
}

/// How a table's author writes names.
#[derive(Clone, Copy)]
enum NameStyle {
    Snake,
    Camel,
    Short,
}

/// Generates tables.
pub(crate) struct Generator {
    seed: u64,
    entities: Vec<Entity>,
}

impl Generator {
    /// Returns a generator; equal seeds generate equal tables.
    pub(crate) fn new(seed: u64) -> Self {
        let entities = VOCABULARY.lines().filter_map(parse_entity).collect();
        Self { seed, entities }
    }

    /// Returns table `index`.
    pub(crate) fn table(&self, index: u64) -> NewTable {
        let (domain, database) = self.database(index / TABLES_A_DATABASE);
        let mut random = Random::new(self.seed, index);
        // A database's tables are about the things of its domain, each in many variants: no two are named alike.
        let of_domain: Vec<&Entity> = self.entities.iter().filter(|entity| entity.domain == domain).collect();
        let place = index % TABLES_A_DATABASE;
        let entity = of_domain[(place % of_domain.len() as u64) as usize];
        let variant = (place / of_domain.len() as u64) * VARIANT_STEP
            + Random::new(self.seed ^ 0x5A, index / TABLES_A_DATABASE).below(VARIANTS);
        let style = match random.below(10) {
            0..=4 => NameStyle::Snake,
            5..=6 => NameStyle::Camel,
            _ => NameStyle::Short,
        };
        let words = variant_words(entity, variant % VARIANTS);
        let comment = (random.below(10) < 3).then(|| {
            let other = random.pick(&self.entities).name.replace('_', " ");
            format!("{} of {}, one row a {other}", entity.name.replace('_', " "), entity.domain)
        });
        let mut columns = ColumnNames::default();
        columns.add(style, &format!("{}_id", entity.name), DataType::Int64);
        for _ in 0..2 {
            let other = random.pick(&self.entities);
            columns.add(style, &format!("{}_id", other.name), DataType::Int64);
        }
        for (name, data_type) in &entity.attributes {
            if random.below(8) != 0 {
                columns.add(style, name, data_type.clone());
            }
        }
        for (name, data_type) in &COMMON {
            if random.below(3) == 0 {
                columns.add(style, name, data_type.clone());
            }
        }
        while columns.fields.len() < COLUMNS {
            let other = random.pick(&self.entities);
            let (name, data_type) = random.pick(&other.attributes).clone();
            match random.below(3) {
                0 => columns.add(style, name, data_type),
                _ => columns.add(style, &format!("{}_{name}", random.pick(&QUALIFIERS)), data_type),
            }
        }
        columns.fields.truncate(COLUMNS);
        let column_comments: BTreeMap<String, String> = columns
            .fields
            .iter()
            .filter(|_| random.below(20) == 0)
            .map(|field| (field.name().clone(), format!("{} as the {} team reports it", field.name(), entity.domain)))
            .collect();
        NewTable {
            name: TableName::new(database, style.written(&words)),
            schema: Arc::new(Schema::new(columns.fields)),
            comment,
            column_comments,
            external: None,
        }
    }

    /// Returns tables `from` to `to`, `to` not included.
    pub(crate) fn tables(self: Arc<Self>, from: u64, to: u64) -> impl ExactSizeIterator<Item = NewTable> + Send {
        let tables: std::ops::Range<u32> = 0..u32::try_from(to - from).unwrap_or(u32::MAX);
        tables.map(move |offset| self.table(from + u64::from(offset)))
    }

    /// Returns a database's domain and name.
    fn database(&self, number: u64) -> (&'static str, String) {
        let mut random = Random::new(self.seed ^ 0xD8, number);
        let domain = random.pick(&self.entities).domain;
        let other = random.pick(&self.entities).name;
        (domain, format!("{domain}_{other}_{number}"))
    }
}

/// A name's words: the thing, and a stage, a suffix and a year or none of them.
fn variant_words(entity: &Entity, variant: u64) -> Vec<String> {
    let nth = |words: &[&str], number: u64| {
        let number = number % (words.len() as u64 + 1);
        number.checked_sub(1).map(|index| words[index as usize].to_string())
    };
    let suffix = nth(&SUFFIXES, variant);
    let stage = nth(&STAGES, variant / 13);
    let year = (variant / 91).checked_sub(1).map(|year| (2015 + year).to_string());
    stage.into_iter().chain(entity.name.split('_').map(str::to_string)).chain(suffix).chain(year).collect()
}

/// Columns under names that differ, case aside.
#[derive(Default)]
struct ColumnNames {
    fields: Vec<Field>,
    keys: std::collections::BTreeSet<String>,
}

impl ColumnNames {
    fn add(&mut self, style: NameStyle, name: &str, data_type: DataType) {
        let words: Vec<String> = name.split('_').map(str::to_string).collect();
        let written = style.written(&words);
        if self.keys.insert(written.to_lowercase()) {
            self.fields.push(Field::new(written, data_type, true));
        }
    }
}

impl NameStyle {
    fn written(self, words: &[String]) -> String {
        match self {
            NameStyle::Snake => words.join("_"),
            NameStyle::Camel => {
                let mut name = String::new();
                for word in words {
                    let mut letters = word.chars();
                    name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                    name.push_str(letters.as_str());
                }
                name
            }
            NameStyle::Short => {
                let short = |word: &String| {
                    let known = ABBREVIATIONS.iter().find(|(long, _)| long == word);
                    known.map_or_else(|| word.clone(), |(_, short)| (*short).to_string())
                };
                words.iter().map(short).collect::<Vec<_>>().join("_")
            }
        }
    }
}

fn parse_entity(line: &'static str) -> Option<Entity> {
    let (head, attributes) = line.split_once(": ")?;
    let (domain, name) = head.split_once('|')?;
    let attributes = attributes.split(' ').filter_map(|attribute| {
        let (name, kind) = attribute.split_once(':')?;
        let data_type = match kind {
            "i" => DataType::Int64,
            "d" => DataType::Float64,
            "c" => DataType::Decimal128(18, 2),
            "t" => TIMESTAMP,
            "b" => DataType::Boolean,
            _ => DataType::Utf8,
        };
        Some((name, data_type))
    });
    Some(Entity { domain, name, attributes: attributes.collect() })
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers wherever and whenever it runs.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of one table of a seed.
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        let mut random = Self(seed ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

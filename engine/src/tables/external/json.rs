//! JSON tables: objects one a line, one after the other or in an array, and the features of GeoJSON, as rows.
//!
//! A feature's properties are columns; its geometry is text that holds GeoJSON. A record that is no object is the one column
//! `json`. What is a list or an object where the column is text is that text's JSON.

mod features;
mod inference;
mod integers;
mod records;
mod values;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use querent_catalog::FileFormat;
use serde_json::{Map, Value};

use super::reader_options::{COLUMN_KEYS, GivenTypes, bad_option, boolean_option, known_options, sql_type_name};
use super::rejects::{Reject, Rejects};
use super::text_source::TextEncoding;
use super::{LocatedFile, bad_line, check_column_count, compression_of_all, shortened};
use crate::error::{EngineError, Result};
use features::{Feature, GEOMETRY, key_apart, name_apart};
use inference::{JsonType, Members};
use integers::{as_texts, from_texts, has_fraction, nests_integers, whole_number};
use records::{JsonLayout, JsonRecord, JsonRecords};
use values::{special_number, value_of, without_special_numbers};

const BATCH_ROWS: usize = 8192;
/// The column of records that are no objects.
pub(crate) const VALUE_COLUMN: &str = "json";

/// How JSON files are read.
#[derive(Debug, Clone)]
pub(crate) struct JsonFiles {
    compression: FileCompressionType,
    encoding: Option<TextEncoding>,
    /// Whether a record that cannot be read is set aside.
    pub ignore_errors: bool,
    types: GivenTypes,
    given: BTreeMap<String, String>,
}

impl JsonFiles {
    /// Reads the options. Errors: those that a JSON reader does not know, files of several compressions.
    pub(crate) fn from_options(files: &[LocatedFile], options: &BTreeMap<String, String>) -> Result<Self> {
        let given = known_options(FileFormat::Ndjson, options)?;
        let mut json = Self {
            compression: compression_of_all(files, &given)?,
            encoding: None,
            ignore_errors: false,
            types: GivenTypes::default(),
            given: given.clone(),
        };
        for (name, value) in &given {
            match name.as_str() {
                "ignore_errors" => json.ignore_errors = boolean_option(name, value)?,
                "types" => json.types = GivenTypes::from_text(value)?,
                "encoding" => {
                    let encoding = TextEncoding::from_name(value);
                    json.encoding = Some(encoding.ok_or_else(|| bad_option(name, value, "latin-1, utf-16 and so on"))?);
                }
                _ => {}
            }
        }
        Ok(json)
    }

    /// Starts the inference of columns.
    pub(crate) fn inference(&self) -> JsonInference {
        JsonInference {
            members: Members::default(),
            of_features: Members::default(),
            others: JsonType::Null,
            records: 0,
            objects: 0,
            values: 0,
        }
    }

    /// Infers columns from a file's text, at most of so many records. Where only its beginning is read, the last record may
    /// be cut in two. Blocks.
    pub(crate) fn infer(
        &self,
        path: &Path,
        inference: &mut JsonInference,
        source: impl Read + Send + 'static,
        most_records: usize,
        is_whole: bool,
    ) -> Result<()> {
        let mut records = JsonRecords::open(path, self.compression, self.encoding, source)?;
        let is_geo = records.layout() == JsonLayout::Features;
        if is_geo {
            inference.of_features.add(&Map::from_iter([(GEOMETRY.to_owned(), Value::Null)]));
        }
        for _ in 0..most_records {
            let record = match records.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(_) if !is_whole => break,
                Err(error) => return Err(error),
            };
            match parse(path, &record) {
                Ok(value) => {
                    inference.update(path, &record, value, is_geo, self.ignore_errors)?;
                    let columns = inference.members.iter().len() + inference.of_features.iter().len();
                    check_column_count(path, Some(record.line), columns)?;
                }
                // Whoever reads the rows sets the record aside.
                Err(_) if self.ignore_errors || !is_whole => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the columns as inferred and given.
    pub(crate) fn typed(&self, inference: &JsonInference) -> Result<TypedJson> {
        let mut columns: Vec<JsonColumn> = Vec::new();
        let mut taken: HashSet<String> = HashSet::new();
        let mut add = |key: &str, wanted: &str, found: &JsonType| {
            let (mut name, mut copy) = (wanted.to_owned(), 1);
            while name.is_empty() || taken.contains(&name.to_lowercase()) {
                name = match wanted.is_empty() {
                    true => format!("column_{}", columns.len() + copy),
                    false => format!("{wanted}_{copy}"),
                };
                copy += 1;
            }
            taken.insert(name.to_lowercase());
            columns.push(JsonColumn {
                key: key.to_owned(),
                name,
                data_type: found.data_type(),
                is_json: found.is_json_text(),
            });
        };
        if inference.values > 0 && inference.objects == 0 {
            add(VALUE_COLUMN, VALUE_COLUMN, &inference.others);
        }
        // For all features alike: a property keeps its name, and what else has it is the feature's.
        let add_own = |add: &mut dyn FnMut(&str, &str, &JsonType), is_geometry: bool| {
            // A geometry is an object, as JSON.
            let geometry = JsonType::Mixed;
            for (key, found) in inference.of_features.iter().filter(|(key, _)| (*key == GEOMETRY) == is_geometry) {
                let found = if is_geometry { &geometry } else { found };
                match inference.members.iter().any(|(property, _)| property == key) {
                    true => add(&key_apart(key), &name_apart(key), found),
                    false => add(key, key, found),
                }
            }
        };
        add_own(&mut add, false);
        for (key, found) in inference.members.iter() {
            add(key, key, found);
        }
        add_own(&mut add, true);
        if columns.is_empty() {
            // No record tells a column: there are none, or they are empty.
            columns.push(JsonColumn {
                key: VALUE_COLUMN.to_owned(),
                name: VALUE_COLUMN.to_owned(),
                data_type: DataType::Utf8,
                is_json: false,
            });
        }
        self.types.check(columns.iter().map(|column| column.name.as_str()))?;
        for column in &mut columns {
            if let Some(given) = self.types.of_column(&column.name) {
                column.data_type = given.clone();
                column.is_json = self.types.is_json(&column.name);
            }
        }
        Ok(TypedJson { files: self.clone(), columns, is_empty: inference.records == 0 })
    }
}

/// What is known of the columns of JSON files after some of their records.
#[derive(Debug)]
pub(crate) struct JsonInference {
    /// The members of objects, and the properties of features.
    members: Members,
    /// The members of features beside their properties.
    of_features: Members,
    /// The type of records that are no objects.
    others: JsonType,
    records: u64,
    objects: u64,
    values: u64,
}

impl JsonInference {
    /// Takes in a record. Errors: it is no object, and others are; where `ignores_errors`, whoever reads the rows sets it
    /// aside.
    fn update(
        &mut self,
        path: &Path,
        record: &JsonRecord,
        value: Value,
        is_geo: bool,
        ignores_errors: bool,
    ) -> Result<()> {
        let is_special = special_number(&value).is_some();
        self.records += 1;
        match value {
            Value::Object(object) if is_geo => {
                let feature = Feature::new(object);
                self.objects += 1;
                self.of_features.add(&feature.own);
                self.members.add(&feature.properties);
            }
            Value::Object(object) if !is_special => {
                self.objects += 1;
                self.members.add(&object);
            }
            // A row of which nothing is known.
            Value::Null => {}
            other => {
                self.values += 1;
                let before = std::mem::replace(&mut self.others, JsonType::Null);
                self.others = before.merged(JsonType::of_value(&other));
            }
        }
        if self.objects > 0 && self.values > 0 && !ignores_errors {
            let detail =
                if self.values == 1 { no_object(record) } else { "an object among values that are none".into() };
            let detail = format!("{detail}; ignore_errors sets records aside that are no objects");
            return Err(bad_line(path, Some(record.line), None, detail));
        }
        Ok(())
    }
}

/// A member of the records, and the column that it is.
#[derive(Debug, Clone, PartialEq)]
struct JsonColumn {
    key: String,
    name: String,
    data_type: DataType,
    /// Whether it is text that holds JSON.
    is_json: bool,
}

/// JSON files whose columns are known.
#[derive(Debug, Clone)]
pub(crate) struct TypedJson {
    pub files: JsonFiles,
    columns: Vec<JsonColumn>,
    /// Whether no record was there to tell columns.
    pub is_empty: bool,
}

impl TypedJson {
    /// Returns the reader of a table whose options inference wrote, and whose files have these columns.
    pub(crate) fn from_options(
        options: &BTreeMap<String, String>,
        schema: &Schema,
        files: &[LocatedFile],
    ) -> Result<Self> {
        let keys: BTreeMap<String, String> =
            options.get(COLUMN_KEYS).and_then(|keys| serde_json::from_str(keys).ok()).unwrap_or_default();
        let column = |field: &Arc<Field>| JsonColumn {
            key: keys.get(field.name()).unwrap_or(field.name()).clone(),
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            is_json: false,
        };
        let columns = schema.fields().iter().map(column).collect();
        Ok(Self { files: JsonFiles::from_options(files, options)?, columns, is_empty: false })
    }

    /// Returns the options that make the same reader.
    pub(crate) fn options(&self) -> BTreeMap<String, String> {
        let mut options = self.files.given.clone();
        options.remove("rejects");
        let compression = super::compression_name(&self.files.compression).to_owned();
        options.insert("compression".to_owned(), compression);
        let renamed = self.columns.iter().filter(|column| column.key != column.name);
        let keys: BTreeMap<&str, &str> = renamed.map(|column| (column.name.as_str(), column.key.as_str())).collect();
        if !keys.is_empty() {
            options.insert(COLUMN_KEYS.to_owned(), serde_json::to_string(&keys).unwrap_or_default());
        }
        options
    }

    /// Returns the columns; any may be null.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |column: &JsonColumn| Field::new(&column.name, column.data_type.clone(), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// Returns the reader with other types, which are matched by position.
    pub(crate) fn with_types(mut self, schema: &Schema) -> Self {
        for (column, field) in self.columns.iter_mut().zip(schema.fields()) {
            column.data_type = field.data_type().clone();
        }
        self
    }

    /// Returns the names of the columns of text that hold JSON.
    pub(crate) fn json_columns(&self) -> Vec<String> {
        self.columns.iter().filter(|column| column.is_json).map(|column| column.name.clone()).collect()
    }

    /// Returns what was decided about how the files are read.
    pub(crate) fn reading(&self) -> super::SourceReading {
        let column = |column: &JsonColumn| super::ReadColumn {
            name: column.name.clone(),
            sql_type: sql_type_name(&column.data_type),
            format: None,
            note: None,
        };
        super::SourceReading {
            format: "json".to_owned(),
            encoding: self.files.encoding.map(TextEncoding::name),
            columns: self.columns.iter().map(column).collect(),
            ..super::SourceReading::default()
        }
    }

    /// Reads a file's rows as these columns of it. Ends early when `each` says so by returning false. Records that cannot
    /// be read go to `rejects`, if there are any. Blocks.
    pub(crate) fn read(
        &self,
        path: &Path,
        wanted: &[usize],
        rejects: Option<Rejects>,
        source: impl Read + Send + 'static,
        mut each: impl FnMut(RecordBatch) -> Result<bool>,
    ) -> Result<()> {
        // A record is set aside for any of its columns.
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let decoded = if rejects.is_some() { &all } else { wanted };
        let decoder = ChunkDecoder::new(path, self, decoded);
        let positions: Vec<usize> = match rejects {
            Some(_) => wanted.to_vec(),
            None => (0..wanted.len()).collect(),
        };
        let mut records = JsonRecords::open(path, self.files.compression, self.files.encoding, source)?;
        let is_geo = records.layout() == JsonLayout::Features;
        let mut pending: Vec<JsonRecord> = Vec::new();
        let mut bytes = 0;
        loop {
            let record = records.next_record()?;
            let at_end = record.is_none();
            bytes += record.as_ref().map_or(0, |record| record.text.len());
            pending.extend(record);
            let is_full = pending.len() == BATCH_ROWS || bytes > BATCH_BYTES;
            if is_full || (at_end && !pending.is_empty()) {
                let batch = decoder.decode(&pending, is_geo, rejects.as_ref())?;
                if !each(batch.project(&positions)?)? {
                    return Ok(());
                }
                pending.clear();
                bytes = 0;
            }
            if at_end {
                return Ok(());
            }
        }
    }
}

/// The text of a batch of records.
const BATCH_BYTES: usize = 8 << 20;

/// Makes batches of records.
struct ChunkDecoder<'j> {
    path: &'j Path,
    /// The columns by the keys of the records.
    keyed: SchemaRef,
    /// The columns by their names.
    named: SchemaRef,
    is_value: bool,
}

impl<'j> ChunkDecoder<'j> {
    fn new(path: &'j Path, json: &TypedJson, wanted: &[usize]) -> Self {
        let columns: Vec<&JsonColumn> = wanted.iter().filter_map(|index| json.columns.get(*index)).collect();
        let fields = |name: fn(&JsonColumn) -> &String| {
            let field = |column: &&JsonColumn| Field::new(name(column), plain_type(&column.data_type), true);
            Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
        };
        let is_value = matches!(json.columns.as_slice(), [only] if only.key == VALUE_COLUMN);
        Self { path, keyed: fields(|column| &column.key), named: fields(|column| &column.name), is_value }
    }

    /// Decodes records as they stand and, where that fails, each with lists and objects as text where the column is text.
    fn decode(&self, records: &[JsonRecord], is_geo: bool, rejects: Option<&Rejects>) -> Result<RecordBatch> {
        // The decoder cuts the fractions of integers off. Those in lists and objects are looked at one by one.
        let nests_integers = nests_integers(&self.keyed);
        let is_plain =
            |record: &JsonRecord| record.text.starts_with('{') && !(nests_integers && has_fraction(&record.text));
        let are_objects = !is_geo && !self.is_value && records.iter().all(is_plain);
        if are_objects && let Ok(batch) = self.batch(records.iter().map(|record| record.text.as_str())) {
            return Ok(batch);
        }
        let types = self.keyed.fields().iter().map(|field| (field.name().as_str(), field.data_type()));
        let types: HashMap<&str, &DataType> = types.collect();
        let mut texts = Vec::with_capacity(records.len());
        let mut kept = Vec::with_capacity(records.len());
        for record in records {
            match parse(self.path, record) {
                Ok(value) if !self.takes(&value) => {
                    let error = bad_line(self.path, Some(record.line), None, no_object(record));
                    reject(self.path, record, None, &record.text, error, rejects)?;
                }
                Ok(value) => {
                    texts.push(Value::Object(self.row(value, is_geo, &types)).to_string());
                    kept.push(record);
                }
                Err(error) => reject(self.path, record, None, &record.text, error, rejects)?,
            }
        }
        if let Ok(batch) = self.batch(texts.iter().map(String::as_str)) {
            return Ok(batch);
        }
        let mut fitting = Vec::with_capacity(texts.len());
        for (text, record) in texts.iter().zip(kept) {
            match self.batch(std::iter::once(text.as_str())) {
                Ok(_) => fitting.push(text.as_str()),
                Err(error) => {
                    let (column, value, error) = self.misfit(record, text, &error);
                    reject(self.path, record, column.as_deref(), &value, error, rejects)?;
                }
            }
        }
        let failed = |error: ArrowError| bad_line(self.path, None, None, error.to_string());
        self.batch(fitting.into_iter()).map_err(failed)
    }

    /// Whether a record is a row: an object, or null, unless the records are values.
    fn takes(&self, value: &Value) -> bool {
        let is_object = matches!(value, Value::Object(_)) && special_number(value).is_none();
        self.is_value || is_object || value.is_null()
    }

    /// Returns a record as an object with the columns' keys, whose values are of these types.
    fn row(&self, value: Value, is_geo: bool, types: &HashMap<&str, &DataType>) -> Map<String, Value> {
        let object = match value {
            Value::Object(object) if is_geo => Feature::new(object).into_row(|key| types.contains_key(key)),
            Value::Object(object) if !self.is_value || object.contains_key(VALUE_COLUMN) => object,
            other => Map::from_iter([(VALUE_COLUMN.to_owned(), other)]),
        };
        object
            .into_iter()
            .map(|(key, value)| {
                let value = types.get(key.as_str()).map_or(Value::Null, |data_type| fitted(value, data_type));
                (key, value)
            })
            .collect()
    }

    fn batch<'t>(&self, texts: impl ExactSizeIterator<Item = &'t str>) -> Result<RecordBatch, ArrowError> {
        // The decoder begins with memory for all values of so many rows, which is gigabytes for thousands of columns.
        let rows = texts.len().clamp(1, BATCH_ROWS);
        let mut decoder = ReaderBuilder::new(as_texts(&self.keyed))
            .with_batch_size(rows)
            .with_coerce_primitive(true)
            .build_decoder()?;
        let mut count = 0;
        for text in texts {
            let taken = decoder.decode(text.as_bytes())?;
            decoder.decode(b"\n")?;
            count += 1;
            // A full decoder leaves what follows: a second value of a line would go unseen.
            if taken != text.len() || decoder.len() != count || decoder.has_partial_record() {
                return Err(ArrowError::JsonError("not one value".to_owned()));
            }
        }
        let batch = decoder.flush()?.unwrap_or_else(|| RecordBatch::new_empty(as_texts(&self.keyed)));
        if batch.num_rows() != count {
            return Err(ArrowError::JsonError("a record that does not end".to_owned()));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::clone(&self.named), from_texts(&batch, &self.keyed)?, &options)
    }

    /// Returns the first column that a record does not fit, its value, and the error.
    fn misfit(&self, record: &JsonRecord, text: &str, error: &ArrowError) -> (Option<String>, String, EngineError) {
        let found = self.keyed.fields().iter().enumerate().find_map(|(index, field)| {
            let only = Arc::new(self.keyed.project(&[index]).ok()?);
            let named = Arc::new(self.named.project(&[index]).ok()?);
            let alone = ChunkDecoder { keyed: only, named, ..*self };
            let name = self.named.fields().get(index)?.name().clone();
            alone.batch(std::iter::once(text)).is_err().then_some((name, field))
        });
        let value = found.as_ref().and_then(|(_, field)| {
            serde_json::from_str::<Value>(text).ok()?.get(field.name()).map(ToString::to_string)
        });
        let value = value.unwrap_or_else(|| text.to_owned());
        let detail = match &found {
            Some((_, field)) => {
                format!("expected {}, found `{}`", sql_type_name(field.data_type()), shortened(&value))
            }
            None => error.to_string(),
        };
        let name = found.map(|(name, _)| name);
        let error = bad_line(self.path, Some(record.line), name.as_deref(), detail);
        (name, value, error)
    }
}

fn no_object(record: &JsonRecord) -> String {
    format!("expected an object, found `{}`", shortened(&record.text))
}

/// Sets a record aside, or returns the error.
fn reject(
    path: &Path,
    record: &JsonRecord,
    column: Option<&str>,
    value: &str,
    error: EngineError,
    rejects: Option<&Rejects>,
) -> Result<()> {
    let Some(rejects) = rejects else { return Err(error) };
    let detail = match error {
        EngineError::BadData { detail, .. } => detail,
        other => other.to_string(),
    };
    rejects.add(Reject {
        file: path.display().to_string(),
        line: record.line,
        column: column.map(str::to_owned),
        value: value.to_owned(),
        error: detail,
    })
}

fn parse(path: &Path, record: &JsonRecord) -> Result<Value> {
    value_of(&record.text).map_err(|error| {
        let line = record.line + (error.line().max(1) as u64 - 1);
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        bad_line(path, Some(line), None, format!("not JSON: {what} in `{}`", shortened(&record.text)))
    })
}

/// Returns a value with lists and objects as text where the type is text.
fn fitted(value: Value, data_type: &DataType) -> Value {
    match (value, data_type) {
        (value, _) if special_number(&value).is_some() => without_special_numbers(value),
        (value @ (Value::Array(_) | Value::Object(_)), DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8) => {
            Value::String(without_special_numbers(value).to_string())
        }
        (Value::Array(items), DataType::List(item)) => {
            Value::Array(items.into_iter().map(|value| fitted(value, item.data_type())).collect())
        }
        (Value::Object(members), DataType::Struct(fields)) => Value::Object(
            members
                .into_iter()
                .filter_map(|(key, value)| {
                    let (_, field) = fields.find(&key)?;
                    Some((key, fitted(value, field.data_type())))
                })
                .collect(),
        ),
        (Value::Object(members), DataType::Map(entries, _)) => {
            let values = match entries.data_type() {
                DataType::Struct(entry) => entry.get(1).map(|values| values.data_type()),
                _ => None,
            };
            let fit = |value: Value| match values {
                Some(values) => fitted(value, values),
                None => value,
            };
            Value::Object(members.into_iter().map(|(key, value)| (key, fit(value))).collect())
        }
        (Value::Number(number), data_type) if data_type.is_integer() && number.is_f64() => whole_number(&number),
        (value, _) => value,
    }
}

/// Returns the type that the decoder makes.
fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        other => other.clone(),
    }
}

//! Files in the place of tables. Reading one needs the right to make an external table of it: role write below the folders
//! that the settings name, administrators on any local path, and at URLs what the settings name. What runs for somebody
//! else, such as the agent, reads none, whatever its caller may.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use querent_catalog::{ColumnInfo, FileFormat, Role};

use super::Session;
use crate::error::{EngineError, FilePlace, Result};
use crate::functions::is_bytes;
use crate::identifiers::same_name;
use crate::limits::QueryUsage;
use crate::policy::{Mode, allowed_location};
use crate::sql::FileSources;
use crate::sql::catalog_table::CatalogTable;
use crate::sql::file_requests::{FileRequest, MAX_LOCATIONS, OpenedFiles, file_requests, insert_target, replace_files};
use crate::sql::parse::ParsedStatement;
use crate::tables::external::{
    ALLOW_QUOTED_NULLS, VALUE_COLUMN, file_table, known_options, single_files, sql_type_name, type_of_text,
};
use crate::type_names::sql_name;

/// The option that says of which types columns are.
const TYPES: &str = "types";

/// The options by which a file is read again, and its columns where no record tells them.
type ToldReading = (BTreeMap<String, String>, Option<Schema>);

impl Session {
    /// Opens the files that a statement reads by their names, and puts names of ours in their places.
    /// Errors: `not_allowed`, `location_not_allowed`, `no_files`, `bad_data`.
    pub(super) async fn take_files(&self, state: &SessionState, parsed: &mut ParsedStatement) -> Result<FileSources> {
        let mut sources = FileSources::new();
        let nesting = parsed.nesting;
        let requests = nesting.with_room(|| file_requests(&parsed.statement))?;
        if requests.is_empty() {
            return Ok(sources);
        }
        let mut opened = Vec::with_capacity(requests.len());
        for request in &requests {
            self.may_read_files(request)?;
            let filled = match request.copied {
                true => self.columns_of_target(state, &parsed.statement).await?,
                false => Vec::new(),
            };
            opened.push(self.open_files(state, request, &filled, &mut sources).await?);
        }
        nesting.with_room(|| replace_files(&mut parsed.statement, opened));
        Ok(sources)
    }

    fn may_read_files(&self, request: &FileRequest) -> Result<()> {
        let why = match (self.mode, self.principal.role()) {
            _ if !self.reads_files => " for what runs on behalf of a caller",
            (Mode::ReadOnly, _) => " in read-only mode",
            (Mode::ReadWrite, Role::Read) => " for role read (it needs role write)",
            (Mode::ReadWrite, Role::Write | Role::Admin) => return Ok(()),
        };
        let file = request.locations.first().map(String::as_str).unwrap_or_default();
        Err(EngineError::NotAllowed { what: format!("reading the file `{file}`"), why: why.to_owned() })
    }

    /// Returns the columns that an INSERT fills, in the order of a file's columns; those of JSON are found by their names.
    async fn columns_of_target(&self, state: &SessionState, statement: &Statement) -> Result<Vec<Option<Field>>> {
        let Some((name, named)) = insert_target(statement) else { return Ok(Vec::new()) };
        let no_files = FileSources::new();
        let Some(columns) = self.planner(state, &[], &no_files).insert_columns(name).await? else {
            return Ok(Vec::new());
        };
        let filled: Vec<_> = match named.is_empty() {
            true => columns.iter().map(Some).collect(),
            false => named.iter().map(|name| columns.iter().find(|column| same_name(&column.name, name))).collect(),
        };
        let field = |column: &ColumnInfo| Field::new(&column.name, column.data_type.clone(), true);
        Ok(filled.into_iter().map(|column| column.map(field)).collect())
    }

    async fn open_files(
        &self,
        state: &SessionState,
        request: &FileRequest,
        filled: &[Option<Field>],
        sources: &mut FileSources,
    ) -> Result<OpenedFiles> {
        let declared = declared_schema(&request.columns)?;
        let mut opened = OpenedFiles { sources: Vec::new(), columns: Vec::new() };
        let mut allowed = Vec::with_capacity(request.locations.len());
        for location in &request.locations {
            let place = allowed_location(location, &self.principal, &self.engine).await?;
            QueryUsage::note_place(FilePlace::of_statement(&place, location));
            match request.by_name {
                true => allowed.extend(single_files(state, &place, request.format).await?),
                false => allowed.push(place),
            }
        }
        if allowed.len() > MAX_LOCATIONS {
            let message = format!("union_by_name takes {MAX_LOCATIONS} files at most, not {}", allowed.len());
            return Err(EngineError::Plan { message });
        }
        for allowed in allowed {
            let mut table = file_table(state, &allowed, request.format, &request.options, declared.as_ref()).await?;
            if declared.is_none()
                && !filled.is_empty()
                && let Some((options, columns)) = told_by_target(request, filled, &table.schema())?
            {
                table = file_table(state, &allowed, request.format, &options, columns.as_ref()).await?;
            }
            if opened.columns.is_empty() {
                opened.columns = table.schema().fields().iter().map(|field| field.name().clone()).collect();
            }
            let name = format!("file {}: {allowed}", sources.len() + 1);
            let source = provider_as_source(Arc::new(CatalogTable::at_allowed_location(table)));
            sources.insert(name.clone(), source);
            opened.sources.push(name);
        }
        Ok(opened)
    }
}

/// Returns the options, and where no record tells columns also those, by which a COPY into columns of these reads a file again;
/// `None` where they say nothing of it.
fn told_by_target(request: &FileRequest, filled: &[Option<Field>], file: &Schema) -> Result<Option<ToldReading>> {
    let format = request.format.unwrap_or(FileFormat::Csv);
    let is_json = format == FileFormat::Ndjson;
    let targets = || filled.iter().flatten();
    if is_json
        && let [only] = &file.fields()[..]
        && only.name() == VALUE_COLUMN
        && !targets().any(|target| same_name(target.name(), VALUE_COLUMN))
    {
        return Ok(Some((request.options.clone(), Some(Schema::new(targets().cloned().collect::<Vec<_>>())))));
    }
    let is_filled = |target: &Field| file.fields().iter().any(|field| same_name(target.name(), field.name()));
    if is_json && let Some(target) = targets().find(|target| nests_bytes(target.data_type()) && is_filled(target)) {
        return Err(EngineError::Unsupported {
            what: format!("reading bytes within `{}`, a {}, from JSON", target.name(), sql_name(target.data_type())),
            hint: "write the rows to Parquet: COPY ... TO 'file.parquet'".into(),
        });
    }
    let given = known_options(format, &request.options)?;
    if is_json
        && !given.contains_key(TYPES)
        && let Some(columns) = columns_with_maps(filled, file)
    {
        return Ok(Some((request.options.clone(), Some(columns))));
    }
    let mut options = request.options.clone();
    let holds_texts = targets().any(|target| target.data_type().is_string() || is_bytes(target.data_type()));
    if format == FileFormat::Csv && holds_texts && !given.contains_key(ALLOW_QUOTED_NULLS) {
        // What a COPY wrote comes back, as in PostgreSQL.
        options.insert(ALLOW_QUOTED_NULLS.to_owned(), "false".to_owned());
    }
    if !given.contains_key(TYPES) {
        let types = if is_json { types_of_members(filled, file) } else { types_of_fields(filled, file) };
        if !types.is_empty() {
            options.insert(TYPES.to_owned(), serde_json::Value::Object(types).to_string());
        }
    }
    Ok((options != request.options).then_some((options, None)))
}

/// Returns the types that columns of a CSV file get where a COPY puts them into columns of these: text is as it is written, bytes
/// are read as SQL writes them, and what is no number is told with its line by who reads the file.
fn types_of_fields(filled: &[Option<Field>], file: &Schema) -> serde_json::Map<String, serde_json::Value> {
    let columns = filled.iter().zip(file.fields());
    let told = columns.filter_map(|(target, field)| {
        let target = target.as_ref()?.data_type();
        let is_number = target.is_signed_integer()
            || matches!(target, DataType::Float32 | DataType::Float64 | DataType::Decimal128(..));
        // As doubles, as which a file's fractions are read, decimals would lose digits.
        let has_digits = matches!(target, DataType::Decimal128(..)) && *field.data_type() == DataType::Float64;
        let is_told =
            target.is_string() || is_bytes(target) || has_digits || is_number && field.data_type().is_string();
        is_told.then(|| (field.name().clone(), serde_json::Value::from(sql_type_name(target))))
    });
    told.collect()
}

/// As [`types_of_fields`], of JSON: a column of text gets what is no text as its JSON.
fn types_of_members(filled: &[Option<Field>], file: &Schema) -> serde_json::Map<String, serde_json::Value> {
    let told = file.fields().iter().filter_map(|field| {
        let target = filled.iter().flatten().find(|target| same_name(target.name(), field.name()))?.data_type();
        let is_told = is_bytes(target) || target.is_string() && !field.data_type().is_string();
        is_told.then(|| (field.name().clone(), serde_json::Value::from(sql_type_name(target))))
    });
    told.collect()
}

/// Returns the columns of JSON where objects fill maps, which have the keys of each record; the others are told as those of
/// [`types_of_members`]. `None` where none does.
fn columns_with_maps(filled: &[Option<Field>], file: &Schema) -> Option<Schema> {
    let target_of = |field: &Field| filled.iter().flatten().find(|target| same_name(target.name(), field.name()));
    let mut has_map = false;
    let fields = file.fields().iter().map(|field| {
        let is_map = target_of(field).is_some_and(|target| has_text_keys(target.data_type()));
        has_map |= is_map;
        let is_told = |target: &&Field| {
            let target = target.data_type();
            is_map || is_bytes(target) || target.is_string() && !field.data_type().is_string()
        };
        let data_type = target_of(field).filter(is_told).map_or(field.data_type(), Field::data_type);
        Field::new(field.name(), data_type.clone(), true)
    });
    let columns = Schema::new(fields.collect::<Vec<_>>());
    has_map.then_some(columns)
}

/// Returns whether a type is one of maps whose keys are texts, as the members of JSON have them.
fn has_text_keys(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(entry) => entry.first().is_some_and(|key| key.data_type().is_string()),
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether lists, structures or maps of a type hold bytes, which are texts in JSON.
fn nests_bytes(data_type: &DataType) -> bool {
    let is_or_nests = |field: &Field| is_bytes(field.data_type()) || nests_bytes(field.data_type());
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => is_or_nests(item),
        DataType::Map(entries, _) => is_or_nests(entries),
        DataType::Struct(fields) => fields.iter().any(|field| is_or_nests(field)),
        _ => false,
    }
}

fn declared_schema(columns: &[(String, String)]) -> Result<Option<Schema>> {
    let fields = columns.iter().map(|(name, data_type)| Ok(Field::new(name, type_of_text(data_type)?, true)));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    Ok((!fields.is_empty()).then(|| Schema::new(fields)))
}

//! Files that a statement reads by their names: `FROM 'x.csv'`, `FROM read_csv('x.csv', header = true)`. Here they are found
//! in its syntax tree and replaced; `session::file_tables` asks the policy for their locations and opens them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, SetExpr, SetOperator,
    SetQuantifier, TableAlias, TableAliasColumnDef, TableFactor, TableObject, UnaryOperator, Value, ValueWithSpan,
    Visit, Visitor, VisitorMut,
};
use querent_catalog::FileFormat;

use super::marks;
use super::shorthand::{plain, query_of, select_star, table_factor};
use super::syntax::visit_statement;
use crate::error::{EngineError, Result};
use crate::tables::external::known_options;

/// The functions that read files, with the format of each. The first letters of the last ones are DuckDB's older names.
const READERS: &[(&str, FileFormat)] = &[
    ("read_csv", FileFormat::Csv),
    ("read_csv_auto", FileFormat::Csv),
    ("sniff_csv", FileFormat::Csv),
    ("read_json", FileFormat::Ndjson),
    ("read_json_auto", FileFormat::Ndjson),
    ("read_ndjson", FileFormat::Ndjson),
    ("read_ndjson_auto", FileFormat::Ndjson),
    ("read_parquet", FileFormat::Parquet),
    ("parquet_scan", FileFormat::Parquet),
    ("read_arrow", FileFormat::Arrow),
    ("read_xlsx", FileFormat::Xlsx),
    ("read_excel", FileFormat::Xlsx),
];
/// The most locations of one list, and files that are matched by name.
pub(crate) const MAX_LOCATIONS: usize = 200;

/// What DuckDB takes of a CSV file where it detects nothing: the options by their names, and their values.
const DIALECT: [(&str, &str); 3] = [("has_header", "false"), ("delimiter", ","), ("quote", "\"")];

/// Files that stand in the place of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileRequest {
    /// `None`: as the files' names say.
    pub(crate) format: Option<FileFormat>,
    /// Paths, globs or URLs, as they are written.
    pub(crate) locations: Vec<String>,
    /// Options of the format's reader.
    pub(crate) options: BTreeMap<String, String>,
    /// The names and types of all columns, where they are given.
    pub(crate) columns: Vec<(String, String)>,
    /// Names of the first columns.
    names: Vec<String>,
    /// Whether the columns of several files are matched by their names, and null where a file lacks one.
    pub(crate) by_name: bool,
    /// Whether it is what a COPY reads into a table.
    pub(crate) copied: bool,
    /// Whether what is not said of a CSV file is found in it.
    detects: bool,
    /// What the columns are qualified by where the statement gives no alias.
    alias: String,
}

/// What was made of a request: the name of each location's source, and the names of their columns.
#[derive(Debug)]
pub(crate) struct OpenedFiles {
    pub(crate) sources: Vec<String>,
    pub(crate) columns: Vec<String>,
}

/// Returns the files that a statement reads, in the order of [`replace_files`]. Errors: `sql_plan_error`, `unsupported`.
pub(crate) fn file_requests(statement: &Statement) -> Result<Vec<FileRequest>> {
    struct FileFinder(Vec<FileRequest>);
    impl Visitor for FileFinder {
        type Break = EngineError;
        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<EngineError> {
            match file_request(factor) {
                Ok(found) => {
                    self.0.extend(found);
                    ControlFlow::Continue(())
                }
                Err(error) => ControlFlow::Break(error),
            }
        }
    }
    let inner = match statement {
        Statement::Statement(inner) => inner,
        Statement::Explain(explain) => return file_requests(&explain.statement),
        Statement::CopyTo(_) | Statement::CreateExternalTable(_) | Statement::Reset(_) => return Ok(Vec::new()),
    };
    let mut finder = FileFinder(Vec::new());
    if let ControlFlow::Break(error) = inner.visit(&mut finder) {
        return Err(error);
    }
    if matches!(**inner, ast::Statement::CreateView(_)) && !finder.0.is_empty() {
        return Err(EngineError::Unsupported {
            what: "a view over a file".into(),
            hint: "make a table of it with CREATE EXTERNAL TABLE, which is read where it lies, and view that".into(),
        });
    }
    Ok(finder.0)
}

/// Returns the table that an INSERT fills, and the columns that it names; none where it finds them by the names of its query.
pub(crate) fn insert_target(statement: &Statement) -> Option<(&ObjectName, Vec<&str>)> {
    let Statement::Statement(inner) = statement else { return None };
    let ast::Statement::Insert(insert) = inner.as_ref() else { return None };
    let TableObject::TableName(name) = &insert.table else { return None };
    let columns = insert.columns.iter().filter_map(|column| column.0.last().and_then(ObjectNamePart::as_ident));
    let columns = columns.map(|column| column.value.as_str()).filter(|name| *name != marks::BY_NAME);
    Some((name, columns.collect()))
}

/// Puts the opened files in the places of their requests.
pub(crate) fn replace_files(statement: &mut Statement, opened: Vec<OpenedFiles>) {
    struct FileReplacer(std::vec::IntoIter<OpenedFiles>);
    impl VisitorMut for FileReplacer {
        type Break = ();
        fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
            if let Ok(Some(request)) = file_request(factor)
                && let Some(opened) = self.0.next()
            {
                *factor = replacement(factor, request, opened);
            }
            ControlFlow::Continue(())
        }
    }
    let _: ControlFlow<()> = visit_statement(statement, &mut FileReplacer(opened.into_iter()));
}

fn replacement(factor: &TableFactor, request: FileRequest, opened: OpenedFiles) -> TableFactor {
    let (given, sample) = match factor {
        TableFactor::Table { alias, sample, .. } => (alias.clone(), sample.clone()),
        TableFactor::Function { alias, .. } => (alias.clone(), None),
        _ => (None, None),
    };
    let mut alias = given.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', &request.alias),
        columns: Vec::new(),
        at: None,
    });
    if alias.columns.is_empty() && !request.names.is_empty() {
        let names = request.names.iter().chain(opened.columns.iter().skip(request.names.len()));
        alias.columns = names.map(|name| TableAliasColumnDef { name: name_ident(name), data_type: None }).collect();
    }
    let source = |name: &String| table_factor(ObjectName(vec![ObjectNamePart::Identifier(name_ident(name))]), None);
    let mut sources = opened.sources.iter();
    match (sources.next(), sources.len()) {
        (Some(only), 0) => {
            let mut table = source(only);
            if let TableFactor::Table { alias: own, sample: own_sample, .. } = &mut table {
                *own = Some(alias);
                *own_sample = sample;
            }
            table
        }
        (first, _) => {
            let select = |name: &String| SetExpr::Select(Box::new(select_star(vec![plain(source(name))])));
            let quantifier = if request.by_name { SetQuantifier::AllByName } else { SetQuantifier::All };
            let body = sources.fold(first.map(select), |body, name| {
                let right = Box::new(select(name));
                body.map(|left| SetExpr::SetOperation {
                    op: SetOperator::Union,
                    set_quantifier: quantifier,
                    left: Box::new(left),
                    right,
                })
            });
            let query = query_of(body.unwrap_or_else(|| SetExpr::Select(Box::new(select_star(Vec::new())))));
            TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(alias), sample }
        }
    }
}

fn name_ident(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// Returns whether a text in the place of a table is the name of files.
pub(super) fn is_path(text: &str) -> bool {
    text.contains(['.', '/', '\\', '*'])
}

fn file_request(factor: &TableFactor) -> Result<Option<FileRequest>> {
    match factor {
        TableFactor::Table { name: ObjectName(parts), args: None, .. } => {
            let [ObjectNamePart::Identifier(ident)] = parts.as_slice() else { return Ok(None) };
            if ident.quote_style != Some('\'') || !is_path(&ident.value) {
                return Ok(None);
            }
            let last = ident.value.rsplit(['/', '\\']).next().unwrap_or_default();
            if !last.is_empty() && !last.contains(['.', '*']) {
                return Err(EngineError::Unsupported {
                    what: format!("`{}` in the place of a table, whose name does not say its format,", ident.value),
                    hint: "write read_csv('...'), read_json('...'), read_xlsx('...') or read_parquet('...') around it"
                        .into(),
                });
            }
            Ok(Some(FileRequest {
                format: None,
                locations: vec![ident.value.clone()],
                options: BTreeMap::new(),
                columns: Vec::new(),
                names: Vec::new(),
                by_name: false,
                copied: false,
                detects: true,
                alias: stem(&ident.value),
            }))
        }
        TableFactor::Table { name, args: Some(args), .. } => of_call(name, &args.args),
        TableFactor::Function { lateral: false, name, args, .. } => of_call(name, args),
        _ => Ok(None),
    }
}

fn of_call(name: &ObjectName, args: &[FunctionArg]) -> Result<Option<FileRequest>> {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return Ok(None) };
    let function = ident.value.to_lowercase();
    let Some((_, format)) = READERS.iter().find(|(reader, _)| *reader == function) else { return Ok(None) };
    if function == "sniff_csv" {
        return Err(EngineError::Unsupported {
            what: "sniff_csv".into(),
            hint: "DESCRIBE SELECT * FROM read_csv('...') shows the types; `querent import` says what was decided"
                .into(),
        });
    }
    let usage = || EngineError::Plan {
        message: format!("write {function}('file', option = value), with a path, a glob, a URL or a list of them"),
    };
    let mut request = FileRequest {
        format: Some(*format),
        locations: Vec::new(),
        options: BTreeMap::new(),
        columns: Vec::new(),
        names: Vec::new(),
        by_name: false,
        copied: false,
        detects: true,
        alias: function.clone(),
    };
    for (index, arg) in args.iter().enumerate() {
        match named_arg(arg) {
            Some((name, value)) => request.set(&name.to_lowercase(), value)?,
            None => {
                let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = arg else { return Err(usage()) };
                if index > 0 {
                    return Err(usage());
                }
                request.locations = match list_of(value) {
                    Some(items) => items.iter().map(text_of).collect::<Option<_>>().ok_or_else(usage)?,
                    None => vec![text_of(value).ok_or_else(usage)?],
                };
            }
        }
    }
    if !request.detects {
        request.settle_dialect()?;
    }
    match request.locations.len() {
        0 => Err(usage()),
        1..=MAX_LOCATIONS => Ok(Some(request)),
        more => Err(EngineError::Plan {
            message: format!("{function} takes a list of {MAX_LOCATIONS} files at most, not {more}; write a glob"),
        }),
    }
}

impl FileRequest {
    /// Says of a CSV file in which nothing is detected what DuckDB takes it for: a line a row, without a header, of these columns.
    fn settle_dialect(&mut self) -> Result<()> {
        if self.columns.is_empty() {
            let message = "with auto_detect = false the columns are named: columns = {'a': 'INTEGER'}".to_owned();
            return Err(EngineError::Plan { message });
        }
        let given = known_options(FileFormat::Csv, &self.options)?;
        for (name, value) in DIALECT {
            if !given.contains_key(name) {
                self.options.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    fn set(&mut self, option: &str, value: &Expr) -> Result<()> {
        let takes = |expected: &str| EngineError::Plan {
            message: format!("option `{option}` is {value} but takes {expected}"),
        };
        let only = |expected: &[&str], why: &str| match option_text(value) {
            Some(text) if expected.contains(&text.to_lowercase().as_str()) => Ok(()),
            _ => Err(takes(&format!("{} only: {why}", expected.join(" or ")))),
        };
        let is_csv = matches!(self.format, Some(FileFormat::Csv | FileFormat::Xlsx));
        match option {
            marks::COPIED => self.copied = true,
            "auto_detect" | "autodetect" if self.format == Some(FileFormat::Csv) => {
                self.detects = match option_text(value).map(|text| text.to_lowercase()).as_deref() {
                    Some("true" | "1") => true,
                    Some("false" | "0") => false,
                    _ => return Err(takes("true or false")),
                }
            }
            "auto_detect" | "autodetect" => only(&["true", "1"], "name columns and types to be sure of them")?,
            "hive_partitioning" => only(&["true", "1"], "folders named key=value are always columns")?,
            // More is always read than DuckDB does: 64 MiB.
            "sample_size" => option_text(value)
                .and_then(|text| text.parse::<i64>().ok())
                .map(drop)
                .ok_or_else(|| takes("a number"))?,
            "union_by_name" => {
                self.by_name =
                    option_text(value).is_some_and(|text| matches!(text.to_lowercase().as_str(), "true" | "1"));
            }
            "all_varchar" if is_csv => {
                if option_text(value).is_some_and(|text| matches!(text.to_lowercase().as_str(), "true" | "1")) {
                    self.options.insert("types".to_owned(), "*=VARCHAR".to_owned());
                }
            }
            "columns" => self.columns = pairs_of(value).ok_or_else(|| takes("names and types: {'a': 'INTEGER'}"))?,
            "names" | "column_names" => {
                let names = list_of(value).and_then(|names| names.iter().map(text_of).collect());
                self.names = names.ok_or_else(|| takes("a list of names: ['a', 'b']"))?;
            }
            "types" | "column_types" | "dtypes" | "dtype" if is_csv && list_of(value).is_some() => {
                let types = list_of(value).and_then(|types| types.iter().map(text_of).collect::<Option<Vec<_>>>());
                let types = types.ok_or_else(|| takes("a list of types: ['DATE', 'VARCHAR']"))?;
                self.options.insert(option.to_owned(), serde_json::json!(types).to_string());
            }
            "null" | "nullstr" | "null_value" | "null_values" | "na_values" if list_of(value).is_some() => {
                let texts = list_of(value).and_then(|texts| texts.iter().map(text_of).collect::<Option<Vec<_>>>());
                // The readers' option is one text, which commas separate.
                let texts = texts.filter(|texts| !texts.iter().any(|text| text.contains(',')));
                let texts = texts.ok_or_else(|| takes("texts without a comma: ['NA', '-']"))?;
                self.options.insert(option.to_owned(), texts.join(","));
            }
            "format" if self.format == Some(FileFormat::Ndjson) => only(
                &["auto", "array", "newline_delimited", "nd", "unstructured"],
                "the form of JSON is found in the file",
            )?,
            "filename" => {
                return Err(EngineError::Unsupported {
                    what: "the option `filename`".into(),
                    hint: "read each file in a SELECT of its own that names it, and join them with UNION ALL".into(),
                });
            }
            "rejects" | "rejects_table" | "store_rejects" => {
                return Err(EngineError::Unsupported {
                    what: format!("the option `{option}` where files are read in place"),
                    hint: "import the file with it: `querent import FILE --ignore-errors`".into(),
                });
            }
            _ => {
                let text = match pairs_of(value) {
                    Some(pairs) => {
                        let named = pairs.into_iter().map(|(name, data_type)| (name, data_type.into()));
                        serde_json::Value::Object(named.collect()).to_string()
                    }
                    None => match option_text(value) {
                        Some(text) => text,
                        None => {
                            // That there is no such option says more than what the others take.
                            if let Some(format) = self.format {
                                known_options(format, &BTreeMap::from([(option.to_owned(), String::new())]))?;
                            }
                            return Err(takes("a text, a number or a boolean"));
                        }
                    },
                };
                self.options.insert(option.to_owned(), text);
            }
        }
        Ok(())
    }
}

/// Returns the name and the value of `name = value`, in its spellings.
fn named_arg(arg: &FunctionArg) -> Option<(String, &Expr)> {
    match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => Some((name.value.clone(), value)),
        FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
            Some((name.value.clone(), value))
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp { left, op: BinaryOperator::Eq, right })) => {
            match left.as_ref() {
                Expr::Identifier(name) => Some((name.value.clone(), right)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn list_of(value: &Expr) -> Option<&[Expr]> {
    match value {
        Expr::Array(array) => Some(&array.elem),
        _ => None,
    }
}

fn pairs_of(value: &Expr) -> Option<Vec<(String, String)>> {
    match value {
        Expr::Dictionary(fields) => {
            fields.iter().map(|field| Some((field.key.value.clone(), text_of(&field.value)?))).collect()
        }
        _ => None,
    }
}

fn text_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text),
            ..
        }) => Some(text.clone()),
        _ => None,
    }
}

fn option_text(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(ValueWithSpan { value: Value::Boolean(value), .. }) => Some(value.to_string()),
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => Some(digits.clone()),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => option_text(expr).map(|text| format!("-{text}")),
        Expr::Identifier(ident) if ident.quote_style.is_none() => Some(ident.value.clone()),
        other => text_of(other),
    }
}

/// Returns a file's name without folders and ending.
fn stem(location: &str) -> String {
    let name = Path::new(location).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match name.split_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => name,
    }
}

//! Functions that parse structured strings: URLs, file paths, command lines, CSV, versions.

use std::collections::BTreeMap;

use arrow::array::ArrayRef;
use arrow::datatypes::i256;
use datafusion::error::Result;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;
use crate::values::decimal_one;

const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("parse_url", "w", DYNAMIC, |arguments| parsed(arguments, parse_url)),
    entry("parseurl", "w", DYNAMIC, |arguments| parsed(arguments, parse_url)),
    entry("parse_urlquery", "w", DYNAMIC, |arguments| parsed(arguments, parse_urlquery)),
    entry("parseurlquery", "w", DYNAMIC, |arguments| parsed(arguments, parse_urlquery)),
    entry("parse_path", "w", DYNAMIC, |arguments| parsed(arguments, parse_path)),
    entry("parse_command_line", "sw", DYNAMIC, parse_command_line),
    entry("parse_csv", "w", DYNAMIC, |arguments| parsed(arguments, parse_csv)),
    entry("parse_version", "w", Returns::Is(KqlType::Decimal), parse_version),
];

fn parsed(arguments: &FunctionArguments, parse: impl Fn(&str) -> Value) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_dynamics(|row| Ok(parse(strings.get(row))))
}

/// `scheme://user:password@host:port/path?query#fragment`. All parts of what is no URL are empty.
fn parse_url(url: &str) -> Value {
    let is_scheme = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.'))
    };
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)).unwrap_or_default();
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    // A single slash at the very end is no path.
    let rest = match rest.strip_suffix('/') {
        Some(host) if fragment.is_empty() && !host.contains(['/', '?']) => host,
        _ => rest,
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // A user without a password is taken for part of the host.
    let with_password = authority.rsplit_once('@').and_then(|(user, host)| Some((user.split_once(':')?, host)));
    let ((user, password), host) = with_password.unwrap_or((("", ""), authority));
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (host, ""),
    };
    json!({
        "Scheme": scheme,
        "Host": host,
        "Port": port,
        "Path": path,
        "Username": user,
        "Password": password,
        "Query Parameters": query_parameters(query),
        "Fragment": fragment,
    })
}

fn parse_urlquery(query: &str) -> Value {
    json!({ "Query Parameters": query_parameters(query.trim_start_matches('?')) })
}

/// Returns the parameters by name. One without a name or a value is left out, and several of a name become an array.
fn query_parameters(query: &str) -> Map<String, Value> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (name, value) in pairs.filter(|(name, value)| !name.is_empty() && !value.is_empty()) {
        values.entry(decoded(name)).or_default().push(decoded(value).into());
    }
    let one_or_all = |mut values: Vec<Value>| match values.len() {
        1 => values.swap_remove(0),
        _ => Value::Array(values),
    };
    values.into_iter().map(|(name, values)| (name, one_or_all(values))).collect()
}

fn parse_path(path: &str) -> Value {
    let (scheme, rest) = path.split_once("://").unwrap_or(("", path));
    let separator = |char: char| char == '/' || char == '\\';
    let (root, directories) = root_of(rest);
    let (directory, file) = match directories.rfind(separator) {
        Some(at) => (&directories[..at], &directories[at + 1..]),
        None => ("", directories),
    };
    let (file, stream) = file.split_once(':').unwrap_or((file, ""));
    // Only a drive is a root.
    let has_drive = root.contains(':');
    let (root, directory) = if has_drive { (root, directory) } else { ("", &rest[..root.len() + directory.len()]) };
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    let name = directory.rsplit(separator).next().unwrap_or("");
    let directory_path = format!("{root}{directory}");
    json!({
        "Scheme": scheme,
        "RootPath": root,
        "DirectoryPath": directory_path,
        "DirectoryName": name,
        "Filename": file,
        "Extension": extension,
        "AlternateDataStreamName": stream,
    })
}

/// Splits `C:\`, `/` or `\\server\` from the rest.
fn root_of(path: &str) -> (&str, &str) {
    let root = match path.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => 3,
        [b'\\', b'\\', ..] => 2,
        [b'/' | b'\\', ..] => 1,
        _ => 0,
    };
    path.split_at(root)
}

/// Splits a command line by the rules of Windows, which is the only parser that Kusto has.
fn parse_command_line(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (lines, parsers) = (arguments.strings(0)?, arguments.strings(1)?);
    arguments.make_dynamics(|row| match parsers.get(row).eq_ignore_ascii_case("windows") {
        true => Ok(windows_arguments(lines.get(row)).into()),
        false => Ok(Value::Null),
    })
}

/// Blanks outside quotes separate arguments. Before a quote, two backslashes stand for one, and a single one makes the
/// quote part of the argument.
fn windows_arguments(line: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    let (mut quoted, mut backslashes) = (false, 0_usize);
    for char in line.chars() {
        if char == '\\' {
            backslashes += 1;
            continue;
        }
        let kept = if char == '"' { backslashes / 2 } else { backslashes };
        if backslashes > 0 {
            current.get_or_insert_default().extend(std::iter::repeat_n('\\', kept));
        }
        let is_escaped = char == '"' && backslashes % 2 == 1;
        backslashes = 0;
        match char {
            '"' if !is_escaped => {
                quoted = !quoted;
                current.get_or_insert_default();
            }
            ' ' | '\t' if !quoted => all.extend(current.take()),
            other => current.get_or_insert_default().push(other),
        }
    }
    if backslashes > 0 {
        current.get_or_insert_default().extend(std::iter::repeat_n('\\', backslashes));
    }
    all.extend(current);
    all
}

/// Returns the fields of the first line.
fn parse_csv(line: &str) -> Value {
    let mut fields: Vec<Value> = Vec::new();
    let (mut field, mut quoted) = (String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field).into()),
            '\n' | '\r' if !quoted => break,
            other => field.push(other),
        }
    }
    fields.push(field.into());
    fields.into()
}

/// Returns a version of up to four parts of up to eight digits as one number with the same order.
fn parse_version(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_decimals(|row| version(strings.get(row)))
}

fn version(text: &str) -> Option<i256> {
    const PART: i128 = 100_000_000;
    let parts: Vec<&str> = text.trim().split('.').collect();
    if parts.len() > 4 || text.trim().is_empty() {
        return None;
    }
    let mut number: i128 = 0;
    for index in 0..4 {
        let part = parts.get(index).copied().unwrap_or("0");
        let is_number = !part.is_empty() && part.len() <= 8 && part.bytes().all(|byte| byte.is_ascii_digit());
        number = number * PART + is_number.then(|| part.parse::<i128>().ok())??;
    }
    i256::from_i128(number).checked_mul(decimal_one())
}

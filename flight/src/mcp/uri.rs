//! The addresses of schemas: `querent://schema/{database}` and `querent://schema/{database}/{table}`, with names
//! percent-encoded. An address of a database may say after which table its page begins.

use crate::error::{ApiError, ErrorCode};

/// The part before the database's name.
const PREFIX: &str = "querent://schema/";

/// What an address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SchemaUri {
    /// A database; with `after`, its tables after that name.
    Database {
        /// Its name.
        database: String,
        /// The table after which the listing continues.
        after: Option<String>,
    },
    /// A table.
    Table {
        /// Its database.
        database: String,
        /// Its name.
        table: String,
    },
}

impl SchemaUri {
    /// Parses an address. Errors: `not_found`.
    pub(super) fn parse(uri: &str) -> Result<Self, ApiError> {
        Self::read(uri).ok_or_else(|| {
            let shown: String = uri.chars().take(200).collect();
            ApiError::new(ErrorCode::NotFound, format!("there is no resource {shown}"))
                .with_hint(format!("resources are {PREFIX}DATABASE and {PREFIX}DATABASE/TABLE, names percent-encoded"))
        })
    }

    fn read(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(PREFIX)?;
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let after = match query {
            Some(query) => Some(percent_decoded(query.strip_prefix("after=")?)?),
            None => None,
        };
        let path = path.strip_suffix('/').unwrap_or(path);
        match (path.split_once('/'), after) {
            (None, after) => Some(Self::Database { database: name(path)?, after }),
            (Some((database, table)), None) => Some(Self::Table { database: name(database)?, table: name(table)? }),
            (Some(_), Some(_)) => None,
        }
    }
}

impl std::fmt::Display for SchemaUri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Database { database, after: None } => write!(f, "{PREFIX}{}", percent_encoded(database)),
            Self::Database { database, after: Some(after) } => {
                write!(f, "{PREFIX}{}?after={}", percent_encoded(database), percent_encoded(after))
            }
            Self::Table { database, table } => {
                write!(f, "{PREFIX}{}/{}", percent_encoded(database), percent_encoded(table))
            }
        }
    }
}

fn name(encoded: &str) -> Option<String> {
    percent_decoded(encoded).filter(|name| !name.is_empty() && !encoded.contains('/'))
}

/// Encodes a name. A name of dots only is encoded too, since clients resolve `..` as the parent.
fn percent_encoded(name: &str) -> String {
    let only_dots = name.bytes().all(|byte| byte == b'.');
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => text.push(char::from(byte)),
            b'.' if !only_dots => text.push('.'),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Returns a text with its escapes replaced; `None` where one is broken.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_survives_its_address() {
        for name in ["t", "a b", "a/b?c#d%", "..", ".", "v1.2", "größe", "100%"] {
            let table = SchemaUri::Table { database: name.to_owned(), table: name.to_owned() };
            assert_eq!(SchemaUri::parse(&table.to_string()).unwrap(), table);
            let database = SchemaUri::Database { database: name.to_owned(), after: Some(name.to_owned()) };
            assert_eq!(SchemaUri::parse(&database.to_string()).unwrap(), database);
        }
        let written = SchemaUri::Table { database: "default".to_owned(), table: "..".to_owned() }.to_string();
        assert_eq!(written, "querent://schema/default/%2E%2E");
    }

    #[test]
    fn what_is_no_address_is_not_found() {
        for uri in [
            "",
            "querent://schema",
            "querent://schema/",
            "querent://schema//t",
            "querent://schema/a/b/c",
            "querent://schema/a/b?after=x",
            "querent://schema/a?before=x",
            "querent://schema/%zz",
            "querent://schema/%ff",
            "querent://schema/%2",
            "file:///etc/passwd",
        ] {
            assert_eq!(SchemaUri::parse(uri).unwrap_err().code(), ErrorCode::NotFound, "{uri}");
        }
    }
}

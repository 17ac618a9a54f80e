//! The options of `querent import`, and of a shell on files, that say how text is read, for what cannot be found in the files or is found wrong.

use std::collections::BTreeMap;

/// How text files are read. What is not said is found in the files, and reported.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "How CSV, JSON and workbooks are read (default: as found in the files)")]
pub(in crate::cli) struct ReaderArgs {
    /// Types of columns: zip=VARCHAR,born=DATE; *=VARCHAR is for all others
    #[arg(long, value_name = "NAME=TYPE,...")]
    types: Option<String>,
    /// The sheet of a workbook [default: each is a table]
    #[arg(long, value_name = "NAME")]
    sheet: Option<String>,
    /// The cells of a sheet: A1:F10, B3: or B:F
    #[arg(long, value_name = "CELLS")]
    range: Option<String>,
    /// The first record names the columns
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// The first record is data
    #[arg(long)]
    no_header: bool,
    /// What separates columns: one to four bytes, or \t
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    delimiter: Option<String>,
    /// What quotes a field; empty: nothing does
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    quote: Option<String>,
    /// What stands before a quote in a quoted field; empty: quotes are doubled
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    escape: Option<String>,
    /// The encoding: latin-1, utf-16, windows-1252, shift_jis, ...
    #[arg(long, value_name = "NAME")]
    encoding: Option<String>,
    /// Lines to skip at the beginning
    #[arg(long, value_name = "LINES")]
    skip: Option<u64>,
    /// What a comment begins with, on a line of its own or behind the fields
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    comment: Option<String>,
    /// The texts that stand for null, separated by commas; empty: none but the empty one [default: NA, NULL and the like,
    /// where the file uses them so]
    #[arg(
        long = "null",
        alias = "null-value",
        value_name = "TEXT,...",
        allow_hyphen_values = true,
        value_parser = null_texts
    )]
    null_value: Option<String>,
    /// Read missing fields at the end of a line as null
    #[arg(long)]
    null_padding: bool,
    /// The format of dates, as in strftime: %d.%m.%Y
    #[arg(long, value_name = "FORMAT")]
    date_format: Option<String>,
    /// The format of timestamps: %d/%m/%Y %H:%M
    #[arg(long, value_name = "FORMAT")]
    timestamp_format: Option<String>,
    /// What stands before the fractions of numbers: . or ,
    #[arg(long, value_name = "CHAR")]
    decimal_separator: Option<String>,
    /// What stands between the thousands of numbers
    #[arg(long, value_name = "CHAR")]
    thousands: Option<String>,
    /// Set lines aside that cannot be read, in a table NAME_rejects: file, line, column, value, error
    #[arg(long)]
    ignore_errors: bool,
    /// The name of that table
    #[arg(long, value_name = "NAME", requires = "ignore_errors")]
    rejects: Option<String>,
}

impl ReaderArgs {
    /// Returns what was said, as options of the engine's readers.
    pub(in crate::cli) fn options(&self) -> BTreeMap<String, String> {
        let flag = |is_set: bool, value: &str| is_set.then(|| value.to_owned());
        let given = [
            ("types", self.types.clone()),
            ("sheet", self.sheet.clone()),
            ("range", self.range.clone()),
            ("has_header", flag(self.header, "true").or(flag(self.no_header, "false"))),
            ("delimiter", self.delimiter.clone()),
            ("quote", self.quote.clone()),
            ("escape", self.escape.clone()),
            ("encoding", self.encoding.clone()),
            ("skip", self.skip.map(|lines| lines.to_string())),
            ("comment", self.comment.clone()),
            ("null_value", self.null_value.clone()),
            ("null_padding", flag(self.null_padding, "true")),
            ("date_format", self.date_format.clone()),
            ("timestamp_format", self.timestamp_format.clone()),
            ("decimal_separator", self.decimal_separator.clone()),
            ("thousands", self.thousands.clone()),
            ("ignore_errors", flag(self.ignore_errors, "true")),
            ("rejects", self.rejects.clone()),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Returns whether a sheet is named.
    pub(super) fn names_sheet(&self) -> bool {
        self.sheet.is_some()
    }

    /// Returns whether anything was said.
    pub(super) fn is_given(&self) -> bool {
        !self.options().is_empty()
    }
}

/// Takes texts for null, which may begin with a hyphen, and refuses the next flag in the place of one that was left out.
fn null_texts(given: &str) -> Result<String, String> {
    let is_flag =
        given.strip_prefix("--").is_some_and(|name| name.starts_with(|first: char| first.is_ascii_lowercase()));
    match is_flag {
        true => Err("the texts are missing; for none but the empty field write ''".to_owned()),
        false => Ok(given.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    fn options(words: &[&str]) -> Result<BTreeMap<String, String>, clap::Error> {
        let command = ReaderArgs::augment_args(clap::Command::new("import").no_binary_name(true));
        let matches = command.try_get_matches_from(words)?;
        Ok(ReaderArgs::from_arg_matches(&matches)?.options())
    }

    #[test]
    fn values_may_begin_with_a_hyphen() {
        let given = options(&["--null", "-,n/a,--", "--delimiter", "-", "--null-padding"]).unwrap();
        assert_eq!(given.get("null_value").map(String::as_str), Some("-,n/a,--"));
        assert_eq!(given.get("delimiter").map(String::as_str), Some("-"));
        assert_eq!(given.len(), 3);
        assert_eq!(options(&["--null", "--"]).unwrap().len(), 1);
        assert!(options(&["--null", "--null-padding"]).is_err());
    }
}

//! Rows of a query as a CSV file, for COPY. Null is the text that stands for it, without quotes; an empty text and a text
//! that would be read as null are in quotes, so that both come back from readers that tell them apart. So are texts that begin
//! as comments or with an apostrophe, and those of one column that hold what may separate columns: readers that find out how
//! a file is written take them for comments, quotes and several columns. Bytes are as DuckDB writes them: `\xAA` is one; lists,
//! structures and maps are what a cast makes of them: `[1, NULL]`.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::functions::{is_bytes, text_of_bytes, value_texts};

/// A CSV file that rows of a query are written to.
pub(super) struct CsvTexts<W: Write> {
    file: W,
    delimiter: u8,
    null: String,
}

impl<W: Write> CsvTexts<W> {
    pub(super) fn new(file: W, delimiter: u8, null: &str) -> Self {
        Self { file, delimiter, null: null.to_owned() }
    }

    /// Writes the names of the columns.
    pub(super) fn write_header(&mut self, schema: &Schema) -> Result<(), ArrowError> {
        let mut line = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            self.separate(index, &mut line);
            self.add(field.name(), is_read_otherwise(field.name(), schema.fields().len() == 1), &mut line);
        }
        line.push(b'\n');
        Ok(self.file.write_all(&line)?)
    }

    /// Writes rows. Errors: what the file does not take.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let options = FormatOptions::default();
        let written = |column: &ArrayRef| -> Result<ArrayRef, ArrowError> {
            Ok(match texts_of_bytes(column.as_ref())? {
                Some(texts) => Arc::new(texts) as ArrayRef,
                None if column.data_type().is_nested() => Arc::new(value_texts(column, false)?) as ArrayRef,
                None => Arc::clone(column),
            })
        };
        let arrays = batch.columns().iter().map(written).collect::<Result<Vec<_>, _>>()?;
        let nulls: Vec<Option<NullBuffer>> = arrays.iter().map(|column| column.logical_nulls()).collect();
        let columns = arrays.iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let mut line = Vec::new();
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            line.clear();
            for (index, (values, nulls)) in columns.iter().zip(&nulls).enumerate() {
                self.separate(index, &mut line);
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    // In quotes it is no null, whatever it begins with: `#N/A`.
                    self.add(&self.null, false, &mut line);
                    continue;
                }
                text.clear();
                values.value(row).write(&mut text)?;
                let is_other = text.is_empty() || text == self.null || is_read_otherwise(&text, columns.len() == 1);
                self.add(&text, is_other, &mut line);
            }
            line.push(b'\n');
            self.file.write_all(&line)?;
        }
        Ok(())
    }

    /// Returns where the file was written to.
    pub(super) fn into_inner(self) -> W {
        self.file
    }

    fn separate(&self, index: usize, line: &mut Vec<u8>) {
        if index > 0 {
            line.push(self.delimiter);
        }
    }

    /// Adds a field, in quotes where it must be or where its text has what ends fields.
    fn add(&self, text: &str, is_quoted: bool, line: &mut Vec<u8>) {
        let ends_field = |byte: u8| byte == self.delimiter || matches!(byte, b'"' | b'\r' | b'\n');
        if !is_quoted && !text.bytes().any(ends_field) {
            line.extend_from_slice(text.as_bytes());
            return;
        }
        line.push(b'"');
        line.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        line.push(b'"');
    }
}

/// Returns the texts of a column of bytes; `None` for others.
pub(super) fn texts_of_bytes(column: &dyn Array) -> Result<Option<StringArray>, ArrowError> {
    if !is_bytes(column.data_type()) && !matches!(column.data_type(), DataType::FixedSizeBinary(_)) {
        return Ok(None);
    }
    let bytes = cast(column, &DataType::Binary)?;
    Ok(Some(bytes.as_binary::<i32>().iter().map(|bytes| bytes.map(text_of_bytes)).collect()))
}

/// Returns whether readers that find out how a CSV file is written take a field that is not in quotes for something else: for
/// a comment, a quote, or, where it is the only one of its line, for several fields.
pub fn is_read_otherwise(text: &str, is_only_field: bool) -> bool {
    text.trim_start_matches(' ').starts_with(['#', '\'']) || (is_only_field && text.contains([',', ';', '|', '\t']))
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, Int64Array, NullArray};

    use super::*;

    fn written(null: &str) -> String {
        let columns: [(&str, ArrayRef); 3] = [
            ("a,b", Arc::new(StringArray::from(vec![Some("NA"), Some(""), None, Some("x \"y\"\nz")]))),
            ("n", Arc::new(Int64Array::from(vec![Some(1), None, Some(-2), Some(3)]))),
            ("none", Arc::new(NullArray::new(4))),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
        let mut file = CsvTexts::new(Vec::new(), b',', null);
        file.write_header(&batch.schema()).unwrap();
        file.write(&batch).unwrap();
        String::from_utf8(file.into_inner()).unwrap()
    }

    #[test]
    fn a_text_is_told_from_comments_and_from_quotes() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["'a'", "# b", "  #c", "d's #4", "-1"]));
        let batch = RecordBatch::try_from_iter([("#x", texts)]).unwrap();
        let mut file = CsvTexts::new(Vec::new(), b',', "");
        file.write_header(&batch.schema()).unwrap();
        file.write(&batch).unwrap();
        let written = String::from_utf8(file.into_inner()).unwrap();
        assert_eq!(written, "\"#x\"\n\"'a'\"\n\"# b\"\n\"  #c\"\nd's #4\n-1\n");
    }

    #[test]
    fn the_texts_of_one_column_stay_one_column() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a;b", "c|d", "e\tf", "g"]));
        for (names, expected) in [
            (vec!["x;y"], "\"x;y\"\n\"a;b\"\n\"c|d\"\n\"e\tf\"\ng\n"),
            (vec!["x;y", "z"], "x;y,z\na;b,a;b\nc|d,c|d\ne\tf,e\tf\ng,g\n"),
        ] {
            let columns = names.into_iter().map(|name| (name, Arc::clone(&texts)));
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let mut file = CsvTexts::new(Vec::new(), b',', "");
            file.write_header(&batch.schema()).unwrap();
            file.write(&batch).unwrap();
            assert_eq!(String::from_utf8(file.into_inner()).unwrap(), expected);
        }
    }

    #[test]
    fn bytes_are_written_as_duckdb_writes_them() {
        let values: [Option<&[u8]>; 4] = [Some(b"\x00\xFFA"), Some(b"a,b"), None, Some(b"")];
        let bytes: ArrayRef = Arc::new(values.into_iter().collect::<BinaryArray>());
        let batch = RecordBatch::try_from_iter_with_nullable([("b", bytes, true)]).unwrap();
        let mut file = CsvTexts::new(Vec::new(), b',', "");
        file.write(&batch).unwrap();
        assert_eq!(String::from_utf8(file.into_inner()).unwrap(), "\\x00\\xFF\\x41\n\"a,b\"\n\n\"\"\n");
    }

    #[test]
    fn a_text_is_told_from_null() {
        assert_eq!(written(""), "\"a,b\",n,none\nNA,1,\n\"\",,\n,-2,\n\"x \"\"y\"\"\nz\",3,\n");
        assert!(written("#N/A").contains("\nNA,1,#N/A\n"));
        assert_eq!(written("NA"), "\"a,b\",n,none\n\"NA\",1,NA\n\"\",NA,NA\nNA,-2,NA\n\"x \"\"y\"\"\nz\",3,NA\n");
    }
}

//! Files that come with a message, as bounded text for the model. CSV, JSON, NDJSON and plain text are shown as they
//! are; of Parquet the columns and the first rows; of a PDF its text, or its pages' pictures ([`pdf`]). Nothing is fetched from
//! elsewhere.

mod pdf;

use arrow::util::display::FormatOptions;
use arrow::util::pretty::pretty_format_batches_with_options;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use self::pdf::PdfText;
use crate::error::{AgentError, Result};
use crate::models::ChatImage;
use crate::tokens::take_tokens;

/// Tokens of one file's text.
const FILE_TOKENS: usize = 2_000;
/// Rows shown of a Parquet file.
const PARQUET_ROWS: usize = 20;
const PARQUET_MAGIC: &[u8] = b"PAR1";
const JPEG: &str = "image/jpeg";
const PDF_MAGIC: &[u8] = b"%PDF-";

/// A file as part of a message.
pub(crate) struct ShownFile {
    /// What the model reads.
    pub(crate) text: String,
    /// What it sees.
    pub(crate) pictures: Vec<ChatImage>,
}

/// Returns the file as part of a message. Errors: `invalid_request` for a kind of file that cannot be read.
pub(crate) async fn shown_file(filename: &str, media_type: Option<&str>, data: &[u8]) -> Result<ShownFile> {
    let mut pictures = Vec::new();
    let text = if data.starts_with(PDF_MAGIC) || media_type == Some("application/pdf") {
        let read = pdf::read(data.to_vec()).await.map_err(|why| unreadable(filename, &why))?;
        pictures.extend(read.pictures.iter().map(|picture| ChatImage::from_bytes(JPEG, picture)));
        pdf_text(&read)
    } else if data.starts_with(PARQUET_MAGIC) {
        parquet_text(data).map_err(|error| unreadable(filename, &error))?
    } else {
        match std::str::from_utf8(data) {
            Ok(text) if !text.contains('\0') => text.to_owned(),
            _ => {
                let kind = media_type.unwrap_or("unknown");
                return Err(unreadable(filename, &format!("it is not text (its type is {kind})")));
            }
        }
    };
    let shown = take_tokens(&text, FILE_TOKENS);
    let mark = if shown.len() < text.len() {
        format!("\n[cut here: {} of {} bytes of text are shown]", shown.len(), text.len())
    } else {
        String::new()
    };
    Ok(ShownFile { text: format!("[File {filename}]\n{shown}{mark}\n[End of {filename}]"), pictures })
}

fn parquet_text(data: &[u8]) -> std::result::Result<String, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(data)).map_err(|e| e.to_string())?;
    let rows = builder.metadata().file_metadata().num_rows();
    let fields: Vec<String> =
        builder.schema().fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    let reader = builder.with_limit(PARQUET_ROWS).build().map_err(|e| e.to_string())?;
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    let options = FormatOptions::default().with_display_error(true);
    let table = pretty_format_batches_with_options(&batches, &options).map_err(|e| e.to_string())?;
    Ok(format!("{rows} rows; columns: {}\nthe first rows:\n{table}", fields.join(", ")))
}

fn pdf_text(read: &PdfText) -> String {
    let PdfText { text, read_pages, pages, pictures } = read;
    if !pictures.is_empty() {
        return format!("[a scan of {pages} pages; the pictures of {} of them come with this message]", pictures.len());
    }
    if read_pages < pages { format!("[the first {read_pages} of {pages} pages]\n{text}") } else { text.clone() }
}

fn unreadable(filename: &str, why: &str) -> AgentError {
    let message = format!(
        "the file `{filename}` cannot be read: {why}; text, CSV, JSON, NDJSON, Parquet, PDF with text and images can"
    );
    AgentError::InvalidRequest { message }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn text_is_bounded_and_says_so() {
        let text = shown_file("a.csv", None, b"a,b\n1,2\n").await.unwrap().text;
        assert_eq!(text, "[File a.csv]\na,b\n1,2\n\n[End of a.csv]");
        let long = shown_file("b.txt", None, "word ".repeat(50_000).as_bytes()).await.unwrap().text;
        assert!(long.len() < 20_000 && long.contains("[cut here: "), "{}", long.len());
        for (name, kind, data) in [
            ("c.bin", None, &[0, 159, 146][..]),
            ("d.pdf", None, b"%PDF-1.7 text"),
            ("e", Some("application/pdf"), b"text"),
        ] {
            assert_eq!(shown_file(name, kind, data).await.err().map(|error| error.code()), Some("invalid_request"));
        }
    }
}

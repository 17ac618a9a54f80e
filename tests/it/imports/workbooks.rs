//! Workbooks: types of cells, headers, sheets, areas, and what is refused.

use std::path::PathBuf;

use super::{import, types, write};
use crate::sql::{admin, engine, rows};

const NUMBERS: &str = r#"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd"/>
    <numFmt numFmtId="165" formatCode="[h]:mm"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/>
    <xf numFmtId="22"/><xf numFmtId="20"/><xf numFmtId="165"/></cellXfs></styleSheet>"#;
const SHARED: &str = "<sst><si><t>id</t></si><si><t>name</t></si><si><r><t>B &amp; </t></r><r><t>Ö</t></r></si>\
                      <si><t>007</t></si></sst>";
const FIRST: &str = r#"<worksheet><sheetData>
    <row r="1"><c r="B1" t="inlineStr"><is><t>A title</t></is></c></row>
    <row r="3"><c r="B3" t="s"><v>0</v></c><c r="C3" t="s"><v>1</v></c><c r="D3" t="str"><v>day</v></c>
      <c r="E3" t="str"><v>at</v></c><c r="F3" t="str"><v>ok</v></c><c r="G3" t="str"><v>score</v></c>
      <c r="H3" t="str"><v>clock</v></c><c r="I3" t="str"><v>mixed</v></c></row>
    <row r="4"><c r="B4"><v>1</v></c><c r="C4" t="s"><v>2</v></c><c r="D4" s="1"><v>45292</v></c>
      <c r="E4" s="2"><v>45292.5</v></c><c r="F4" t="b"><v>1</v></c><c r="G4"><v>1.5</v></c>
      <c r="H4" s="3"><v>0.25</v></c><c r="I4"><v>5</v></c></row>
    <row r="5"><c r="B5"><v>2</v></c><c r="C5" t="s"><v>3</v></c><c r="D5" s="1"><v>45293</v></c>
      <c r="E5" s="2"><v>45292.75</v></c><c r="F5" t="b"><v>0</v></c><c r="G5" t="e"><v>#DIV/0!</v></c>
      <c r="H5" s="4"><v>0.5</v></c><c r="I5" t="str"><v>x</v></c></row>
    <row r="7"><c r="B7"><v>3</v></c></row>
  </sheetData></worksheet>"#;
const SECOND: &str = r#"<worksheet><sheetData><row><c><v>1</v></c><c><v>2</v></c></row>
    <row><c><v>3</v></c><c/></row></sheetData></worksheet>"#;

#[tokio::test(flavor = "multi_thread")]
async fn cells_keep_their_types() {
    let (folder, engine) = engine().await;
    let book = write(folder.path(), "book.xlsx", book());
    let outcome = import(&engine, &book, &[]).await.unwrap();
    let reading = outcome.reading.unwrap();
    let expected = ["BIGINT", "VARCHAR", "DATE", "TIMESTAMP", "BOOLEAN", "DOUBLE", "TIME", "VARCHAR"];
    assert_eq!(types(&reading), expected);
    assert_eq!((outcome.rows, reading.skip, reading.header_line, reading.error_cells), (Some(3), 1, Some(3), 1));
    assert_eq!(reading.sheet.as_deref(), Some("First sheet"));
    assert_eq!(reading.other_sheets, ["Second"]);
    assert_eq!(reading.columns[7].note.as_deref(), Some("numbers and text"));
    let session = admin(&engine);
    let found = rows(&session, "SELECT name, day, \"at\", ok, score, clock, mixed FROM t ORDER BY id").await.unwrap();
    assert_eq!(found[0], ["B & Ö", "2024-01-01", "2024-01-01T12:00:00", "true", "1.5", "06:00:00", "5"]);
    assert_eq!(found[1], ["007", "2024-01-02", "2024-01-01T18:00:00", "false", "NULL", "12:00:00", "x"]);
    assert_eq!(found[2], ["NULL"; 7]);
}

/// Programs that write workbooks without calculating leave formulas without values.
#[tokio::test(flavor = "multi_thread")]
async fn formulas_without_values_are_counted() {
    let (folder, engine) = engine().await;
    let sheet = r#"<worksheet><sheetData><row><c t="str"><v>n</v></c><c t="str"><v>twice</v></c></row>
        <row><c><v>1</v></c><c><f>A2*2</f><v></v></c></row><row><c><v>2</v></c><c><f>A3*2</f><v>4</v></c></row>
        <row><c><v>3</v></c><c t="str"><f>""</f><v></v></c></row></sheetData></worksheet>"#;
    let book = write(folder.path(), "book.xlsx", book_of(sheet, SECOND));
    let outcome = import(&engine, &book, &[("sheet", "First sheet")]).await.unwrap();
    let reading = outcome.reading.unwrap();
    assert_eq!((outcome.rows, reading.uncalculated_cells), (Some(3), 1));
    assert!(reading.to_string().contains("1 formula has no value in the file"), "{reading}");
    let found = rows(&admin(&engine), "SELECT twice FROM t ORDER BY n").await.unwrap();
    assert_eq!(found, [["NULL"], ["4"], ["NULL"]]);
}

/// A column of numbers and truth values is text; what stands above it is its name all the same.
/// A moment and a time that were typed in as text are read where somebody says that they are ones.
#[tokio::test(flavor = "multi_thread")]
async fn texts_of_moments_and_times_are_read_as_told() {
    let (folder, engine) = engine().await;
    let sheet = r#"<worksheet><sheetData><row><c t="str"><v>at</v></c><c t="str"><v>clock</v></c></row>
        <row><c t="str"><v>2024-01-31 10:30:00</v></c><c t="str"><v>08:15</v></c></row>
        <row><c t="str"><v>2024-02-01</v></c><c t="str"><v>23:59:59</v></c></row></sheetData></worksheet>"#;
    let book = write(folder.path(), "book.xlsx", book_of(sheet, SECOND));
    let outcome =
        import(&engine, &book, &[("types", "at=TIMESTAMP,clock=TIME"), ("has_header", "true")]).await.unwrap();
    assert_eq!(types(&outcome.reading.unwrap()), ["TIMESTAMP", "TIME"]);
    let found = rows(&admin(&engine), "SELECT \"at\", clock FROM t ORDER BY 1").await.unwrap();
    assert_eq!(found, [["2024-01-31T10:30:00", "08:15:00"], ["2024-02-01T00:00:00", "23:59:59"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_above_a_mixture_of_others_is_its_name() {
    let (folder, engine) = engine().await;
    let sheet = r#"<worksheet><sheetData><row><c t="str"><v>flag</v></c></row><row><c t="b"><v>1</v></c></row>
        <row><c><v>0</v></c></row></sheetData></worksheet>"#;
    let book = write(folder.path(), "book.xlsx", book_of(sheet, SECOND));
    let outcome = import(&engine, &book, &[]).await.unwrap();
    assert_eq!((outcome.rows, outcome.reading.unwrap().header), (Some(2), Some(true)));
    assert_eq!(rows(&admin(&engine), "SELECT flag FROM t ORDER BY flag").await.unwrap(), [["0"], ["true"]]);
    let error = import(&engine, &book, &[("sheet", "x")]).await.unwrap_err().to_string();
    assert!(error.contains("no sheet `x`; the sheets are First sheet"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sheet_and_its_cells_are_named() {
    let (folder, engine) = engine().await;
    let book = write(folder.path(), "book.xlsx", book());
    let session = admin(&engine);
    let outcome = import(&engine, &book, &[("sheet", "second")]).await.unwrap();
    assert_eq!(outcome.reading.unwrap().header, Some(false));
    assert_eq!(rows(&session, "SELECT * FROM t ORDER BY 1").await.unwrap(), [["1", "2"], ["3", "NULL"]]);

    import(&engine, &book, &[("range", "B3:C5"), ("types", "id=VARCHAR")]).await.unwrap();
    assert_eq!(rows(&session, "SELECT * FROM t ORDER BY 1").await.unwrap(), [["1", "B & Ö"], ["2", "007"]]);

    let error = import(&engine, &book, &[("sheet", "Secnd")]).await.unwrap_err().to_string();
    assert!(error.contains("did you mean `Second`") && error.contains("First sheet"), "{error}");
    let error = import(&engine, &book, &[("types", "mixed=BIGINT")]).await.unwrap_err().to_string();
    assert!(error.contains("cell I5") && error.contains("expected BIGINT in column `mixed`, found `x`"), "{error}");
    let outcome = import(&engine, &book, &[("types", "mixed=BIGINT"), ("ignore_errors", "true")]).await.unwrap();
    assert_eq!((outcome.rows, outcome.rejects.map(|(lines, _)| lines)), (Some(2), Some(1)));
    let error = import(&engine, &book, &[("delimiter", ";")]).await.unwrap_err().to_string();
    assert!(error.contains("unknown option `delimiter`") && error.contains("sheet, range"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sheets_are_read_where_they_lie() {
    let (folder, engine) = engine().await;
    let book = write(folder.path(), "book.xlsx", book());
    let session = admin(&engine);
    let path = book.display();
    assert_eq!(rows(&session, &format!("SELECT count(*), sum(id) FROM '{path}'")).await.unwrap(), [["3", "6"]]);
    let read = format!("SELECT column_2 FROM read_xlsx('{path}', sheet = 'Second', header = false) LIMIT 1");
    assert_eq!(rows(&session, &read).await.unwrap(), [["2"]]);
    let create = format!("CREATE EXTERNAL TABLE e STORED AS XLSX LOCATION '{path}' OPTIONS ('sheet' 'First sheet')");
    rows(&session, &create).await.unwrap();
    assert_eq!(rows(&session, "SELECT id, name FROM e WHERE ok").await.unwrap(), [["1", "B & Ö"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn spreadsheets_of_open_document_are_read() {
    let (folder, engine) = engine().await;
    let content = r#"<office:document-content xmlns:office="o" xmlns:table="t" xmlns:text="x"><office:spreadsheet>
        <table:table table:name="Blatt"><table:table-row><table:table-cell office:value-type="string"><text:p>name</text:p>
        </table:table-cell><table:table-cell office:value-type="string"><text:p>n</text:p></table:table-cell>
        <table:table-cell office:value-type="string"><text:p>day</text:p></table:table-cell></table:table-row>
        <table:table-row table:number-rows-repeated="2"><table:table-cell office:value-type="string">
        <office:annotation><text:p>a note</text:p></office:annotation><text:p>a<text:s text:c="2"/>b</text:p>
        </table:table-cell><table:table-cell office:value-type="float" office:value="1.5"><text:p>1,5</text:p>
        </table:table-cell><table:table-cell office:value-type="date" office:date-value="2024-02-29"/>
        <table:table-cell table:number-columns-repeated="16000"/></table:table-row>
        <table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>
        </table:table></office:spreadsheet></office:document-content>"#;
    let book = write(folder.path(), "b.ods", archive(&[("mimetype", ""), ("content.xml", content)]));
    let outcome = import(&engine, &book, &[]).await.unwrap();
    assert_eq!(types(&outcome.reading.unwrap()), ["VARCHAR", "DOUBLE", "DATE"]);
    let found = rows(&admin(&engine), "SELECT * FROM t").await.unwrap();
    assert_eq!(found, [["a  b", "1.5", "2024-02-29"], ["a  b", "1.5", "2024-02-29"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_workbook_says_what_to_do() {
    let (folder, engine) = engine().await;
    let file = |name: &str, bytes: &[u8]| write(folder.path(), name, bytes);
    let refused = async |path: PathBuf| import(&engine, &path, &[]).await.unwrap_err().to_string();
    let old = refused(file("a.xls", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1 and more")).await;
    assert!(old.contains("save it as .xlsx without a password"), "{old}");
    let text = refused(file("b.xlsx", b"id,name\n1,a\n")).await;
    assert!(text.contains("is no workbook") && text.contains("but text; name the format csv"), "{text}");
    let page = refused(file("page.xls", b"<html><table><tr><td>1</td></tr></table></html>")).await;
    assert!(page.contains("but HTML or XML") && page.contains("save it as .xlsx"), "{page}");
    let other = refused(write(folder.path(), "c.xlsx", archive(&[("readme.txt", "hello")]))).await;
    assert!(other.contains("is an archive and no workbook") && other.contains("unpack it"), "{other}");
    // Other files that people have beside them, by their content.
    let foreign: [(&str, &[u8], &str); 4] = [
        ("feed.xml", b"<?xml version=\"1.0\"?>\n<a/>\n", "is XML or HTML, which is not read"),
        ("page.html", b"\n<!DOCTYPE html>\n<html></html>\n", "convert it to CSV or JSON"),
        ("paper.pdf", b"%PDF-1.4\n1 0 obj\n", "is a PDF"),
        ("app.db", b"SQLite format 3\0\x10\x00", "sqlite3 -header -csv FILE"),
    ];
    for (name, bytes, said) in foreign {
        let why = refused(file(name, bytes)).await;
        assert!(why.contains(name) && why.contains(said), "{why}");
    }
    let tickers = import(&engine, &file("prices.txt", b"<TICKER>,<CLOSE>\nUA,1.5\n"), &[]).await.unwrap();
    assert_eq!((tickers.rows, types(&tickers.reading.unwrap())), (Some(1), vec!["VARCHAR", "DOUBLE"]));
    let mut cut = book();
    cut.truncate(cut.len() / 2);
    assert!(refused(file("d.xlsx", &cut)).await.contains("the archive's end is missing"));
    // A file without an ending is known by its content.
    assert_eq!(import(&engine, &file("unnamed", &book()), &[]).await.unwrap().rows, Some(3));
}

fn book() -> Vec<u8> {
    book_of(FIRST, SECOND)
}

fn book_of(first: &str, second: &str) -> Vec<u8> {
    let relation = |id: &str, kind: &str, target: &str| {
        format!(r#"<Relationship Id="{id}" Type="http://x/{kind}" Target="{target}"/>"#)
    };
    let root = format!("<Relationships>{}</Relationships>", relation("r1", "officeDocument", "/xl/workbook.xml"));
    let of_book = format!(
        "<Relationships>{}{}{}{}{}</Relationships>",
        relation("r1", "worksheet", "worksheets/sheet1.xml"),
        relation("r2", "worksheet", "/xl/worksheets/sheet2.xml"),
        relation("r3", "chartsheet", "chartsheets/sheet1.xml"),
        relation("r4", "sharedStrings", "sharedStrings.xml"),
        relation("r5", "styles", "styles.xml")
    );
    let sheets = r#"<workbook xmlns:r="r"><workbookPr/><sheets><sheet name="First sheet" sheetId="1" r:id="r1"/>
        <sheet name="Chart" sheetId="2" r:id="r3"/><sheet name="Second" sheetId="3" r:id="r2"/>
        <sheet name="Secret" sheetId="4" state="hidden" r:id="r2"/></sheets></workbook>"#;
    archive(&[
        ("_rels/.rels", &root),
        ("xl/workbook.xml", sheets),
        ("xl/_rels/workbook.xml.rels", &of_book),
        ("xl/sharedStrings.xml", SHARED),
        ("xl/styles.xml", NUMBERS),
        ("xl/worksheets/sheet1.xml", first),
        ("xl/worksheets/sheet2.xml", second),
    ])
}

/// Returns an archive of parts that are stored as they are.
fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in parts {
        let starts = bytes.len() as u32;
        let (name_bytes, length) = ((name.len() as u16).to_le_bytes(), (content.len() as u32).to_le_bytes());
        bytes.extend(*b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend(length);
        bytes.extend(length);
        bytes.extend(name_bytes);
        bytes.extend([0, 0]);
        bytes.extend(name.as_bytes());
        bytes.extend(content.as_bytes());
        directory.extend(*b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
        directory.extend(length);
        directory.extend(length);
        directory.extend(name_bytes);
        directory.extend([0; 12]);
        directory.extend(starts.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (starts, length) = (bytes.len() as u32, directory.len() as u32);
    let count = (parts.len() as u16).to_le_bytes();
    bytes.extend(directory);
    bytes.extend(*b"PK\x05\x06\0\0\0\0");
    bytes.extend(count);
    bytes.extend(count);
    bytes.extend(length.to_le_bytes());
    bytes.extend(starts.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

//! Damaged copies of what tests and documents send, to each parser that a stranger reaches: SQL and KQL as far as
//! authorisation, bodies of every documented route, commands and tickets of Flight, files of every format. The same
//! copies each time; `QUERENT_DAMAGED_INPUTS=20` makes twenty times as many, and the targets of `fuzz/` look for more
//! with the same checks.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, CommandGetCatalogs, CommandGetDbSchemas, CommandGetSqlInfo, CommandGetTables,
    CommandPreparedStatementQuery, CommandStatementUpdate, ProstMessageExt,
};
use parquet::arrow::ArrowWriter;
use prost::Message;
use querent_catalog::{Principal, Role};
use querent_engine::Limits;
use querent_tests::damaged::{
    IMPORT_FORMATS, check_flight, check_import, check_kql, check_request, check_sql, route_examples,
};
use querent_tests::{Mutator, TestServer, TestSettings};

use crate::flight_sql::{Raw, statement, ticket_of};
use crate::sql::{admin, engine, rows};

const TOKENS: &str = "reader-tok:read:rita,writer-tok:write:wendy,admin-tok:admin:boss";

const KQL: [&str; 14] = [
    "t | where a > 1 and b has 'x' | summarize n = count(), m = avg(a) by b, bin(c, 1h) | order by n desc nulls last | take 5",
    "t | extend d = case(a == 1, 'one', a > 2, strcat(b, '-'), 'other'), e = todynamic('{\"k\": [1, 2]}').k[0]",
    "let f = (x: long) { x * 2 }; let n = 3; t | extend y = f(a) | where y in (1, 2, n) | project-away b",
    "t | join kind=leftouter (t | summarize m = max(c) by a) on a, $left.b == $right.b | project a, m",
    "t | mv-expand x = pack_array(a, a + 1) to typeof(long) | top 3 by x asc",
    "t | make-series n = count() default = 0 on c from datetime(2024-01-01) to datetime(2024-02-01) step 1d by b",
    "t | parse b with 'k=' k: long ',' rest | evaluate pivot(rest, sum(k))",
    "union kind=outer withsource=s t, (print a = 1) | distinct s, a",
    "t | serialize | extend r = row_number(), p = prev(a, 1), s = row_cumsum(a)",
    "range x from 1 to 10 step 1 | extend t = x * 1d | where t between (1d .. 3d) | count",
    "print x = datetime(2024-02-29 12:00), y = 1.5h, z = dynamic([1, {'a': null}]), g = guid(74be27de-1e4e-49d9-b579-fe0b331d3642)",
    "datatable (a: long, b: string) [1, 'x', 2, @'y\\z'] | where b matches regex '^x+$' | getschema",
    ".show tables | where TableName startswith 't'",
    "t | as hint.materialized=true q | lookup (q | summarize by a) on a | render timechart with (title='x')",
];

/// How many times as many copies as usual are made.
fn times() -> usize {
    std::env::var("QUERENT_DAMAGED_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The statements of the `.slt` files.
fn statements() -> Vec<String> {
    let mut found = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(querent_tests::package_folder().join("slt"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    files.sort();
    for file in files {
        for block in std::fs::read_to_string(file).unwrap().split("\n\n") {
            let mut lines = block.lines().skip_while(|line| line.starts_with('#') || line.is_empty());
            let first = lines.next().unwrap_or_default();
            if first.starts_with("query") || first.starts_with("statement") {
                let text: Vec<&str> = lines.take_while(|line| *line != "----").collect();
                found.push(text.join("\n"));
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_is_authorised_or_refused() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    rows(&root, "CREATE TABLE t AS SELECT 1 AS a, 'x' AS b, TIMESTAMP '2024-01-01 00:00:00' AS c").await.unwrap();
    rows(&root, "CREATE VIEW v AS SELECT a FROM t").await.unwrap();
    let reader = engine.session(Principal::new("rita", Role::Read), Limits::default()).read_only();
    let mut corpus = statements();
    assert!(corpus.len() > 500, "{}", corpus.len());
    corpus.extend(crate::attacks::SQL.iter().map(|text| (*text).to_owned()));
    let mut mutator = Mutator::new(1, corpus);
    for _ in 0..400 * times() {
        check_sql(&reader, &mutator.damaged_text()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kql_is_planned_or_refused() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    rows(&root, "CREATE TABLE t AS SELECT 1 AS a, 'x' AS b, TIMESTAMP '2024-01-01 00:00:00' AS c").await.unwrap();
    let reader = engine.session(Principal::new("rita", Role::Read), Limits::default()).read_only();
    for text in KQL {
        check_kql(&reader, text).await;
    }
    let mut mutator = Mutator::new(2, KQL);
    for _ in 0..300 * times() {
        check_kql(&reader, &mutator.damaged_text()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_every_route_are_answered() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    server.execute("CREATE TABLE orders AS SELECT 1 AS id, 2 AS customer_id").await;
    let examples = route_examples(&server.get("/openapi.json", None).await.json());
    assert!(examples.len() > 25, "{}", examples.len());
    for surface in ["/v1/query", "/v1/responses", "/v1/messages", "/run_sse", "/api/chat", "/mcp", "/v1/rest/query"] {
        assert!(examples.iter().any(|example| example.path == surface), "{surface} has no example");
    }
    for (seed, example) in examples.iter().enumerate() {
        let mut mutator = Mutator::new(seed as u64, [example.body.clone()]);
        let token = if example.path.starts_with("/v1/policy") { "admin-tok" } else { "writer-tok" };
        for _ in 0..5 * times() {
            check_request(&server, example, mutator.damaged(), Some(token)).await;
        }
    }
    assert_eq!(server.get("/health", None).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_imported_or_refused() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    for (seed, format) in IMPORT_FORMATS.iter().enumerate() {
        let mut mutator = Mutator::new(seed as u64, files(format));
        for _ in 0..40 * times() {
            check_import(&server, format, mutator.damaged(), Some("writer-tok")).await;
        }
    }
    server.execute("CREATE TABLE after_it AS SELECT 1 AS a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_tickets_are_answered() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let prepared = raw.prepare("select ?").await.unwrap().handle;
    let ticket = ticket_of(&raw.plan("select 1").await.unwrap()).ticket;
    let mut corpus = Vec::new();
    let commands = [
        statement("select 1 as a").as_any(),
        CommandPreparedStatementQuery { prepared_statement_handle: prepared }.as_any(),
        CommandStatementUpdate { query: "select 1".to_owned(), transaction_id: None }.as_any(),
        CommandGetTables { include_schema: true, ..CommandGetTables::default() }.as_any(),
        CommandGetDbSchemas::default().as_any(),
        CommandGetCatalogs::default().as_any(),
        CommandGetSqlInfo { info: vec![1, 2, 500] }.as_any(),
        ActionCreatePreparedStatementRequest { query: "select 1".to_owned(), transaction_id: None }.as_any(),
    ];
    for (kind, command) in commands.iter().enumerate() {
        // The first byte says which call it is of; each command comes to several.
        for call in [kind as u8, 0, 5] {
            corpus.push([&[call][..], command.encode_to_vec().as_slice()].concat());
        }
    }
    corpus.push([&[3_u8][..], ticket.as_ref()].concat());
    let mut mutator = Mutator::new(3, corpus);
    for _ in 0..600 * times() {
        check_flight(&mut raw.client, &mutator.damaged()).await;
    }
    assert_eq!(raw.number("select cast(7 as bigint)").await, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_pattern_is_its_writers_fault() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    for sql in [
        "SELECT regexp_replace('a', '(', 'x')",
        "SELECT 'a' ~ '('",
        "SELECT CAST(value AS VARCHAR) ~ '[' FROM generate_series(1, 3) AS s(value)",
        "SELECT regexp_replace('a', '((a{1,1000}){1,1000}){1,1000}', 'x')",
    ] {
        assert_eq!(rows(&root, sql).await.unwrap_err().code(), "invalid_value", "{sql}");
    }
}

/// Whole files of a format.
fn files(format: &str) -> Vec<Vec<u8>> {
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("a", Arc::new(Int64Array::from(vec![Some(1), None, Some(-7)])) as ArrayRef, true),
        ("b", Arc::new(StringArray::from(vec![Some("x"), Some(""), None])) as ArrayRef, true),
        ("c", Arc::new(lists) as ArrayRef, true),
    ])
    .unwrap();
    let mut bytes = Vec::new();
    match format {
        "csv" => {
            return vec![
                b"a,b,c\n1,x,2024-01-01\n2,\"y, \"\"z\"\"\",2024-02-29 12:00:00\n,,\n".to_vec(),
                b"sep=;\r\n\"n;n\";zip;born\r\n1,5;00123;31.12.1999\r\n".to_vec(),
                b"\xff\xfea\x00,\x00b\x00\n\x001\x00,\x002\x00\n\x00".to_vec(),
            ];
        }
        "ndjson" => {
            return vec![
                b"{\"a\": 1, \"b\": {\"c\": [1, 2.5, null]}, \"d\": \"2024-01-01T00:00:00Z\"}\n{\"a\": \"x\"}\n"
                    .to_vec(),
                b"[{\"a\": 9007199254740993}, {\"a\": -0.0, \"\": true}]".to_vec(),
            ];
        }
        "parquet" => {
            let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        }
        "arrow" => {
            let mut writer = FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            drop(writer);
            let mut stream = Vec::new();
            let mut writer = StreamWriter::try_new(&mut stream, &batch.schema()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            drop(writer);
            return vec![bytes, stream];
        }
        "xlsx" => bytes = workbook(),
        other => panic!("{other} has no files"),
    }
    vec![bytes]
}

/// The smallest workbook, its parts not compressed.
fn workbook() -> Vec<u8> {
    let parts = [
        (
            "[Content_Types].xml",
            "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"><Default Extension=\"xml\" \
             ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml\"/></Types>",
        ),
        (
            "_rels/.rels",
            "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship \
             Id=\"r1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument\" \
             Target=\"xl/workbook.xml\"/></Relationships>",
        ),
        (
            "xl/workbook.xml",
            "<workbook xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" \
             xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\"><sheets>\
             <sheet name=\"One\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship \
             Id=\"r1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet\" \
             Target=\"worksheets/sheet1.xml\"/></Relationships>",
        ),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData><row r=\"1\">\
             <c r=\"A1\" t=\"inlineStr\"><is><t>a</t></is></c></row><row r=\"2\"><c r=\"A2\"><v>1.5</v></c></row>\
             </sheetData></worksheet>",
        ),
    ];
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, text) in parts {
        let mut checksum = flate2::Crc::new();
        checksum.update(text.as_bytes());
        let size = (text.len() as u32).to_le_bytes();
        // What local and central headers have alike: version, flags, method (stored), time, date, checksum, sizes, the
        // name's length.
        let mut entry = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        entry.extend(checksum.sum().to_le_bytes());
        entry.extend([size, size].concat());
        entry.extend((name.len() as u16).to_le_bytes());
        entry.extend([0, 0]);
        directory.extend([&b"PK\x01\x02\x14\x00"[..], &entry, &[0; 10], &(file.len() as u32).to_le_bytes()].concat());
        directory.extend(name.as_bytes());
        file.extend([&b"PK\x03\x04"[..], &entry, name.as_bytes(), text.as_bytes()].concat());
    }
    let (begin, count) = (file.len() as u32, (parts.len() as u16).to_le_bytes());
    let length = directory.len() as u32;
    file.extend(directory);
    file.extend(
        [&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &length.to_le_bytes(), &begin.to_le_bytes(), &[0, 0]].concat(),
    );
    file
}

/// Parquet's reader makes the tree of columns by recursion: 600 levels overflowed the stack of a request's thread.
#[tokio::test]
async fn columns_far_within_each_other_are_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    // A footer of 1,002 columns, of which each but the last has one within it.
    let mut footer = vec![0x15, 2, 0x19, 0xfc, 0xea, 7];
    footer.extend([0x48, 1, b'r', 0x15, 2, 0]);
    (0..1_000).for_each(|_| footer.extend([0x35, 2, 0x18, 1, b'g', 0x15, 2, 0]));
    footer.extend([0x15, 2, 0x25, 2, 0x18, 1, b'l', 0, 0x16, 0, 0x19, 0x0c, 0]);
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    let file = [&b"PAR1"[..], &footer, &length, b"PAR1"].concat();
    let url = server.url("/v1/import?table=deep&format=parquet");
    let answer = server.http.post(url).body(file).send().await.unwrap().text().await.unwrap();
    assert!(answer.contains("bad_data") && answer.contains("nested too deeply"), "{answer}");
}

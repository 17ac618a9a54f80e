//! `POST /v1/import`: a file in the body becomes a table, all or nothing.

use std::time::Duration;

use querent_flight::config::DurationSetting;
use querent_tests::{HttpReply, TestServer, TestSettings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::query_as;

#[tokio::test]
async fn a_csv_body_becomes_a_table_and_grows_and_is_replaced() {
    let server = TestServer::start(TestSettings::default()).await;
    let made = import(&server, "table=people&format=csv", "name,age\nAda,36\nGrace,85\n", None).await;
    let reading = json!({
        "format": "csv", "header": true, "header_line": 1, "delimiter": ",", "quote": "\"", "skip": 0, "null": [],
        "columns": [{ "name": "name", "type": "VARCHAR" }, { "name": "age", "type": "BIGINT" }],
    });
    let expected = json!({
        "database": "default", "table": "people", "rows": 2, "files": 1, "created": true, "reading": reading,
    });
    assert_eq!(made.json(), expected);
    assert_eq!(count(&server).await, 2);

    let taken = import(&server, "table=people&format=csv", "name,age\nAlan,41\n", None).await;
    assert_eq!((taken.status, &taken.json()["error"]["code"]), (409, &json!("already_exists")));
    assert_eq!(count(&server).await, 2);

    let more = import(&server, "table=people&format=csv&if_exists=append", "name,age\nAlan,41\n", None).await;
    assert_eq!(more.status, 200, "{}", more.text);
    assert_eq!(count(&server).await, 3);

    let again =
        import(&server, "table=people&format=ndjson&if_exists=replace", "{\"name\":\"Edsger\",\"age\":72}\n", None);
    let again = again.await;
    assert_eq!(again.status, 200, "{}", again.text);
    assert_eq!(count(&server).await, 1);
    assert_spool_is_empty(&server);
}

#[tokio::test]
async fn a_bad_row_is_named_and_nothing_is_imported() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut csv = String::from("name,age\n");
    for row in 0..2_000 {
        csv.push_str(&format!("n{row},{row}\n"));
    }
    csv.push_str("Bob,\"three\",4,5\n");
    let bad = import(&server, "table=people&format=csv&filename=p.csv", &csv, None).await;
    assert_eq!((bad.status, &bad.json()["error"]["code"]), (400, &json!("bad_data")), "{}", bad.text);
    let message = bad.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("p.csv, line 2002"), "names the file and the line: {message}");
    assert!(!message.contains("spool"), "does not show where the server keeps things: {message}");
    let schema = server.get("/v1/catalog/schema", None).await;
    assert!(!schema.text.contains("people"), "{}", schema.text);
    assert_spool_is_empty(&server);
}

#[tokio::test]
async fn an_import_that_takes_too_long_leaves_nothing() {
    let short = DurationSetting(Duration::from_millis(1));
    let settings = TestSettings::default().change(move |settings| settings.http.import_timeout = short);
    let server = TestServer::start(settings).await;
    let csv: String = std::iter::once("n\n".to_owned()).chain((0..500_000).map(|row| format!("{row}\n"))).collect();
    let late = import(&server, "table=people&format=csv", &csv, None).await;
    let error = &late.json()["error"];
    assert_eq!((late.status, &error["code"]), (429, &json!("wall_clock_exceeded")), "{}", late.text);
    assert!(error["hint"].as_str().unwrap().contains("http.import_timeout"), "{}", late.text);
    let schema = server.get("/v1/catalog/schema", None).await;
    assert!(!schema.text.contains("people"), "{}", schema.text);
    assert_spool_is_empty(&server);
}

#[tokio::test]
async fn imports_need_a_role_a_format_a_body_and_a_size() {
    let settings = TestSettings::default().tokens("r:read,w:write");
    let server = TestServer::start(settings.change(|settings| settings.http.max_import_bytes.0 = 1_000)).await;
    let large = "a\n".repeat(1_000);
    let cases: [(&str, &str, &str, u16, &str); 10] = [
        ("w", "table=t&format=csv&delimeter=x", "a\n1\n", 400, "bad_parameter"),
        ("w", "table=t&format=parquet&skip=1", "a\n1\n", 400, "bad_parameter"),
        ("r", "table=t&format=csv", "a\n1\n", 403, "forbidden"),
        ("w", "table=t&format=xml", "a\n1\n", 400, "bad_parameter"),
        ("w", "format=csv", "a\n1\n", 400, "bad_parameter"),
        ("w", "table=t&filename=a", "a\n1\n", 400, "bad_parameter"),
        ("w", "table=default.t&format=csv", "a\n1\n", 400, "bad_parameter"),
        ("w", "table=t&format=csv", "", 400, "bad_request_body"),
        ("w", "table=t&format=csv", &large, 413, "body_too_large"),
        ("w", "table=t&format=csv&database=nowhere", "a\n1\n", 404, "database_not_found"),
    ];
    for (token, query, body, status, code) in cases {
        let reply = import(&server, query, body, Some(token)).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (status, &json!(code)), "{query}: {}", reply.text);
    }
    let nowhere = import(&server, "format=csv", "a\n1\n", Some("w")).await;
    assert!(nowhere.json()["error"]["hint"].as_str().unwrap().contains("table=NAME"), "{}", nowhere.text);
    // A refusal calls the file as its sender does, whatever its kind.
    let old = [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(), &[0; 64]].concat();
    let request = server.http.post(server.url("/v1/import?table=t&filename=a.xls")).bearer_auth("w").body(old);
    let reply = request.send().await.unwrap();
    assert_eq!(reply.status(), 400);
    let said = reply.text().await.unwrap();
    assert!(said.contains("a.xls: an Excel workbook") && !said.contains("spool"), "{said}");
    let made = import(&server, "table=t&filename=a.CSV", "a\n1\n", Some("w")).await;
    assert_eq!(made.status, 200, "{}", made.text);
    assert_spool_is_empty(&server);
}

#[tokio::test]
async fn options_files_of_a_form_and_compressed_bodies_are_taken() {
    let settings = TestSettings::default().change(|settings| settings.http.max_import_bytes.0 = 10_000);
    let server = TestServer::start(settings).await;
    let told = "table=people&format=csv&delimiter=%3B&has_header=false&types=column_1%3DVARCHAR&ignore_errors=true";
    let made = import(&server, told, "1;2\n3;4;5\n", None).await.json();
    assert_eq!(
        (&made["rows"], &made["rejects"]),
        (&json!(1), &json!({ "lines": 1, "table": "default.people_rejects" }))
    );
    assert_eq!(made["reading"]["columns"][0], json!({ "name": "column_1", "type": "VARCHAR" }));
    // The lines that were set aside are in files as their sender calls them.
    let named = format!("{told}&filename=p.csv");
    for (told, name) in [(told, "request body"), (named.as_str(), "p.csv")] {
        import(&server, &format!("{told}&if_exists=replace"), "1;2\n3;4;5\n", None).await;
        let read = json!({ "sql": "SELECT file FROM people_rejects" });
        assert_eq!(server.post("/v1/query", &read, None).await.lines(), [json!({ "file": name })]);
    }

    let form = |files: &[(&str, &str)]| {
        let part = |(name, text): &(&str, &str)| {
            format!("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n{text}\r\n")
        };
        files.iter().map(part).collect::<String>() + "--b--\r\n"
    };
    let send = async |query: &str, body: Vec<u8>, headers: &[(&str, &str)]| {
        let request = server.http.post(server.url(&format!("/v1/import?{query}"))).body(body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        server.send(request, None).await
    };
    let multipart = [("content-type", "multipart/form-data; boundary=b")];
    let replace = "table=people&format=csv&if_exists=replace";
    let bad = form(&[("day=1/x.csv", "n\n1\n"), ("day=2/y.csv", "n\n1\n2,3\n")]);
    let refused = send(replace, bad.into_bytes(), &multipart).await;
    assert!(refused.status == 400 && refused.text.contains("day=2/y.csv, line 3"), "{}", refused.text);
    assert_eq!(count(&server).await, 1);
    let good = form(&[("day=1/x.csv", "n\n1\n"), ("day=2/y.csv", "n\n1\n2\n")]);
    assert_eq!(send(replace, good.into_bytes(), &multipart).await.json()["files"], 2);
    let rows: Vec<Value> = query_as(&server, "SELECT count(*) AS n FROM people WHERE day = 2", None).await.lines();
    assert_eq!(rows[0]["n"], 2);
    let outside = form(&[("../x.csv", "n\n1\n")]);
    assert_eq!(send(replace, outside.into_bytes(), &multipart).await.status, 400);

    let zip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let zipped = send(replace, zip("n\n1\n2\n3\n"), &[("content-encoding", "gzip")]).await;
    assert_eq!(zipped.status, 200, "{}", zipped.text);
    assert_eq!(count(&server).await, 3);
    let bomb = send(replace, zip(&"1\n".repeat(1 << 20)), &[("content-encoding", "gzip")]).await;
    assert_eq!((bomb.status, &bomb.json()["error"]["code"]), (413, &json!("body_too_large")));
    let unknown = send(replace, b"n\n1\n".to_vec(), &[("content-encoding", "br")]).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (415, &json!("unsupported_media_type")));
    assert_spool_is_empty(&server);
}

/// Sends a request as clients do that read the answer only after they have sent everything.
#[tokio::test]
async fn who_is_refused_may_send_the_rest_and_sees_why() {
    const BYTES: usize = 8 << 20;
    let server = TestServer::start(TestSettings::default().tokens("r:read,w:write")).await;
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    let head = format!(
        "POST /v1/import?table=t&format=csv HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer r\r\nContent-Length: {BYTES}\r\n\r\n",
        server.addr
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..BYTES / 1024 {
        stream.write_all(&[b'1'; 1024]).await.unwrap();
    }
    stream
        .write_all(format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.addr).as_bytes())
        .await
        .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    let (refused, next) = said.split_once("}HTTP/1.1 ").unwrap();
    assert!(refused.starts_with("HTTP/1.1 403 Forbidden") && refused.contains("\"forbidden\""), "{said}");
    assert!(next.starts_with("200 OK"), "{said}");
}

/// The format and the compression are those that the names say, of a body and of the files of a form.
#[tokio::test]
async fn names_of_files_say_how_they_are_read() {
    let server = TestServer::start(TestSettings::default()).await;
    let zip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let send = async |query: &str, body: Vec<u8>, headers: &[(&str, &str)]| {
        let query = format!("table=t&if_exists=replace{query}");
        let request = server.http.post(server.url(&format!("/v1/import?{query}"))).body(body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        server.send(request, None).await
    };
    for (query, body) in [
        ("&filename=a.csv.gz", zip("n\n1\n2\n")),
        ("&filename=a.csv.GZ&format=csv", zip("n\n1\n2\n")),
        ("&filename=a.ndjson.gz", zip("{\"n\":1}\n{\"n\":2}\n")),
        ("&filename=a.tab", b"n\n1\n2\n".to_vec()),
        ("&filename=a.dat", b"n\n1\n2\n".to_vec()),
        // What no ending says is found in the first bytes.
        ("&filename=a.txt", b"[{\"n\":1},{\"n\":2}]".to_vec()),
        ("&filename=a.dat.001.gz", zip("n\n1\n2\n")),
        ("&filename=a.arrow_file", arrow_file(&[1, 2])),
    ] {
        let made = send(query, body, &[]).await;
        assert_eq!((made.status, &made.json()["rows"]), (200, &json!(2)), "{query}: {}", made.text);
    }
    // What was decoded on its way is no archive any more, whatever its name says.
    let encoded = send("&filename=a.csv.gz", zip("n\n1\n2\n"), &[("content-encoding", "gzip")]).await;
    assert_eq!(encoded.status, 200, "{}", encoded.text);

    let form = |files: &[(&str, &[u8])]| {
        let mut body = Vec::new();
        for (name, bytes) in files {
            let head = format!("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(bytes);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--b--\r\n");
        body
    };
    let multipart = [("content-type", "multipart/form-data; boundary=b")];
    let made = send("", form(&[("x.csv", b"n\n1\n"), ("y.tsv", b"n\n2\n")]), &multipart).await;
    assert_eq!((made.status, &made.json()["rows"]), (200, &json!(2)), "{}", made.text);
    for (name, bytes) in [("x.json.gz", zip("[{\"n\":1}]")), ("x.part", b"n\n1\n".to_vec())] {
        let made = send("", form(&[(name, &bytes)]), &multipart).await;
        assert_eq!((made.status, &made.json()["rows"]), (200, &json!(1)), "{name}: {}", made.text);
    }
    let empty = send("", form(&[("x.json", b"")]), &multipart).await;
    assert_eq!((empty.status, &empty.json()["rows"]), (200, &json!(0)), "{}", empty.text);
    let page = send("&filename=a.page", b"<html><body>No</body></html>".to_vec(), &[]).await;
    assert_eq!((page.status, &page.json()["error"]["code"]), (400, &json!("bad_data")), "{}", page.text);
    assert!(page.text.contains("a.page: is XML or HTML"), "{}", page.text);
    for (query, files, code, said) in [
        ("", form(&[("x", b"n\n1\n")]), "bad_parameter", "nothing says the format"),
        ("", form(&[("x.csv", b"")]), "bad_request_body", "no file with a byte in it"),
        ("", form(&[("x.csv", b"n\n1\n"), ("y.json", b"{}")]), "bad_request_body", "`y.json` is not of the format"),
        ("", form(&[("x.part", b"n\n1\n"), ("y.part", b"n\n1\n")]), "bad_parameter", "nothing says the format"),
        ("&delimeter=%3B", form(&[("x.csv", b"n\n1\n")]), "bad_parameter", "did you mean `delimiter`?"),
    ] {
        let refused = send(query, files, &multipart).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(code)), "{}", refused.text);
        assert!(refused.text.contains(said), "{}", refused.text);
    }
    assert_spool_is_empty(&server);
}

/// `curl -d @FILE` sends a file without its line ends, as one line.
#[tokio::test]
async fn a_file_that_lost_its_line_ends_is_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    let send = async |query: &str, body: &'static str, content_type: &str| {
        let url = server.url(&format!("/v1/import?table=t&if_exists=replace&{query}"));
        server.send(server.http.post(url).body(body).header("content-type", content_type), None).await
    };
    let urlencoded = "application/x-www-form-urlencoded";
    let refused = send("format=csv", "a,b1,23,4", urlencoded).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("bad_request_body")));
    assert!(refused.text.contains("--data-binary @FILE"), "{}", refused.text);
    for (query, body, content_type) in [
        ("format=csv", "a,b\n1,2", urlencoded),
        ("format=csv", "a,b", "text/csv"),
        ("format=ndjson", "{\"a\":1}{\"a\":2}", urlencoded),
    ] {
        let made = send(query, body, content_type).await;
        assert_eq!(made.status, 200, "{body}: {}", made.text);
    }
}

#[tokio::test]
async fn no_value_and_no_fraction_of_json_is_lost() {
    let server = TestServer::start(TestSettings::default()).await;
    let import = async |query: &str, body: &str| {
        import(&server, &format!("table=t&format=ndjson&if_exists=replace{query}"), body, None).await
    };
    let many: String = (0..3_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    for body in ["{\"n\":1}\n{\"n\":2} {\"n\":3}\n{\"n\":4}\n", &format!("{many}{{\"n\":1}}{{\"n\":2}}")] {
        let refused = import("", body).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
    }
    // What was declared to be whole has no fraction; `2.0` is whole.
    for (value, status) in [("2.9", 400), ("2.0", 200), ("1e3", 200)] {
        let read = import("&types=n%3DBIGINT", &format!("{{\"n\":1}}\n{{\"n\":{value}}}\n")).await;
        assert_eq!(read.status, status, "{value}: {}", read.text);
    }
}

fn arrow_file(values: &[i64]) -> Vec<u8> {
    let column: arrow::array::ArrayRef = std::sync::Arc::new(arrow::array::Int64Array::from(values.to_vec()));
    let batch = arrow::array::RecordBatch::try_from_iter([("n", column)]).unwrap();
    let mut writer = arrow::ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

async fn import(server: &TestServer, query: &str, body: &str, token: Option<&str>) -> HttpReply {
    server.send(server.http.post(server.url(&format!("/v1/import?{query}"))).body(body.to_owned()), token).await
}

async fn count(server: &TestServer) -> u64 {
    let rows: Vec<Value> = query_as(server, "SELECT count(*) AS n FROM people", None).await.lines();
    rows[0]["n"].as_u64().unwrap()
}

fn assert_spool_is_empty(server: &TestServer) {
    let left: Vec<_> = server.data().join("spool").read_dir().unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

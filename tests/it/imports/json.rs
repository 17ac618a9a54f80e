//! JSON: arrays, nested values, GeoJSON and lines, as tables that are copied and tables that are referred to.

use serde_json::json;

use super::{import, types, write};
use crate::sql::{admin, engine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn arrays_objects_and_values_are_rows() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let big = "{\"a\": 1, \"b\": \"x\"},".repeat(20_000);
    type JsonCase<'a> = (&'a str, &'a str, &'a [&'a str], &'a str, &'a [&'a str]);
    let cases: [JsonCase<'_>; 10] = [
        (
            "t.json",
            "[{\"a\": 1}, {\"a\": 2.5, \"b\": true}]",
            &["DOUBLE", "BOOLEAN"],
            "sum(a), count(b)",
            &["3.5", "1"],
        ),
        ("t.json", "[\n  {\"a\": 1},\n  {\"a\": null}\n]\n", &["BIGINT"], "sum(a), count(*)", &["1", "2"]),
        (
            "t.json",
            "{\n  \"a\": 1,\n  \"p\": {\"q\": [1, 2]}\n}\n",
            &["BIGINT", "STRUCT(q BIGINT[])"],
            "p.q[2]",
            &["2"],
        ),
        ("t.json", "{\"a\":1}\n{\"a\":\"x\"}\n", &["VARCHAR"], "min(a), max(a)", &["1", "x"]),
        ("t.json", "{\"a\":1}{\"a\":2}", &["BIGINT"], "sum(a)", &["3"]),
        (
            "t.json",
            "[{\"a\": [1]}, {\"a\": {\"b\": 2}}, {\"a\": 3}]",
            &["VARCHAR"],
            "min(a), max(a)",
            &["3", "{\"b\":2}"],
        ),
        ("t.json", "[1, 2, 3]", &["BIGINT"], "sum(json)", &["6"]),
        ("t.json", "[[1, 2], [3]]", &["BIGINT[]"], "count(json)", &["2"]),
        ("t.json", "[{\"n\": 12345678901234567890123}]", &["VARCHAR"], "n", &["12345678901234567890123"]),
        ("t.json", "[{\"a\": 1, \"A\": 2}]", &["BIGINT", "BIGINT"], "a, \"A_1\"", &["1", "2"]),
    ];
    for (name, text, expected, sql, values) in cases {
        let file = write(folder.path(), name, text);
        let outcome = import(&engine, &file, &[]).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(types(&outcome.reading.unwrap()), expected, "{text}");
        assert_eq!(rows(&session, &format!("SELECT {sql} FROM t")).await.unwrap(), [values], "imported: {text}");
        let create = format!("CREATE OR REPLACE EXTERNAL TABLE e STORED AS JSON LOCATION '{}'", file.display());
        rows(&session, &create).await.unwrap();
        assert_eq!(rows(&session, &format!("SELECT {sql} FROM e")).await.unwrap(), [values], "external: {text}");
    }
    let file = write(folder.path(), "big.json", format!("[{}]", big.trim_end_matches(',')));
    import(&engine, &file, &[]).await.unwrap();
    assert_eq!(rows(&session, "SELECT count(*), sum(a) FROM t").await.unwrap(), [["20000", "20000"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn features_of_geojson_are_rows() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let feature = |id: u32, name: &str, geometry: serde_json::Value| json!({ "type": "Feature", "id": id, "properties": { "name": name, "n": id }, "geometry": geometry });
    let text = json!({
        "type": "FeatureCollection",
        "crs": { "type": "name" },
        "features": [
            feature(1, "a", json!({ "type": "Point", "coordinates": [1.5, 2] })),
            feature(2, "b", json!({ "type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]] })),
            feature(3, "c", json!(null)),
        ],
    });
    let file = write(folder.path(), "places.geojson", serde_json::to_string_pretty(&text).unwrap());
    import(&engine, &file, &[]).await.unwrap();
    let create = format!("CREATE EXTERNAL TABLE e STORED AS JSON LOCATION '{}'", file.display());
    rows(&session, &create).await.unwrap();
    for table in ["t", "e"] {
        let sql = format!("SELECT id, name, n, geometry FROM {table} ORDER BY id");
        let expected = [
            ["1", "a", "1", "{\"type\":\"Point\",\"coordinates\":[1.5,2]}"],
            ["2", "b", "2", "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,0],[0,1],[0,0]]]}"],
            ["3", "c", "3", "NULL"],
        ];
        assert_eq!(rows(&session, &sql).await.unwrap(), expected, "{table}");
    }
}

/// A property that only some features have does not share a column with the features' member of its name.
#[tokio::test(flavor = "multi_thread")]
async fn members_of_features_stay_apart_from_properties() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let text = json!({ "type": "FeatureCollection", "features": [
        { "type": "Feature", "id": 1, "properties": { "n": 1 }, "geometry": null },
        { "type": "Feature", "id": 2, "properties": { "n": 2, "id": "own", "geometry": "flat" },
          "geometry": { "type": "Point" } },
    ]});
    let file = write(folder.path(), "places.geojson", text.to_string());
    import(&engine, &file, &[]).await.unwrap();
    for table in ["t".to_owned(), format!("'{}'", file.display())] {
        let sql = format!("SELECT feature_id, id, geometry, feature_geometry FROM {table} ORDER BY n");
        let expected = [["1", "NULL", "NULL", "NULL"], ["2", "own", "flat", "{\"type\":\"Point\"}"]];
        assert_eq!(rows(&session, &sql).await.unwrap(), expected, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_writers_of_json_produce_is_read() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let cases: [(&str, &str, &[&[&str]]); 12] = [
        // No struct has members of one name, case aside.
        (
            "{\"m\": {\"a\": 1, \"A\": [2]}, \"n\": 1}\n{\"m\": {\"b\": 3}, \"n\": 2}\n",
            "n, m",
            &[&["1", "{\"a\":1,\"A\":[2]}"], &["2", "{\"b\":3}"]],
        ),
        ("[{\"a\": NaN}, {\"a\": -Infinity}, {\"a\": 1.5}]", "a::VARCHAR", &[&["-inf"], &["1.5"], &["nan"]]),
        ("{\"a\": 1E400}\n{\"a\": 1}\n", "a::VARCHAR", &[&["1.0"], &["inf"]]),
        ("[null, {\"a\": 1}]", "a", &[&["1"], &["NULL"]]),
        ("[]", "count(*), count(json)", &[&["0", "0"]]),
        ("{}\n{}\n", "json", &[&["{}"], &["{}"]]),
        ("{\"type\": \"FeatureCollection\", \"features\": []}", "count(geometry)", &[&["0"]]),
        ("[NaN, 1]", "json::VARCHAR", &[&["1.0"], &["nan"]]),
        // As DuckDB reads them, numbers with an exponent are doubles, and integers keep their digits.
        ("{\"a\": 1e22}\n{\"a\": -0.5}\n", "a + 0.5 = 0, a > 9e21", &[&["false", "true"], &["true", "false"]]),
        ("{\"a\": 123456789012345678901234567890}\n{\"a\": 1}\n", "a", &[&["1"], &["123456789012345678901234567890"]]),
        (
            "{\"a\": 123456789012345678901234567890, \"m\": [1]}\n{\"a\": -9223372036854775809, \"m\": \"x\"}\n",
            "a, m",
            &[&["-9223372036854775809", "x"], &["123456789012345678901234567890", "[1]"]],
        ),
        (
            "{\"m\": [12345678901234567890123]}\n{\"m\": \"12345678901234567890123\"}\n",
            "m",
            &[&["12345678901234567890123"], &["[\"12345678901234567890123\"]"]],
        ),
    ];
    for (text, sql, expected) in cases {
        let file = write(folder.path(), "t.json", text);
        import(&engine, &file, &[]).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        for table in ["t".to_owned(), format!("'{}'", file.display())] {
            let found = rows(&session, &format!("SELECT {sql} FROM {table} ORDER BY 1")).await.unwrap();
            assert_eq!(found, expected, "{text}: {table}");
        }
    }
    // No records are added to a table of any columns.
    rows(&session, "CREATE TABLE kept AS SELECT 1 AS a").await.unwrap();
    let file = write(folder.path(), "t.json", "[]");
    let request = querent_engine::ImportRequest {
        source: file.display().to_string(),
        format: None,
        options: Default::default(),
        table: querent_catalog::TableName::new("default", "kept"),
        external: false,
        if_exists: None,
    };
    let who = querent_catalog::Principal::local_admin();
    let added = engine.import(&who, request, std::sync::Arc::new(querent_catalog::NoProgress)).await.unwrap();
    assert_eq!((added.rows, added.created), (Some(0), false));
    let file = write(folder.path(), "t.json", "{\"a\": 1}\n{\"a\": 1, \"a\": 2}\n");
    let error = import(&engine, &file, &[]).await.unwrap_err().to_string();
    assert!(error.contains("t.json, line 2") && error.contains("the key `a` stands twice"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_told_types_and_set_aside() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let file = write(
        folder.path(),
        "t.ndjson",
        "{\"zip\": 501, \"born\": \"2012-03-30\"}\n{\"zip\":\n{\"zip\": 1, \"born\": \"x\"}\n",
    );
    let error = import(&engine, &file, &[]).await.unwrap_err().to_string();
    assert!(error.contains("t.ndjson, line 2: not JSON"), "{error}");
    let options = [("types", "zip=VARCHAR,born=DATE"), ("ignore_errors", "true")];
    let outcome = import(&engine, &file, &options).await.unwrap();
    assert_eq!((outcome.rows, outcome.rejects.unwrap().0), (Some(1), 2));
    assert_eq!(rows(&session, "SELECT zip, born FROM t").await.unwrap(), [["501", "2012-03-30"]]);
    let sql = "SELECT line, \"column\", value FROM t_rejects ORDER BY line";
    assert_eq!(rows(&session, sql).await.unwrap(), [["2", "NULL", "{\"zip\":"], ["3", "born", "\"x\""]]);

    for (text, said) in [
        ("[{\"a\": 1}", "does not end"),
        ("[{\"a\": 1}] x", "text after the end of the array"),
        ("{\"a\": 1}\n2\n", "line 2: expected an object"),
        ("{\"a\": 1\n", "does not end"),
    ] {
        let file = write(folder.path(), "t.json", text);
        let error = import(&engine, &file, &[]).await.unwrap_err();
        assert!(error.code() == "bad_data" && error.to_string().contains(said), "{text}: {error}");
    }
    let file = write(folder.path(), "t.json", "{\"a\": 1}");
    let error = import(&engine, &file, &[("ignore_error", "true")]).await.unwrap_err().to_string();
    assert!(error.contains("did you mean `ignore_errors`?"), "{error}");
}

/// A value among objects is a row of nothing that anybody asked for.
#[tokio::test(flavor = "multi_thread")]
async fn values_among_objects_are_set_aside() {
    let (folder, engine) = engine().await;
    let file = write(folder.path(), "t.json", "[{\"a\": 1}, 5, null, [2], {\"a\": 3}]");
    let refused = import(&engine, &file, &[]).await.unwrap_err().to_string();
    assert!(refused.contains("expected an object, found `5`; ignore_errors sets records aside"), "{refused}");
    let outcome = import(&engine, &file, &[("ignore_errors", "true")]).await.unwrap();
    assert_eq!((outcome.rows, outcome.rejects.unwrap().0), (Some(3), 2));
    let session = admin(&engine);
    assert_eq!(rows(&session, "SELECT a FROM t ORDER BY a").await.unwrap(), [["1"], ["3"], ["NULL"]]);
    assert_eq!(rows(&session, "SELECT value FROM t_rejects ORDER BY value").await.unwrap(), [["5"], ["[2]"]]);
}

/// What the refusal says works.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_too_many_members_is_read_as_one_text() {
    let (folder, engine) = engine().await;
    let members: Vec<String> = (0..10_001).map(|member| format!("\"m{member}\":{member}")).collect();
    let text = format!("{{{}}}", members.join(","));
    let refused = import(&engine, &write(folder.path(), "t.json", &text), &[]).await.unwrap_err();
    assert!(refused.to_string().contains("format csv, delimiter \\t, quote empty, no header"), "{refused}");
    let options = [("delimiter", "\\t"), ("quote", ""), ("header", "false")];
    assert_eq!(import(&engine, &write(folder.path(), "t.csv", &text), &options).await.unwrap().rows, Some(1));
    let sql = "SELECT count(*), sum(CAST(value AS BIGINT)) FROM t, json_each(column_1)";
    assert_eq!(rows(&admin(&engine), sql).await.unwrap(), [["10001", "50005000"]]);
}

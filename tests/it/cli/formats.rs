//! Formats of rows, and boxes for people.

use serde_json::Value;

use super::WorkFolder;

const ROWS: &str = "SELECT * FROM (VALUES (1, 'plain', 1.5e0), (2, 'a,\"b\"' || chr(10) || 'c' || chr(9) || 'd', NULL), (3, '', 0.1e0)) \
                    AS t(id, text, number) ORDER BY id";

#[test]
fn rows_are_printed_in_each_format() {
    let work = WorkFolder::new();
    for (format, expected) in [
        ("csv", "id,text,number\n1,plain,1.5\n2,\"a,\"\"b\"\"\nc\td\",\n3,\"\",0.1\n"),
        ("tsv", "id\ttext\tnumber\n1\tplain\t1.5\n2\ta,\"b\"\\nc\\td\t\\N\n3\t\t0.1\n"),
        (
            "json",
            "[{\"id\":1,\"text\":\"plain\",\"number\":1.5},\n{\"id\":2,\"text\":\"a,\\\"b\\\"\\nc\\td\",\"number\":null},\n\
             {\"id\":3,\"text\":\"\",\"number\":0.1}]\n",
        ),
        (
            "ndjson",
            "{\"id\":1,\"text\":\"plain\",\"number\":1.5}\n{\"id\":2,\"text\":\"a,\\\"b\\\"\\nc\\td\",\"number\":null}\n\
             {\"id\":3,\"text\":\"\",\"number\":0.1}\n",
        ),
        (
            "markdown",
            "| id | text | number |\n| ---: | --- | ---: |\n| 1 | plain | 1.5 |\n| 2 | a,\"b\"<br>c\td | NULL |\n| 3 |  | 0.1 |\n",
        ),
        (
            "vertical",
            "─[ row 1 ]─\nid     │ 1\ntext   │ plain\nnumber │ 1.5\n─[ row 2 ]─\nid     │ 2\ntext   │ a,\"b\"\\nc\\td\n\
             number │ NULL\n─[ row 3 ]─\nid     │ 3\ntext   │ \nnumber │ 0.1\n(3 rows)\n",
        ),
        (
            "box",
            "┌────────┬─────────────┬────────┐\n│   id   │    text     │ number │\n│ bigint │   varchar   │ double │\n\
             ├────────┼─────────────┼────────┤\n│      1 │ plain       │    1.5 │\n│      2 │ a,\"b\"\\nc\\td │   NULL │\n\
             │      3 │             │    0.1 │\n└────────┴─────────────┴────────┘\n(3 rows)\n",
        ),
    ] {
        assert_eq!(work.run(&["sql", "--output", format, ROWS]).succeeded(), expected, "{format}");
    }
    assert_eq!(work.run(&["sql", "--output", "csv", "SELECT 1 AS a WHERE false"]).succeeded(), "a\n");
    assert_eq!(work.run(&["sql", "--output", "json", "SELECT 1 AS a WHERE false"]).succeeded(), "[]\n");
    for (format, expected) in [("table", "done\n"), ("vertical", "done\n"), ("markdown", "done\n"), ("csv", "")] {
        let said = work.run(&["sql", "--output", format, "CREATE TABLE IF NOT EXISTS made (a INT)"]).succeeded();
        assert_eq!(said, expected, "{format}");
    }
    assert!(work.run(&["kql", "--output", "csv", "print a = 1"]).succeeded().starts_with("a\n1\n"));
    work.run(&["sql", "--output", "xml", "SELECT 1"]).failed(2);
    let said = work.run(&["sql", "--output", "parquet", "SELECT INTERVAL '1 day' AS i"]).failed(1);
    assert!(said.contains("[unsupported]") && said.contains("`i` is an INTERVAL"), "{said}");
    // Flags stand behind the command, and the command line says so.
    let said = work.run(&["--data", "here", "sql", "SELECT 1"]).failed(2);
    assert!(said.contains("querent sql --data DIR"), "{said}");
    work.run(&["sql", "--output", "csv", "--json", "SELECT 1"]).failed(2);
}

#[test]
fn csv_comes_back_as_it_was() {
    let work = WorkFolder::new();
    for values in ["('a;b'), ('c;d'), ('e|f')", "('''q'''), ('# note'), ('x')", "('''a''', 1), ('''b''', 2), ('#c', 3)"]
    {
        let written = work.run(&["sql", "--output", "csv", &format!("SELECT * FROM (VALUES {values})")]).succeeded();
        std::fs::write(work.path("back.csv"), &written).unwrap();
        let read = work.run(&["back.csv", "--output", "csv", "-c", "FROM back"]).succeeded();
        assert_eq!(read, written, "{values}");
    }
}

#[test]
fn arrow_and_parquet_are_what_their_readers_read() {
    let work = WorkFolder::new();
    let python = "import sys, json, pyarrow.ipc, pyarrow.parquet\n\
                  read = {'arrow': lambda f: pyarrow.ipc.open_stream(f).read_all(), 'parquet': pyarrow.parquet.read_table}\n\
                  print(json.dumps(read[sys.argv[1]](sys.argv[2]).to_pylist()))";
    for format in ["arrow", "parquet"] {
        let output = work.querent(&["sql", "--output", format, ROWS]).output().unwrap();
        assert!(output.status.success());
        let file = work.path(format);
        std::fs::write(&file, output.stdout).unwrap();
        let rows = querent_tests::Python::run(python, &[format, file.to_str().unwrap()]);
        let rows: Value = serde_json::from_str(&rows).unwrap();
        assert_eq!(rows[1]["text"], "a,\"b\"\nc\td", "{format}: {rows}");
        assert_eq!(rows.as_array().map(Vec::len), Some(3), "{format}");
    }
}

/// A second result behind a whole file would be lost on its readers.
#[test]
fn a_parquet_file_holds_one_result() {
    let work = WorkFolder::new();
    for format in ["parquet", "arrow"] {
        let statements = "SET timezone = 'UTC'; SELECT 7 AS a; CREATE TABLE late (a INT)";
        let done = work.querent(&["--output", format, "-c", statements]).output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(2) && said.contains("holds the rows of one statement"), "{said}");
        assert!(work.run(&["sql", "SELECT * FROM late"]).failed(1).contains("table_not_found"), "{format}");
        let steps = format!(
            ".output kept.{format}\n.mode {format}\nSELECT 7 AS a;\n.output rest.csv\n.mode csv\nSELECT 8 AS b;\n"
        );
        work.pipe(&[], &steps).succeeded();
        let read = work.run(&["--output", "csv", &format!("kept.{format}"), "-c", "FROM kept"]).succeeded();
        assert_eq!(read, "a\n7\n");
        assert_eq!(std::fs::read_to_string(work.path("rest.csv")).unwrap(), "b\n8\n");
        // Nor does it stand behind rows of another format.
        let steps = format!(".output mixed\nSELECT 7 AS a;\n.mode {format}\nSELECT 8 AS b;\n");
        let done = work.pipe(&["--output", "csv"], &steps);
        assert!(done.failed(2).contains("rows are there: name another file"), "{format}");
        assert_eq!(std::fs::read_to_string(work.path("mixed")).unwrap(), "a\n7\n");
    }
}

/// An error quotes what the data says; a terminal would act on it.
#[test]
fn errors_show_control_characters() {
    let work = WorkFolder::new();
    let said = work.run(&["-c", "SELECT CAST(chr(27) || '[31mred' AS INTEGER)"]).failed(1);
    assert!(said.contains(r"\u{1b}[31mred") && !said.contains('\u{1b}'), "{said}");
    // So would it on rows that are for people.
    for format in ["table", "box", "vertical", "markdown"] {
        let said = work.run(&["--output", format, "-c", "SELECT chr(27) || '[31mred' AS a"]).succeeded();
        assert!(said.contains(r"\u{1b}[31mred") && !said.contains('\u{1b}'), "{format}: {said}");
    }
}

#[test]
fn a_table_shows_the_first_and_the_last_rows() {
    let work = WorkFolder::new();
    let shown = work.run(&["sql", "SELECT value AS v FROM generate_series(1, 250) AS s(value) ORDER BY v"]).succeeded();
    let values: Vec<i64> = shown.lines().filter_map(|line| line.trim_matches(['│', ' ']).parse().ok()).collect();
    assert_eq!(values.len(), 100, "{shown}");
    assert_eq!((values[0], values[49], values[50], values[99]), (1, 50, 201, 250), "{shown}");
    assert_eq!(shown.matches('·').count(), 3, "{shown}");
    assert!(shown.ends_with("(250 rows, 100 shown: --rows 0 shows all, --output csv streams them)\n"), "{shown}");
    let shown =
        work.run(&["sql", "--rows", "4", "SELECT value AS v FROM generate_series(1, 5) AS s(value) ORDER BY v"]);
    let shown = shown.succeeded();
    let values: Vec<i64> = shown.lines().filter_map(|line| line.trim_matches(['│', ' ']).parse().ok()).collect();
    assert_eq!(values, [1, 2, 4, 5], "{shown}");
}

#[test]
fn plans_are_whole() {
    let work = WorkFolder::new();
    let long = "x".repeat(400);
    let plan = work.run(&["sql", &format!("EXPLAIN SELECT '{long}' AS a FROM generate_series(1, 3)")]).succeeded();
    assert!(plan.starts_with("logical_plan\n") && plan.contains(&long) && !plan.contains('│'), "{plan}");
    assert!(plan.contains("\nphysical_plan\n"), "{plan}");
}

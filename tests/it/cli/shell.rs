//! The shell: what is piped in, files without a folder, and a person at a terminal.

use std::io::Write as _;
use std::process::Stdio;

use querent_tests::{Python, ServerProcess, querent_binary};
use serde_json::{Value, json};

use super::{Done, WorkFolder, script};

impl WorkFolder {
    /// Pipes `input` into `querent` with these arguments.
    pub(super) fn pipe(&self, arguments: &[&str], input: &str) -> Done {
        let mut command = self.querent(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("querent starts");
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Done::of(child.wait_with_output().unwrap())
    }

    /// Runs `querent` in a terminal of that many columns, typing these keys as these texts show.
    fn at_terminal(&self, columns: u16, arguments: &[&str], steps: &[(&str, &str)]) -> Shown {
        let steps: Vec<Value> = steps.iter().map(|(expect, send)| json!({"expect": expect, "send": send})).collect();
        self.with_steps(columns, arguments, &Value::from(steps))
    }

    /// As [`WorkFolder::at_terminal`], with the steps of `terminal.py`.
    fn with_steps(&self, columns: u16, arguments: &[&str], steps: &Value) -> Shown {
        let binary = querent_binary().to_str().unwrap().to_owned();
        let mut driver = Python::client("terminal.py");
        driver.args([&columns.to_string(), "50", &binary]).args(arguments);
        driver.current_dir(self.folder.path()).env("HOME", self.folder.path()).env_remove("XDG_STATE_HOME");
        driver.env("QUERENT_EMBED_PROVIDER", "none").env("TERM", "xterm-256color");
        let pager = self.path("pager.sh");
        driver.env("PAGER", if pager.exists() { format!("sh {}", pager.display()) } else { "cat".to_owned() });
        for name in ["QUERENT_SERVER", "QUERENT_DATA", "NO_COLOR", "COLUMNS", "LINES"] {
            driver.env_remove(name);
        }
        if self.path("script.json").exists() {
            driver.env("QUERENT_AGENT_SCRIPT", self.path("script.json"));
        }
        let mut child = driver.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python starts");
        child.stdin.take().unwrap().write_all(steps.to_string().as_bytes()).unwrap();
        let output = Done::of(child.wait_with_output().unwrap()).succeeded();
        let said: Value = serde_json::from_str(&output).expect(&output);
        let shown = said["shown"].as_str().unwrap().to_owned();
        assert_eq!(said["missed"], Value::Null, "not shown: {}\n{shown}", said["missed"]);
        Shown { code: said["code"].as_i64().unwrap(), text: shown }
    }
}

/// What a terminal showed.
struct Shown {
    code: i64,
    text: String,
}

#[test]
fn statements_that_are_piped_in_run_up_to_the_first_error() {
    let work = WorkFolder::new();
    work.run(&["import", "flights.csv"]).succeeded();
    let said = work
        .pipe(&["--output", "csv"], "select 1 as a;\n-- nothing\nkql flights | count;\n.mode ndjson\nselect 2 as b");
    assert_eq!(said.succeeded(), "a\n1\nCount\n3\n{\"b\":2}\n");
    let done = work.pipe(&["--output", "csv"], "select 1 as a; select * from nowhere; select 3 as c;");
    assert_eq!(done.stdout, "a\n1\n");
    assert!(done.failed(1).starts_with("error [table_not_found]"));
    assert_eq!(
        work.run(&["--output", "csv", "-c", "select 1 as a", "-c", "select 2 as b;"]).succeeded(),
        "a\n1\nb\n2\n"
    );
    assert!(work.pipe(&[], ".modee csv\n").failed(2).contains("did you mean `.mode`?"));
    assert_eq!(work.pipe(&[], "").succeeded(), "");
    assert_eq!(work.pipe(&[], "select 1 as a; .quit\nselect 2;").succeeded().matches("(1 row)").count(), 1);
    assert_eq!(work.pipe(&[], "select 1 as a;\nexit\nselect 2;").succeeded().matches("(1 row)").count(), 1);
    std::fs::copy(work.path("flights.csv"), work.path("[x].csv")).unwrap();
    let counted = work.run(&["--output", "csv", "[x].csv", "-c", "select count(*) as n from _x_"]).succeeded();
    assert_eq!(counted, "n\n3\n", "a file whose name is a pattern, too");
}

#[test]
fn files_are_read_as_told() {
    let work = WorkFolder::new();
    std::fs::write(work.path("ragged.csv"), "a;zip\n1;00501\n2\n-;7\n").unwrap();
    let refused = work.run(&["ragged.csv", "-c", "select 1"]).failed(1);
    assert!(refused.contains("null_padding reads missing fields as null"), "{refused}");
    let sql = "select a, zip from ragged order by a";
    let told = ["--null-padding", "--null", "-", "--types", "zip=BIGINT", "--output", "csv"];
    let read = work.run(&[&told[..], &["ragged.csv", "-c", sql]].concat()).succeeded();
    assert_eq!(read, "a,zip\n1,501\n2,\n,7\n");
    let told = ["--ignore-errors", "--delimiter", ";", "--output", "csv", "ragged.csv"];
    let rejects = "select line from ragged_rejects";
    assert_eq!(work.run(&[&told[..], &["-c", rejects]].concat()).succeeded(), "line\n3\n");
    let refused = work.run(&["--delimiter", ";", "-c", "select 1"]).failed(2);
    assert!(refused.contains("need a file"), "{refused}");
    // As the shell's `<(...)` is; whatever the name says of its format.
    let refused = work.run(&["/dev/null", "-c", "select 1"]).failed(1);
    assert!(refused.contains("a pipe or a device"), "{refused}");
}

#[test]
fn commands_list_what_there_is() {
    let work = WorkFolder::new();
    work.run(&["import", "flights.csv", "Air Lines.csv"]).succeeded();
    let run = |input: &str| work.pipe(&["--output", "csv"], input).succeeded();
    run("create view late as select * from flights where delay > 10; create schema sales;");
    assert_eq!(
        run("\\d"),
        "database,name,kind\ndefault,air_lines,BASE TABLE\ndefault,flights,BASE TABLE\ndefault,late,VIEW\n"
    );
    assert_eq!(run("\\dt").lines().count(), 3);
    assert!(run("\\dv").ends_with("late,VIEW\n"));
    assert!(run("\\d flights").contains("\ncarrier,"));
    assert!(run("\\l").contains("sales"));
    assert!(run("\\df date_tr").contains("date_trunc\n"));
    assert_eq!(run("\\df regexp_match"), "regexp_match\nregexp_matches\n");
    let schema = run(".schema");
    assert!(schema.contains("CREATE TABLE flights (\n  carrier VARCHAR,\n  delay BIGINT\n);\n"), "{schema}");
    assert!(schema.contains("CREATE VIEW late AS"), "{schema}");
    // Names with dots are names, and no tables of other databases.
    run("create table \"a.b\" as select 1 as \"Sepal.Length\", 2 as plain;");
    let schema = run(".schema");
    for part in ["CREATE TABLE \"a.b\" (\n  \"Sepal.Length\" BIGINT", "  plain BIGINT"] {
        assert!(schema.contains(part), "{schema}");
    }
    // So are words of the language, as files are called.
    std::fs::write(work.path("order.csv"), "group,n\nx,1\n").unwrap();
    let schema = work.pipe(&["order.csv"], ".schema\n").succeeded();
    assert!(schema.contains("CREATE TABLE \"order\" (\n  \"group\" VARCHAR,\n"), "{schema}");
    // What is more than names and types is there too, and so are tables of the session.
    let made = "create table keyed (id uuid primary key, n integer not null default 7);\ncreate temp table own as select 1 as a, null as b;\n\
                insert into own values (2, 'x');\n\
                copy (select 1 as x) to 'x.parquet';\n\
                create external table outside stored as parquet location 'x.parquet';\n.schema\n";
    let schema = run(made);
    for part in [
        "CREATE TABLE keyed (\n  id UUID",
        "  n INTEGER NOT NULL DEFAULT 7,\n  PRIMARY KEY (\"id\")\n);",
        "CREATE TEMPORARY TABLE own (\n  a BIGINT",
        "  b VARCHAR",
        "CREATE EXTERNAL TABLE \"default\".\"outside\" STORED AS PARQUET LOCATION '",
    ] {
        assert!(schema.contains(part), "{part}: {schema}");
    }
    assert!(work.pipe(&["order.csv", "--output", "csv"], "\\d order\n").succeeded().contains("\ngroup,"));
    assert_eq!(
        run("\\c sales\ncreate table t as select 1 as a; \\dt\n"),
        "count\n1\ndatabase,name,kind\nsales,t,BASE TABLE\n"
    );
    assert!(work.pipe(&[], "\\c nowhere\n").failed(1).contains("database_not_found"));
    std::fs::write(work.path("in.sql"), "select count(*) as n from flights;\n.output out.csv\nselect 7 as seven;\n")
        .unwrap();
    assert_eq!(run(".read in.sql\n.output\nselect 8 as eight;"), "n\n3\neight\n8\n");
    assert_eq!(std::fs::read_to_string(work.path("out.csv")).unwrap(), "seven\n7\n");
    assert!(run(".timer on\nselect 1 as a;").contains("Time: "));
    let chart = run("select carrier, count(*) as n from flights group by 1 order by 1;\n.chart");
    assert!(chart.contains("UA │") && chart.contains('█'), "{chart}");
    let schema = run("create view sales.early as select 1 as a;\n.schema sales.early\n");
    assert!(schema.contains("CREATE VIEW sales.early AS"), "{schema}");
    assert!(run(".help").contains(".mode FORMAT"));
}

#[test]
fn what_a_statement_sets_holds_for_the_shell() {
    let session = "create schema if not exists sales; use sales; create or replace table t as select 7 as seven; \
                   prepare q as select seven + $1 as s from t; execute q(1); show schema as x; \\dt\n";
    let session = session.replace("show schema as x;", "show schema;");
    let expected = "count\n1\ns\n8\nschema\nsales\ndatabase,name,kind\nsales,t,BASE TABLE\n";
    let work = WorkFolder::new();
    assert_eq!(work.pipe(&["--output", "csv"], &session).succeeded(), expected);
    let kept = "create temp table own as select 5 as five; select five from own; kql own | project six = five + 1; select * from 'flights.csv' limit 0; \
                copy (select 1 as one) to 'one.csv'; select one from 'one.csv'; \\dt\n";
    assert_eq!(
        work.pipe(&["--output", "csv"], kept).succeeded(),
        "count\n1\nfive\n5\nsix\n6\ncarrier,delay\ncount\n1\none\n1\n\
         database,name,kind\n,own,LOCAL TEMPORARY\n"
    );

    let server = ServerProcess::start(&[]);
    let address = server.url.trim_end_matches('/').to_owned();
    assert_eq!(work.pipe(&["--server", &address, "--output", "csv"], &session).succeeded(), expected);
    // KQL is in the session too, and Kusto's commands are statements.
    let kept = "create temp table own as select 5 as five;\n.mode kql\nown | project six = five + 1;\n\
                .create-or-alter graph_model G ```{\"Definition\": {\"Steps\": [{\"Kind\": \"AddEdges\", \"Query\": \
                \"datatable(a:string, b:string)[]\", \"SourceColumn\": \"a\", \"TargetColumn\": \"b\"}]}}```;\n\
                .show graph_models | count;\n";
    let said = work.pipe(&["--server", &address, "--output", "csv"], kept).succeeded();
    assert!(said.starts_with("count\n1\nsix\n6\n") && said.ends_with("Count\n1\n"), "{said}");
    let said = work.pipe(&["--server", &address], "kql nothere | count;").failed(1);
    assert!(said.contains("^^^^^^^\nSHOW TABLES"), "{said}");
    let said = work.run(&["-c", ".show graph_models"]).failed(2);
    assert!(said.contains("`kql .show ...;`"), "{said}");
}

#[test]
fn files_are_queried_without_a_data_folder() {
    let work = WorkFolder::new();
    let said = work.run(&[
        "flights.csv",
        "Air Lines.csv",
        "--output",
        "csv",
        "-c",
        "select name, count(*) as n from flights join air_lines using (carrier) group by 1 order by 2 desc",
    ]);
    assert_eq!(said.succeeded(), "name,n\nUnited Air Lines Inc.,2\nAmerican Airlines Inc.,1\n");
    assert!(!work.path("querent-data").exists(), "no folder is made");
    let said = work.run(&["sqll"]).failed(2);
    assert!(said.contains("no such file or command: sqll") && said.contains("did you mean `sql`?"), "{said}");
    work.run(&["absent.csv"]).failed(2);
    // What a table is called is said where the file's name does not say it.
    std::fs::copy(work.path("flights.csv"), work.path("2013 (1).csv")).unwrap();
    let said =
        work.run(&["2013 (1).csv", "flights.csv", "--output", "csv", "-c", "select count(*) as n from t_2013__1_"]);
    assert!(said.stderr.contains("tables: t_2013__1_, flights"), "{}", said.stderr);
    assert_eq!(said.succeeded(), "n\n3\n");
    let said = work.run(&["flights.csv", "-c", "select 1"]);
    assert!(!said.stderr.contains("tables:"), "{}", said.stderr);
}

#[test]
fn a_glob_and_a_folder_are_one_table_of_a_shell_on_files() {
    let work = WorkFolder::new();
    for (name, rows) in [("trips/day=1/a.csv", "riders\n1\n"), ("trips/day=2/b.csv", "riders\n2\n3\n")] {
        let path = work.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, rows).unwrap();
    }
    let query = "select day, sum(riders) as riders from trips group by 1 order by 1";
    for source in ["trips", "trips/*/*.csv", "trips/**/*.csv"] {
        let said = work.run(&[source, "--output", "csv", "-c", query]);
        assert_eq!(said.succeeded(), "day,riders\n1,1\n2,5\n", "{source}");
    }
    let said = work.run(&["trips/*.csv", "-c", "select 1"]).failed(2);
    assert!(said.contains("no such file or command: trips/*.csv"), "{said}");
    // A statement is no glob, and standard input is no file.
    let said = work.run(&["select * from trips"]).failed(2);
    assert!(said.contains("querent -c"), "{said}");
    let said = work.run(&["-", "-c", "select 1"]).failed(2);
    assert!(said.contains("write the rows to a file"), "{said}");
}

#[test]
fn the_shell_finds_the_server_that_has_the_folder_open() {
    let server = ServerProcess::start(&[]);
    let work = WorkFolder::new();
    let data = server.data.path().to_str().unwrap();
    work.run(&["import", "--data", data, "flights.csv"]).succeeded();
    let said =
        work.pipe(&["--data", data, "--output", "csv"], "select count(*) as n from flights;\n\\dt\nkql print a = 1;");
    assert_eq!(said.succeeded(), "n\n3\ndatabase,name,kind\ndefault,flights,BASE TABLE\na\n1\n");
}

#[test]
fn a_person_at_a_terminal() {
    let work = WorkFolder::new();
    work.run(&["import", "flights.csv"]).succeeded();
    std::fs::write(
        work.path("script.json"),
        script("SELECT count(*) AS n FROM flights", "Three **flights**.").to_string(),
    )
    .unwrap();
    let endless = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b, generate_series(1, 100000) c;\r";
    let prompt = "querent> ";
    let shown = work.at_terminal(
        100,
        &[],
        &[
            (".help lists commands", ""),
            (prompt, "select\r"),
            ("select", "40 + 2 as answer;\r"),
            ("42", ""),
            (prompt, "select * from nowhere;\r"),
            ("table_not_found", ""),
            (prompt, "select carr\t from fli\t order by 1;\r"),
            ("(3 rows)", ""),
            (prompt, endless),
            ("running", "\x03"),
            ("cancelled", ""),
            (prompt, "select 'still' || ' here' as s;\r"),
            ("still here", ""),
            ("(1 row)", ""),
            (prompt, ".mode kql\r"),
            ("querent kql> ", "flights | count;\r"),
            ("Count", ""),
            ("querent kql> ", ".mode sql\r"),
            (prompt, "? how many flights\r"),
            ("run_sql", ""),
            ("Three \x1b[1mflights\x1b[0m.", ""),
            (prompt, ".quit\r"),
        ],
    );
    assert_eq!(shown.code, 0, "{}", shown.text);
    assert!(shown.text.contains("\x1b[1m"), "colours: {}", shown.text);
    // What was typed is there the next time.
    let again = work.at_terminal(
        100,
        &[],
        &[(prompt, "\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\r"), ("(1 row)", ""), (prompt, "\x04")],
    );
    assert!(again.text.contains("still here"), "{}", again.text);
    assert_eq!(again.code, 0, "{}", again.text);
}

/// As a paste without brackets comes, and as somebody types who does not wait.
#[test]
fn lines_that_come_together_are_all_read() {
    let work = WorkFolder::new();
    let lines = "select 40 + 1 as a;\rselect 40 + 2 as b;\rselect 40 + 3 as c;\r.quit\r";
    let shown = work.at_terminal(80, &["flights.csv"], &[("querent> ", lines)]);
    assert_eq!(shown.code, 0, "{}", shown.text);
    for value in ["     41 ", "     42 ", "     43 "] {
        assert!(shown.text.contains(value), "{}", shown.text);
    }
}

#[test]
fn a_box_fits_the_terminal() {
    let work = WorkFolder::new();
    let columns: Vec<String> = (0..40).map(|column| format!("'value {column}' AS column_{column}")).collect();
    let sql = format!("SELECT {}", columns.join(", "));
    let shown = work.at_terminal(80, &["sql", &sql], &[]);
    let lines: Vec<&str> = shown.text.lines().filter(|line| line.contains(['│', '┌'])).collect();
    assert!(lines.len() >= 4, "{}", shown.text);
    for line in lines {
        let plain = line.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "");
        assert!(plain.trim_end().chars().count() <= 80, "{plain}");
    }
    assert!(shown.text.contains("column_0") && shown.text.contains("column_39"), "{}", shown.text);
    assert!(shown.text.contains("(1 row; 40 columns, "), "{}", shown.text);
    let rows = "select * from generate_series(1, 100);\r";
    let steps = [("querent> ", rows), ("shown: .rows 0 shows all", ""), ("querent> ", ".quit\r")];
    assert_eq!(work.at_terminal(80, &["flights.csv"], &steps).code, 0);
    let plan = work.at_terminal(80, &["sql", "EXPLAIN SELECT 1"], &[]);
    assert!(plan.text.contains("physical_plan"), "{}", plan.text);
    let refused = work.at_terminal(80, &["sql", "--output", "parquet", "SELECT 1"], &[("for programs", "")]);
    assert_eq!(refused.code, 2);
}

#[test]
fn a_path_below_the_home_folder_is_completed_and_read() {
    let work = WorkFolder::new();
    std::fs::write(work.path("morning.sql"), "select 'from ' || 'home' as s;").unwrap();
    let steps = [("querent> ", ".read ~/morn\t\r"), ("from home", ""), ("querent> ", ".quit\r")];
    assert_eq!(work.at_terminal(80, &["flights.csv"], &steps).code, 0);
}

/// A window is made larger to see more.
#[test]
fn a_box_fits_a_terminal_that_has_changed() {
    let work = WorkFolder::new();
    let sql = "select 'first' as a, repeat('-', 60) || 'whole' as b;\r";
    let steps = json!([
        {"expect": "querent> ", "send": sql},
        {"expect": "…", "send": ""},
        {"expect": "querent> ", "columns": 120, "send": sql},
        {"expect": "--whole ", "send": ""},
        {"expect": "querent> ", "send": ".quit\r"},
    ]);
    assert_eq!(work.with_steps(50, &["flights.csv"], &steps).code, 0);
}

/// Who presses ctrl-c in a pager has its search end; a program that ended then would leave the pager beside the shell.
#[test]
fn ctrl_c_in_a_pager_is_the_pagers() {
    let work = WorkFolder::new();
    // The key may come before the pager reads: then its first `read` gets the line, else it fails and the second one does.
    let pager =
        "trap 'echo interrupted' INT\ncat >/dev/null\nexec </dev/tty\necho paging\nread line || read line\necho left\n";
    std::fs::write(work.path("pager.sh"), pager).unwrap();
    let arguments = ["sql", "--rows", "0", "SELECT * FROM generate_series(1, 100)"];
    let shown = work.at_terminal(80, &arguments, &[("paging", "\u{3}"), ("interrupted", "\r"), ("left", "")]);
    assert_eq!(shown.code, 0, "{}", shown.text);
}

#[test]
fn a_question_follows_up_the_last_one() {
    let work = WorkFolder::new();
    work.run(&["import", "flights.csv"]).succeeded();
    let script = json!({ "runs": [
        { "turns": [{ "events": [{ "text": "Three." }] }] },
        { "turns": [{ "events": [{ "text": "Two of them." }] }] },
    ] });
    std::fs::write(work.path("script.json"), script.to_string()).unwrap();
    let ask = |arguments: &[&str]| {
        let mut command = work.querent(&[&["ask"], arguments].concat());
        command.env("XDG_STATE_HOME", work.path("state")).env("QUERENT_AGENT_SCRIPT", work.path("script.json"));
        Done::of(command.output().unwrap())
    };
    assert!(ask(&["--follow-up", "and then?"]).failed(2).contains("no earlier question"));
    ask(&["how many flights?"]).succeeded();
    ask(&["--follow-up", "and of UA?"]).succeeded();
    let sql = "SELECT count(*) AS runs, count(DISTINCT conversation_id) AS conversations FROM agent_runs";
    assert_eq!(work.run(&["sql", "--json", sql]).succeeded(), "{\"runs\":2,\"conversations\":1}\n");
}

/// A working folder, or a shell, may have the settings of a server.
#[test]
fn a_shell_on_files_leaves_a_shared_catalog_alone() {
    let work = WorkFolder::new();
    std::fs::write(work.path("querent.toml"), "[catalog]\nurl = \"postgres://me@127.0.0.1:9/lake\"\n").unwrap();
    let mut command = work.querent(&["flights.csv", "--output", "csv", "-c", "SELECT count(*) AS n FROM flights"]);
    command.env("QUERENT_DATA_PATH", "s3://bucket/lake/");
    assert_eq!(Done::of(command.output().unwrap()).succeeded(), "n\n3\n");
}

/// Notepad and PowerShell begin files with a byte order mark.
#[test]
fn statements_that_an_editor_has_marked_are_read() {
    let work = WorkFolder::new();
    std::fs::write(work.path("marked.sql"), "\u{feff}.mode csv\n\u{feff}SELECT 1 AS a;\n").unwrap();
    assert_eq!(work.pipe(&["flights.csv"], ".read marked.sql").succeeded(), "a\n1\n");
    let piped = std::fs::read_to_string(work.path("marked.sql")).unwrap();
    assert_eq!(work.pipe(&["flights.csv"], &piped).succeeded(), "a\n1\n");
    std::fs::write(work.path("marked.sql"), "\u{feff}SELECT 1 AS a").unwrap();
    assert_eq!(work.run(&["sql", "--output", "csv", "-f", "marked.sql"]).succeeded(), "a\n1\n");
}

/// A setting is text: the name would become that of another folder, with U+FFFD in it.
#[test]
fn a_data_folder_whose_name_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;

    let work = WorkFolder::new();
    let mut command = work.querent(&["sql", "SELECT 1", "--data"]);
    command.arg(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    let said = Done::of(command.output().unwrap()).failed(2);
    assert!(said.contains("UTF-8"), "{said}");
    assert!(std::fs::read_dir(work.folder.path()).unwrap().all(|entry| !entry.unwrap().path().is_dir()));
}

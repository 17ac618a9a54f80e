//! The command line, as a user types it: output, exit codes, embedded and against a server.

mod answers;
mod formats;
mod help;
mod shell;
mod trust;
mod uploads;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use querent_tests::{ServerProcess, TestServer, TestSettings, models_dir, querent_binary};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A working folder with files to import and a data folder that does not exist yet.
struct WorkFolder {
    folder: TempDir,
}

impl WorkFolder {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("flights.csv", "carrier,delay\nUA,11\nAA,\nUA,-3\n");
        write("Air Lines.csv", "carrier,name\nUA,United Air Lines Inc.\nAA,American Airlines Inc.\n");
        write("bad.csv", "a,b\n1,2\n3,4\n5,6,7\n");
        write("query.sql", "SELECT count(*) AS n FROM flights;\n");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a command that runs `querent` in that folder, without the caller's settings.
    fn querent(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(querent_binary());
        command.current_dir(self.folder.path()).args(arguments).stdin(Stdio::null());
        for (name, _) in std::env::vars() {
            if name.starts_with("QUERENT_") || name.starts_with("KYMA_") {
                command.env_remove(name);
            }
        }
        command.env("QUERENT_EMBED_PROVIDER", "none");
        command
    }

    fn run(&self, arguments: &[&str]) -> Done {
        Done::of(self.querent(arguments).output().expect("querent starts"))
    }
}

/// A command that ended.
struct Done {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Done {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns the standard output of a command that must succeed.
    #[track_caller]
    fn succeeded(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Returns the standard error of a command that must end with this exit code.
    #[track_caller]
    fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self.stderr
    }
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// A relative path, as that of the default folder is, names the folder of the queries that run in it.
#[test]
fn a_query_is_among_those_that_run() {
    let work = WorkFolder::new();
    let folders: [&[&str]; 3] = [&[], &["--data", "./other"], &["--data", "other/../third"]];
    for data in folders {
        let arguments = ["sql", "--output", "csv", "SELECT count(*) AS n FROM system.queries"];
        let arguments = [&arguments[..1], data, &arguments[1..]].concat();
        assert_eq!(work.run(&arguments).succeeded(), "n\n1\n", "{data:?}");
    }
}

#[test]
fn relationships_queries_and_metrics_are_taught_from_the_command_line() {
    let work = WorkFolder::new();
    work.run(&["import", "--data", "lake", "flights.csv", "Air Lines.csv"]).succeeded();
    let added = work.run(&["relationships", "add", "--data", "lake", "flights.carrier", "air_lines.carrier"]);
    assert!(added.succeeded().contains("\"origin\":\"declared\""));
    let unknown = work.run(&["relationships", "add", "--data", "lake", "flights.carier", "air_lines.carrier"]);
    assert!(unknown.failed(1).contains("column_not_found"));

    let queries = [
        r#"{"question": "flights by carrier", "sql": "SELECT carrier, count(*) FROM flights GROUP BY 1"}"#,
        r#"{"question": "delays", "sql": "SELECT dely FROM flights"}"#,
    ];
    std::fs::write(work.path("queries.ndjson"), queries.join("\n")).unwrap();
    let refused = work.run(&["verified-queries", "import", "--data", "lake", "queries.ndjson"]).failed(1);
    assert!(refused.contains("object 2 of 2") && refused.contains("1 stored before it"), "{refused}");
    let listed = json_lines(&work.run(&["verified-queries", "list", "--data", "lake"]).succeeded());
    assert_eq!(listed.len(), 1, "{listed:?}");

    let metric = json!([{
        "name": "mean delay", "table": {"database": "default", "table": "flights"}, "expression": "avg(delay)",
    }]);
    std::fs::write(work.path("metrics.json"), metric.to_string()).unwrap();
    work.run(&["metrics", "import", "--data", "lake", "metrics.json"]).succeeded();
    let found = work.run(&["search", "--data", "lake", "--json", "mean", "delay", "of", "UA"]).succeeded();
    let hits = json_lines(&found);
    let why = hits[0]["why"].to_string();
    assert!(why.contains("metric") && why.contains("value 'UA' in flights.carrier"), "{found}");
    work.run(&["metrics", "drop", "--data", "lake", "1"]).succeeded();
    assert!(work.run(&["metrics", "list", "--data", "lake"]).succeeded().is_empty());
}

#[test]
fn a_listing_without_entries_says_so_beside_its_output() {
    let work = WorkFolder::new();
    for (command, said) in [
        (["token", "list"], "no tokens beside those of the settings; `querent token create NAME --role admin`"),
        (["metrics", "list"], "no metrics yet; `querent metrics import FILE`"),
        (["verified-queries", "list"], "no verified queries yet; `querent verified-queries import FILE`"),
        (["verified-queries", "proposals"], "no proposals wait; `querent feedback RUN_ID right`"),
        (["relationships", "list"], "no relationships are declared; `querent relationships add FROM TO`"),
        (["audit", "export"], "no records"),
    ] {
        let listed = work.run(&[command[0], command[1], "--data", "lake"]);
        assert!(listed.stderr.contains(said), "{command:?}: {}", listed.stderr);
        assert_eq!(listed.succeeded(), "", "{command:?}");
    }
}

#[test]
fn an_error_shows_the_name_that_is_unknown() {
    let work = WorkFolder::new();
    work.run(&["import", "--data", "lake", "flights.csv"]).succeeded();
    let query = "SELECT carrier,\n  dely\nFROM flights";
    let said = work.run(&["sql", "--data", "lake", query]).failed(1);
    assert!(said.contains("unknown column `dely`") && said.contains("\n    dely\n    ^"), "{said}");
    let said = work.run(&["--data", "lake", "-c", "SELECT * FROM flihgts"]).failed(1);
    assert!(said.contains("\n  SELECT * FROM flihgts\n                ^"), "{said}");
}

#[test]
fn help_has_examples_and_exit_codes() {
    let work = WorkFolder::new();
    let help = work.run(&["--help"]).succeeded();
    let commands =
        ["relationships", "verified-queries", "metrics", "serve", "sql", "ask", "verify", "import", "search", "demo"];
    for command in commands.into_iter().chain(["fetch", "config"]) {
        assert!(help.contains(command), "{help}");
        let arguments: &[&str] =
            if command == "config" { &["config", "check", "--help"] } else { &[command, "--help"] };
        let help = work.run(arguments).succeeded();
        assert!(help.contains("Examples:"), "{command}: {help}");
    }
    assert!(help.contains("Exit codes:"), "{help}");
    assert!(work.run(&["--version"]).succeeded().starts_with("querent "));
}

#[test]
fn wrong_command_lines_and_settings_exit_with_two() {
    let work = WorkFolder::new();
    work.run(&["sqll"]).failed(2);
    work.run(&["sql", "--rows", "many", "select 1"]).failed(2);
    work.run(&["sql", "--server", "http://x", "--data", "y", "select 1"]).failed(2);
    let said = work.run(&["sql", "--server", "http://127.0.0.1:9/v1", "select 1"]).failed(2);
    assert!(said.ends_with("without what is behind its port: http://127.0.0.1:9\n"), "{said}");
    work.run(&["sql", "--server", "http://127.0.0.1:9/#/query", "select 1"]).failed(3);
    work.run(&["import", "--table", "t", "flights.csv", "Air Lines.csv"]).failed(2);
    assert!(work.run(&["sql", "-f", "absent.sql"]).failed(2).contains("absent.sql"));
    let said = work.run(&["config", "check", "--set", "agent.modle=x"]).failed(2);
    assert!(said.contains("did you mean `agent.model`?"), "{said}");
}

#[test]
fn what_cannot_be_reached_or_opened_exits_with_three() {
    let work = WorkFolder::new();
    for arguments in [
        &["sql", "--server", "http://127.0.0.1:9", "select 1"][..],
        &["ask", "--server", "http://127.0.0.1:9", "how many?"],
        &["search", "--server", "http://127.0.0.1:9", "flights"],
        &["import", "--server", "http://127.0.0.1:9", "flights.csv"],
    ] {
        let said = work.run(arguments).failed(3);
        assert!(said.contains("no server answers at http://127.0.0.1:9"), "{said}");
    }
}

#[test]
fn settings_are_shown_with_their_origin_and_without_secrets() {
    let work = WorkFolder::new();
    std::fs::write(work.path("querent.toml"), "[agent]\nmodel = \"qwen3:8b\"\n").unwrap();
    let mut command = work.querent(&["config", "check", "--json", "--set", "query.timeout=60s"]);
    let output = command.env("QUERENT_AUTH_TOKENS", "s3cret:read").output().unwrap();
    let said = Done::of(output).succeeded();
    let setting = |key: &str| json_lines(&said).into_iter().find(|line| line["key"] == key).expect(key);
    assert_eq!(setting("agent.model")["value"], "qwen3:8b");
    assert!(setting("agent.model")["origin"].as_str().unwrap().contains("querent.toml"));
    assert_eq!(setting("query.timeout")["origin"], "command line");
    assert!(setting("auth.tokens")["origin"].as_str().unwrap().contains("QUERENT_AUTH_TOKENS"));
    assert!(!said.contains("s3cret"), "{said}");
}

#[test]
fn a_data_folder_without_a_server() {
    let work = WorkFolder::new();
    let said = work.run(&["import", "flights.csv", "Air Lines.csv"]).succeeded();
    let read = "csv: header in line 1; delimiter `,`; columns carrier VARCHAR,";
    let flights = format!("default.flights: 3 rows from 1 file\n  {read} delay BIGINT\n");
    assert_eq!(said, format!("{flights}default.air_lines: 2 rows from 1 file\n  {read} name VARCHAR\n"));

    let table = work.run(&["sql", "SELECT carrier, sum(delay) AS d FROM flights GROUP BY carrier ORDER BY carrier"]);
    let table = table.succeeded();
    assert!(table.contains("carrier") && table.contains("NULL") && table.ends_with("(2 rows)\n"), "{table}");

    let rows = work.run(&["sql", "--json", "SELECT * FROM flights ORDER BY delay NULLS LAST"]).succeeded();
    let expected = [
        json!({"carrier": "UA", "delay": -3}),
        json!({"carrier": "UA", "delay": 11}),
        json!({"carrier": "AA", "delay": null}),
    ];
    assert_eq!(json_lines(&rows), expected);

    assert_eq!(work.run(&["sql", "--json", "-f", "query.sql"]).succeeded(), "{\"n\":3}\n");
    let mut piped = work.querent(&["sql", "--json", "-"]);
    let mut child = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"select 7 as seven").unwrap();
    assert_eq!(Done::of(child.wait_with_output().unwrap()).succeeded(), "{\"seven\":7}\n");

    let found = work.run(&["search", "--json", "flights"]).succeeded();
    assert_eq!(json_lines(&found)[0]["table"], "flights", "{found}");
    assert!(work.run(&["search", "flights"]).succeeded().contains("flights"));
}

#[test]
fn long_results_and_cells_are_marked_where_cut() {
    let work = WorkFolder::new();
    let series = "SELECT value FROM generate_series(1, 250) AS s(value)";
    let table = work.run(&["sql", series]).succeeded();
    assert!(table.contains("(250 rows, 100 shown: --rows 0 shows all"), "{table}");
    let table = work.run(&["sql", "--rows", "0", series]).succeeded();
    assert!(table.ends_with("(250 rows)\n"), "{table}");
    let table = work.run(&["sql", "SELECT repeat('x', 1000) AS s"]).succeeded();
    assert!(table.contains('…'), "{table}");
    assert_eq!(json_lines(&work.run(&["sql", "--json", series]).succeeded()).len(), 250, "JSON is never cut");
}

#[test]
fn a_failing_statement_exits_with_one_and_its_code() {
    let work = WorkFolder::new();
    work.run(&["import", "flights.csv"]).succeeded();
    let said = work.run(&["sql", "SELECT * FROM flight"]).failed(1);
    assert!(said.starts_with("error [table_not_found]"), "{said}");
    assert!(said.contains("did you mean `flights`?"), "{said}");
    // The place is shown where the error says one.
    let said = work.run(&["sql", "SELECT *\nFORM flights"]).failed(1);
    assert!(said.ends_with(" at line 2, column 1\n  FORM flights\n  ^\n"), "{said}");
    let said = work.run(&["-c", "SELECT 1; SELECT 'é', a b c FROM flights"]).failed(1);
    let shown = format!("\n  SELECT 'é', a b c FROM flights\n{}^\n", " ".repeat(18));
    assert!(said.starts_with("error [sql_parse_error]") && said.ends_with(&shown), "{said}");
    let said = work.run(&["kql", "flights | wher carrier == 'UA'"]).failed(1);
    assert!(said.ends_with("  flights | wher carrier == 'UA'\n            ^^^^\ndid you mean `where`?\n"), "{said}");
    // The folder is closed properly after an error.
    work.run(&["sql", "SELECT * FROM flights"]).succeeded();
}

#[test]
fn imports_are_all_or_nothing_and_say_what_to_do_with_what_is_there() {
    let work = WorkFolder::new();
    let said = work.run(&["import", "bad.csv"]).failed(1);
    assert!(said.contains("[bad_data]") && said.contains("bad.csv"), "{said}");
    work.run(&["sql", "SELECT * FROM bad"]).failed(1);

    work.run(&["import", "flights.csv"]).succeeded();
    let said = work.run(&["import", "flights.csv"]).failed(1);
    assert!(said.contains("[already_exists]") && said.contains("--replace") && said.contains("--append"), "{said}");
    let said = work.run(&["import", "Air Lines.csv", "air_lines.csv"]).failed(2);
    assert!(said.contains("would both be table air_lines"), "{said}");
    assert!(work.run(&["import", "-"]).failed(2).contains("standard input"));
    work.run(&["import", "--append", "flights.csv"]).succeeded();
    assert_eq!(work.run(&["sql", "--json", "SELECT count(*) AS n FROM flights"]).succeeded(), "{\"n\":6}\n");
    work.run(&["import", "--replace", "flights.csv"]).succeeded();
    assert_eq!(work.run(&["sql", "--json", "SELECT count(*) AS n FROM flights"]).succeeded(), "{\"n\":3}\n");
    assert!(work.run(&["import", "nothing-*.csv", "--table", "t"]).failed(1).contains("[no_files]"));
    let said = work.run(&["import", "--database", "sales", "flights.csv"]).failed(1);
    assert!(said.contains("[database_not_found]") && said.contains("CREATE DATABASE"), "{said}");
    assert!(work.run(&["query.sql"]).failed(2).contains("`querent < query.sql`"));
    assert!(work.run(&["SELECT 1"]).failed(2).contains("`querent -c"));
    #[cfg(target_os = "linux")]
    {
        let mut piped = work.querent(&["-c", "FROM read_csv('/dev/stdin')"]);
        let child = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Done::of(child.wait_with_output().unwrap()).failed(1);
        assert!(said.contains("[bad_data]") && said.contains("write it to a file first"), "{said}");
    }
    assert!(work.run(&["import", "nothing.csv"]).failed(1).contains("nothing.csv, which is not there"));
    // What is quick has no lines of progress.
    let done = work.run(&["import", "--table", "again", "flights.csv"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
}

/// People work in a folder beside their data.
#[test]
fn files_above_the_working_folder_are_found() {
    let work = WorkFolder::new();
    std::fs::create_dir_all(work.path("notes/today")).unwrap();
    let below = |arguments: &[&str]| {
        let mut command = work.querent(arguments);
        Done::of(command.current_dir(work.path("notes/today")).output().unwrap())
    };
    let counted = "{\"n\":3}\n";
    let sql = "SELECT count(*) AS n FROM flights";
    assert_eq!(below(&["../../flights.csv", "--json", "-c", sql]).succeeded(), counted);
    below(&["import", "../../flights.csv", "../../Air Lines.csv"]).succeeded();
    assert_eq!(below(&["sql", "--json", sql]).succeeded(), counted);
    below(&["import", "--table", "globbed", "../../fl*.csv"]).succeeded();
    let read = "SELECT count(*) AS n FROM '../../flights.csv'";
    assert_eq!(below(&["sql", "--json", read]).succeeded(), counted);
    below(&["sql", "COPY flights TO '../copied.csv'"]).succeeded();
    assert!(std::fs::read_to_string(work.path("notes/copied.csv")).unwrap().starts_with("carrier,delay\n"));
    let said = below(&["import", "../nothing/../flights.csv"]).failed(1);
    assert!(said.contains("[location_not_allowed]") && said.contains("nothing"), "{said}");
    // The data folder's own files stay closed.
    let own = "SELECT * FROM '../today/querent-data/catalog.sqlite'";
    assert!(below(&["sql", own]).failed(1).contains("[location_not_allowed]"));
}

#[test]
fn external_tables_refer_to_their_files() {
    let work = WorkFolder::new();
    let said = work.run(&["import", "--external", "--table", "trips", "flights.csv"]).succeeded();
    assert!(said.starts_with("default.trips: refers to"), "{said}");
    std::fs::write(work.path("flights.csv"), "carrier,delay\nB6,1\n").unwrap();
    assert_eq!(work.run(&["sql", "--json", "SELECT carrier FROM trips"]).succeeded(), "{\"carrier\":\"B6\"}\n");
}

#[test]
fn a_folder_and_a_glob_are_one_table_each() {
    let work = WorkFolder::new();
    std::fs::create_dir(work.path("logs")).unwrap();
    for day in 1..=3 {
        std::fs::write(work.path(&format!("logs/2024-0{day}.ndjson")), format!("{{\"day\": {day}}}\n")).unwrap();
    }
    assert!(work.run(&["import", "logs"]).succeeded().contains("default.logs: 3 rows"));
    assert!(work.run(&["import", "--table", "globbed", "logs/2024-0[12].ndjson"]).succeeded().contains("2 rows"));
}

#[test]
fn a_server_process_is_ready_serves_and_stops() {
    let server = ServerProcess::start(&[("QUERENT_AUTH_TOKENS", "w:write,r:read")]);
    let work = WorkFolder::new();
    let on_server = |arguments: &[&str], token: &str| {
        let mut all = vec![arguments[0], "--server", &server.url, "--token", token];
        all.extend(&arguments[1..]);
        work.run(&all)
    };
    let said = on_server(&["import", "flights.csv"], "w").succeeded();
    assert!(said.starts_with("default.flights: 3 rows from 1 file\n  csv: header in line 1; "), "{said}");
    assert_eq!(on_server(&["sql", "--json", "SELECT count(*) AS n FROM flights"], "r").succeeded(), "{\"n\":3}\n");
    assert!(on_server(&["sql", "SELECT * FROM flights"], "r").succeeded().ends_with("(3 rows)\n"));
    assert_eq!(json_lines(&on_server(&["search", "--json", "flights"], "r").succeeded())[0]["table"], "flights");

    assert!(on_server(&["sql", "DROP TABLE flights"], "r").failed(1).contains("[not_allowed]"));
    assert!(on_server(&["import", "--replace", "flights.csv"], "r").failed(1).contains("[forbidden]"));
    let refused = on_server(&["sql", "SELECT 1"], "wrong").failed(1);
    assert!(refused.contains("[unauthenticated]") && refused.contains("--token or QUERENT_TOKEN"), "{refused}");
    assert!(on_server(&["sql", "SELECT * FROM flight"], "r").failed(1).contains("[table_not_found]"));
    let said = on_server(&["import", "bad.csv"], "w").failed(1);
    assert!(said.contains("[bad_data]") && said.contains("bad.csv, line 4"), "{said}");
    // The files of a source are one import: nothing stays of the first where the second cannot be read.
    std::fs::create_dir_all(work.path("days/day=2")).unwrap();
    std::fs::write(work.path("days/1.csv"), "a,b\n1,2\n").unwrap();
    std::fs::write(work.path("days/2.csv"), "a,b\n1,2\n3,4,5\n").unwrap();
    let said = on_server(&["import", "days"], "w").failed(1);
    assert!(said.contains("2.csv, line 3") && !said.contains("spool"), "{said}");
    assert!(on_server(&["sql", "SELECT * FROM days"], "r").failed(1).contains("[table_not_found]"));
    let said = on_server(&["import", "--ignore-errors", "--types", "a=VARCHAR", "days"], "w").succeeded();
    assert!(
        said.contains("2 rows from 2 files") && said.contains("1 line was set aside in default.days_rejects"),
        "{said}"
    );
    assert!(on_server(&["import", "--delimter", ";", "days"], "w").failed(2).contains("--delimiter"));

    // The folder is the server's while it runs, and free when it has stopped.
    let data = server.data.path().to_str().unwrap();
    // A command on it finds the server, whose tokens count.
    assert!(work.run(&["sql", "--data", data, "SELECT 1"]).failed(1).contains("[unauthenticated]"));
    let counted = work.run(&["sql", "--data", data, "--token", "r", "--json", "SELECT count(*) AS n FROM flights"]);
    assert_eq!(counted.succeeded(), "{\"n\":3}\n");
    server.signal("TERM");
    let mut server = server;
    assert!(server.child.wait().unwrap().success(), "a stop that was asked for is a success");
    assert_eq!(
        work.run(&[
            "sql",
            "--data",
            server.data.path().to_str().unwrap(),
            "--json",
            "SELECT count(*) AS n FROM flights"
        ])
        .succeeded(),
        "{\"n\":3}\n"
    );
}

/// Returns the script of a model that runs one query and answers.
fn script(sql: &str, answer: &str) -> Value {
    json!({ "runs": [{ "turns": [
        { "events": [{ "tool_call": { "name": "run_sql", "arguments": { "database": "default", "sql": sql } } }] },
        { "events": [{ "text": answer }] },
    ] }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_shows_each_step() {
    let sql = "SELECT service_name, count(*) AS errors FROM otel_logs GROUP BY service_name ORDER BY errors DESC";
    for (flags, shown) in [
        (&[][..], &["run_sql", "SELECT service_name", "payments", "answer: payments it is", "1 tool call"][..]),
        (&["--quiet"], &["payments it is"]),
        (&["--json"], &["\"event\":\"run_started\"", "\"event\":\"tool_result\"", "\"event\":\"run_finished\""]),
    ] {
        let server = TestServer::start(TestSettings::default().script(script(sql, "payments it is"))).await;
        server.seed_otel_logs().await;
        let url = server.url("");
        let (flags, work) = (flags.to_vec(), WorkFolder::new());
        let done = tokio::task::spawn_blocking(move || {
            let arguments = [&["ask", "--server", &url][..], &flags, &["which service", "errs most?"]].concat();
            work.run(&arguments)
        });
        let said = done.await.unwrap().succeeded();
        for part in shown {
            assert!(said.contains(part), "{flags:?}: {said}", flags = shown);
        }
    }
}

#[test]
fn ask_works_on_a_data_folder_without_a_server() {
    let work = WorkFolder::new();
    work.run(&["import", "flights.csv"]).succeeded();
    let script = script("SELECT count(*) AS n FROM flights", "that many");
    std::fs::write(work.path("script.json"), script.to_string()).unwrap();
    let ask = |flags: &[&str]| {
        let mut command = work.querent(&[&["ask"][..], flags, &["how many", "flights?"]].concat());
        Done::of(command.env("QUERENT_AGENT_SCRIPT", work.path("script.json")).output().unwrap())
    };
    let said = ask(&[]).succeeded();
    for part in ["run_sql", "SELECT count(*)", "answer: that many", "1 tool call"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(ask(&["--quiet"]).succeeded(), "that many\n");
    let events = json_lines(&ask(&["--json", "--database", "default"]).succeeded());
    assert_eq!(events.first().unwrap()["event"], "run_started");
    assert_eq!(events.last().unwrap()["event"], "run_finished");
    assert!(ask(&["--database", "nowhere"]).failed(1).starts_with("error [database_not_found]"));
    // The runs are stored like a server's.
    let runs = work.run(&["sql", "--json", "SELECT status, count(*) AS n FROM agent_runs GROUP BY status"]).succeeded();
    assert_eq!(json_lines(&runs), [json!({ "status": "success", "n": 3 })]);
    std::fs::write(work.path("script.json"), r#"{"runs":[{"turns":[{"events":[{"error":"out of order"}]}]}]}"#)
        .unwrap();
    assert!(ask(&[]).failed(1).starts_with("error ["));
}

#[test]
fn import_recursive_reports_each_folder() {
    let work = WorkFolder::new();
    for (file, text) in [("lake/a/x.csv", "id\n1\n"), ("lake/s/b/y.csv", "id\n2\n"), ("lake/c/z.txt", "?")] {
        std::fs::create_dir_all(work.path(file).parent().unwrap()).unwrap();
        std::fs::write(work.path(file), text).unwrap();
    }
    let dry = work.run(&["import", "--recursive", "--dry-run", "lake"]).succeeded();
    assert!(dry.contains("default.a: would be registered") && dry.contains("nothing was changed"), "{dry}");
    let said = work.run(&["import", "--recursive", "lake"]).succeeded();
    assert!(said.contains("s.b: registered") && said.contains("z.txt"), "{said}");
    assert!(said.ends_with("2 registered, 0 refreshed, 0 unchanged, 0 dropped, 1 skipped\n"), "{said}");
    let events = json_lines(&work.run(&["import", "--recursive", "--json", "lake"]).succeeded());
    assert_eq!(events.last().unwrap()["unchanged"], 2, "{events:?}");
    assert!(events.iter().any(|event| event["step"] == "skipped" && event["reason"].is_string()), "{events:?}");
    let read = work.run(&["sql", "--json", "SELECT id FROM s.b"]).succeeded();
    assert_eq!(json_lines(&read), [json!({ "id": 2 })]);
    work.run(&["import", "--recursive", "--replace", "lake"]).failed(2);
    work.run(&["import", "--recursive", "--server", "http://127.0.0.1:9", "lake"]).failed(3);
    work.run(&["import", "--recursive", "nowhere"]).failed(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_exits_with_one() {
    let script = json!({ "runs": [{ "turns": [{ "events": [{ "error": "out of order" }] }] }] });
    let server = TestServer::start(TestSettings::default().script(script)).await;
    let url = server.url("");
    let done = tokio::task::spawn_blocking(move || WorkFolder::new().run(&["ask", "--server", &url, "anything?"]));
    assert!(done.await.unwrap().failed(1).starts_with("error ["));
}

/// The five tables, cut down; the real ones take longer to import than this test should.
fn small_flights(folder: &Path) {
    let tables = [
        ("airlines", "carrier,name\nUA,United Air Lines Inc.\nB6,JetBlue Airways\n"),
        ("airports", "faa,name\nEWR,Newark\n"),
        ("planes", "tailnum,year\nN1,1999\nN2,NA\n"),
        ("weather", "origin,temp\nEWR,39.02\n"),
        ("flights", "carrier,dep_delay\nUA,2\nUA,NA\nB6,5\n"),
    ];
    for (table, text) in tables {
        std::fs::write(folder.join(format!("{table}.csv")), text).unwrap();
    }
}

#[test]
fn the_demo_says_match_or_wrong() {
    let work = WorkFolder::new();
    small_flights(work.folder.path());
    let sql = "SELECT carrier, count(*) FROM flights GROUP BY carrier ORDER BY 2 DESC LIMIT 1";
    for (answer, code, verdict) in [
        ("United Air Lines Inc. (UA) operated the most: 2 flights.", 0, "==> MATCH"),
        ("JetBlue, with 3 flights.", 1, "==> WRONG"),
    ] {
        std::fs::write(work.path("script.json"), script(sql, answer).to_string()).unwrap();
        let mut demo = work.querent(&["demo", "--csv-dir", "."]);
        demo.env("QUERENT_AGENT_SCRIPT", work.path("script.json"));
        let done = Done::of(demo.output().unwrap());
        assert_eq!(done.code, code, "{}\n{}", done.stdout, done.stderr);
        for part in ["flights: 3 rows", "→ run_sql", "United Air Lines Inc.", verdict] {
            assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
        }
        if code == 0 {
            let (_, next) = done.stdout.split_once("==> the tables are yours now").expect(&done.stdout);
            let data = work.path("querent-demo").canonicalize().unwrap();
            assert!(next.contains(data.to_str().unwrap()) && next.contains("http://127.0.0.1:8080"), "{next}");
            assert!(done.stdout.lines().count() < 60, "{}", done.stdout);
            // What it says to type works.
            let shell = next.lines().find(|line| line.ends_with("# one statement")).unwrap();
            let mut bash = Command::new("bash");
            let ran = bash.args(["-c", shell]).env("QUERENT_EMBED_PROVIDER", "none").output().unwrap();
            assert!(Done::of(ran).succeeded().contains("UA"), "{shell}");
        }
    }
}

#[test]
fn the_demo_without_a_model_says_how_to_get_one() {
    let work = WorkFolder::new();
    let mut demo = work.querent(&["demo", "--csv-dir", "."]);
    let done = Done::of(demo.env("QUERENT_AGENT_OLLAMA_HOST", "http://127.0.0.1:9").output().unwrap());
    let said = done.failed(3);
    assert!(said.contains("ollama pull gemma4:latest") && said.contains("http://127.0.0.1:9"), "{said}");
}

#[test]
fn the_demo_starts_and_stops_a_local_model() {
    let work = WorkFolder::new();
    small_flights(work.folder.path());
    let model = "echo $$ > pid\necho loading\necho ready http://127.0.0.1:9 tiny\nexec sleep 600\n";
    std::fs::write(work.path("model.sh"), model).unwrap();
    let mut demo = work.querent(&["demo", "--csv-dir", ".", "--local-model-cmd", "sh model.sh"]);
    let done = Done::of(demo.env("QUERENT_AGENT_OLLAMA_HOST", "http://127.0.0.1:9").output().unwrap());
    assert_eq!(done.code, 1, "{}\n{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("model: tiny, local"), "{}", done.stdout);
    assert!(done.stdout.contains("==> WRONG: the model gave no answer"), "{}", done.stdout);
    let pid = std::fs::read_to_string(work.path("pid")).unwrap();
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "the local model's process is gone");
}

#[test]
fn a_rebuilt_index_finds_by_meaning() {
    let work = WorkFolder::new();
    let with_model = |arguments: &[&str]| {
        let mut command = work.querent(arguments);
        command.env("QUERENT_EMBED_PROVIDER", "fastembed");
        command.env("QUERENT_EMBED_MODEL_PATH", models_dir().join("all-minilm-l6-v2"));
        command.env("ORT_DYLIB_PATH", models_dir().join("ort/libonnxruntime.so"));
        Done::of(command.output().unwrap())
    };
    with_model(&["import", "flights.csv"]).succeeded();
    std::fs::remove_dir_all(work.path("querent-data/index")).unwrap();
    let found = with_model(&["search", "--json", "late aeroplanes"]).succeeded();
    assert_eq!(json_lines(&found)[0]["table"], "flights", "{found}");
}

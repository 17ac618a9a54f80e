//! The commands of README and of the pages for beginners, in the order in which they stand, on a machine that has nothing
//! of ours: an empty home, no settings, no ONNX Runtime, no network and no model.
//!
//! A block of `sh` runs as one script, one of `python` or `ts` as a program; one that only starts a server runs beside
//! the others, on a free port. A block of `text` after it is what it prints. Only `make` and what loads packages are
//! left out, and the language model is a script.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use querent_tests::script::{run_sql, tool_call};
use querent_tests::{NodeJs, PostgresProcess, Python, nycflights_dir, package_folder, python_package, querent_binary};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A place that answers nobody.
const NOWHERE: &str = "http://127.0.0.1:9";

struct CleanMachine {
    folder: TempDir,
    /// The server of the page, and the address at which the page reaches it.
    server: Option<(Child, String)>,
    /// The Python package, once a page has a program in Python.
    package: Option<TempDir>,
    /// What scripts find in their environment beside what every machine has.
    environment: Vec<(&'static str, String)>,
}

impl CleanMachine {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["home", "bin", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        symlink(querent_binary(), folder.path().join("bin/querent")).unwrap();
        let machine = Self { folder, server: None, package: None, environment: Vec::new() };
        let run = json!({ "turns": [{ "events": [{ "text": "**United Air Lines**, with 3." }] }] });
        machine.model(&json!({ "runs": vec![run; 10] }));
        machine
    }

    /// Lets the language model follow another script.
    fn model(&self, script: &Value) {
        std::fs::write(self.folder.path().join("script.json"), script.to_string()).unwrap();
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.folder.path().join("bin").display());
        command.env_clear().env("PATH", path).env("HOME", self.folder.path().join("home")).env("LANG", "C.UTF-8");
        command.env("HF_ENDPOINT", NOWHERE).current_dir(self.work()).stdin(Stdio::null());
        command
    }

    fn run(&self, script: &str) -> Output {
        let script = match &self.server {
            Some((_, address)) => script.replace("localhost:8080", address).replace("127.0.0.1:8080", address),
            None => script.to_owned(),
        };
        let mut bash = self.command("timeout");
        bash.args(["120", "bash", "-e", "-o", "pipefail", "-c", &script]);
        bash.envs(self.environment.iter().map(|(name, value)| (*name, value.as_str())));
        // The only setting: there is no model on this machine.
        if script.contains("querent ask") {
            bash.env("QUERENT_AGENT_SCRIPT", self.folder.path().join("script.json"));
        }
        bash.output().expect("bash starts")
    }

    fn run_python(&mut self, program: &str) -> Output {
        let program = match &self.server {
            Some((_, address)) => program.replace("127.0.0.1:8080", address),
            None => program.to_owned(),
        };
        let package = self.package.get_or_insert_with(python_package);
        // A warning is an error: nobody's first program should warn.
        let mut python = Python::command(["-W", "error", "-c", &program]);
        python.env("PYTHONPATH", package.path()).env("HOME", self.folder.path().join("home")).current_dir(self.work());
        python.env("HF_ENDPOINT", NOWHERE).env("QUERENT_AGENT_SCRIPT", self.folder.path().join("script.json"));
        for variable in ["QUERENT_CACHE", "QUERENT_EMBED_MODEL_PATH", "ORT_DYLIB_PATH"] {
            python.env_remove(variable);
        }
        python.output().expect("python starts")
    }

    fn run_typescript(&self, program: &str) -> Output {
        let program = match &self.server {
            Some((_, address)) => program.replace("127.0.0.1:8080", address),
            None => program.to_owned(),
        };
        NodeJs::typescript(self.folder.path(), &program).current_dir(self.work()).output().expect("node starts")
    }

    fn serve(&mut self) {
        let mut serve = self.command("querent");
        serve
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("QUERENT_AGENT_SCRIPT", self.folder.path().join("script.json"));
        let program = self.folder.path().join("bin/querent");
        let mut child = Command::new(program);
        child.args(serve.get_args()).env_clear().current_dir(self.work()).stdin(Stdio::null());
        child.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = child.stdout(Stdio::piped()).spawn().expect("querent starts");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.filter_map(|line| line.split_once("http://").map(|(_, rest)| rest.to_owned())).next();
        let address = address.expect("the server is ready").split_whitespace().next().unwrap().to_owned();
        self.server = Some((child, address));
    }
}

impl Drop for CleanMachine {
    fn drop(&mut self) {
        if let Some((server, _)) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// The code blocks of a page: language and text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push((language.to_owned(), text.join("\n")));
    }
    blocks
}

fn check(page: &str, least_scripts: usize) {
    check_on(CleanMachine::new(), page, least_scripts);
}

/// Whether a block only brings what this machine has already, or what no test makes.
fn is_set_up(block: &str) -> bool {
    block.lines().all(|line| line.starts_with("make ")) || block.starts_with("python3 -m pip download ")
}

fn check_on(mut machine: CleanMachine, page: &str, least_scripts: usize) {
    let text = std::fs::read_to_string(package_folder().join("..").join(page)).unwrap();
    let (mut printed, mut scripts) = (String::new(), 0);
    for (language, block) in blocks(&text) {
        let output = match language.as_str() {
            "sh" if is_set_up(&block) => continue,
            "sh" if block.starts_with("querent serve") => {
                machine.serve();
                continue;
            }
            "sh" => {
                scripts += 1;
                machine.run(&block)
            }
            "python" => machine.run_python(&block),
            "ts" => machine.run_typescript(&block),
            "text" => {
                assert!(printed.contains(&block), "{page}: not printed:\n{block}\n--\n{printed}");
                continue;
            }
            language => panic!("{page}: no test takes blocks of {language}"),
        };
        printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{page}: {}\n{block}\n--\n{printed}\n{said}", output.status);
    }
    assert!(scripts >= least_scripts, "{page}: {scripts} scripts ran");
}

/// What a block names that is not on this machine.
const ELSEWHERE: [&str; 7] =
    ["example.org", "report.xlsx", "RUN_ID", "/backups", "querent serve", "carriers.svg", "answers.ndjson"];

/// Runs the commands of a page that takes files and, where `serves`, a server to be there: those blocks of `sh` that
/// are of `querent` and `curl` alone and name nothing of elsewhere.
fn check_with(page: &str, prelude: &str, serves: bool, expected_scripts: usize) {
    let text = std::fs::read_to_string(package_folder().join("..").join(page)).unwrap();
    let mut machine = CleanMachine::new();
    let made = machine.run(prelude);
    assert!(made.status.success(), "{page}: {prelude}\n{}", String::from_utf8_lossy(&made.stderr));
    if serves {
        machine.serve();
    }
    let is_ours = |line: &str| ["querent ", "curl ", "  ", "#"].iter().any(|start| line.starts_with(start));
    let mut scripts = 0;
    for (language, block) in blocks(&text) {
        let runs = language == "sh" && block.lines().all(is_ours) && !ELSEWHERE.iter().any(|word| block.contains(word));
        if !runs {
            continue;
        }
        let output = machine.run(&block);
        let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{page}: {}\n{block}\n--\n{printed}\n{said}", output.status);
        assert!(!printed.contains("\"error\":{"), "{page}:\n{block}\n--\n{printed}");
        scripts += 1;
    }
    assert_eq!(scripts, expected_scripts, "{page}");
}

#[test]
fn commands_of_pages_for_reference() {
    let people = "printf 'zip;born;height\\n00501;10.12.1815;NA\\n06090;09.12.1906;1.68\\n' > people.csv
        mkdir orders; printf 'id,total\\n1,2\\n' > orders/one.csv; printf 'id,total\\n2,3\\n' > orders/two.csv";
    check_with("docs/import.md", people, true, 1);
    check_with("docs/kql.md", "true", true, 1);
    check_with("docs/mcp.md", "true", true, 2);
    check_with("docs/http.md", "true", true, 1);
    let sales = r#"querent -c "CREATE SCHEMA sales; CREATE TABLE sales.orders AS SELECT 1 AS id"
        echo 'GRANT SELECT ON sales.orders TO ROLE analyst;' > policy.sql
        case='{"as": {"subject": "anna", "roles": ["analyst"]}, "sql": "SELECT * FROM sales.orders", "row_count": 1}'
        echo "[$case]" > cases.json"#;
    check_with("docs/security.md", sales, false, 3);
}

#[test]
fn readme() {
    check("README.md", 3);
}

#[test]
fn command_line() {
    check("docs/command-line.md", 3);
}

#[test]
fn tour() {
    let machine = CleanMachine::new();
    for table in ["airlines", "airports", "flights", "planes", "weather"] {
        let file = format!("{table}.csv");
        symlink(nycflights_dir().join(&file), machine.work().join(&file)).unwrap();
    }
    check_on(machine, "docs/tour.md", 6);
}

#[test]
fn tutorial() {
    check("docs/tutorial.md", 6);
}

#[test]
fn tutorial_of_logs() {
    check("docs/tutorial-logs.md", 5);
}

#[test]
fn tutorials_of_responses() {
    for page in ["docs/tutorial-responses.md", "docs/tutorial-responses-typescript.md"] {
        let machine = CleanMachine::new();
        machine.model(&model_of_responses());
        check_on(machine, page, 1);
    }
}

/// The model of the tutorials of an application: it queries, follows up, calls a tool of the application, and fails.
fn model_of_responses() -> Value {
    let says = |text: &str| json!({ "events": [{ "text": text }] });
    let queries = |sql: &str| json!({ "events": [run_sql(sql)] });
    let message = json!({ "airport": "JFK", "message": "N804JB is 75 minutes late" });
    json!({ "runs": [
        { "when": "most flights", "turns": [
            queries("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC"),
            { "events": [{ "text": "**UA** had the most " }, { "text": "flights: 3." }] },
        ] },
        { "when": "from Newark", "turns": [
            queries("SELECT count(*) AS n FROM flights WHERE carrier = 'UA' AND origin = 'EWR'"),
            says("2 of them."),
        ] },
        { "when": "how many passengers", "turns": [
            queries("SELECT count(*) AS n FROM flights"),
            says("There were 5 passengers."),
        ] },
        { "when": "tell the gate", "turns": [
            queries("SELECT tailnum, origin, dep_delay FROM flights WHERE dep_delay > 60"),
            { "events": [tool_call("tell_gate", message)] },
            says("The gate at JFK knows that N804JB is 75 minutes late."),
        ] },
        { "when": "does the model fail", "turns": [{ "events": [{ "error": "out of memory" }] }] },
    ] })
}

#[test]
fn tutorial_of_superset() {
    check("docs/tutorial-superset.md", 2);
    check("docs/client-superset.md", 1);
}

#[test]
fn page_of_metabase() {
    let postgres = PostgresProcess::start();
    let mut machine = CleanMachine::new();
    let socket = postgres.socket().display().to_string();
    machine.environment = vec![("PGHOST", socket), ("PGUSER", "postgres".to_owned())];
    check_on(machine, "docs/client-metabase.md", 3);
}

#[test]
fn python() {
    check("docs/python.md", 1);
}

#[test]
fn installing() {
    check("docs/install.md", 1);
}

/// The chart of an answer, as a file.
#[test]
fn page_of_charts() {
    let machine = CleanMachine::new();
    let made = machine.run("printf 'carrier,delay\\nUA,1\\nUA,2\\nAA,3\\n' > flights.csv; querent import flights.csv");
    assert!(made.status.success(), "{made:?}");
    machine.model(&json!({ "runs": [{ "turns": [
        { "events": [run_sql("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC")] },
        { "events": [{ "text": "**UA** operated the most." }] },
    ] }] }));
    let text = std::fs::read_to_string(package_folder().join("../docs/charts.md")).unwrap();
    let scripts: Vec<(String, String)> = blocks(&text).into_iter().filter(|(language, _)| language == "sh").collect();
    assert_eq!(scripts.len(), 1);
    let asked = machine.run(&scripts[0].1);
    assert!(asked.status.success(), "{asked:?}");
    let chart = std::fs::read_to_string(machine.work().join("carriers.svg")).unwrap();
    assert!(chart.starts_with("<svg") && chart.contains(">UA<"), "{chart}");
}

/// The programs in Python of the pages of protocols, those of a page as one, beside a server.
#[test]
fn programs_of_protocols() {
    for (page, expected_programs) in [("docs/openai.md", 3), ("docs/messages.md", 1)] {
        let mut machine = CleanMachine::new();
        machine.serve();
        let text = std::fs::read_to_string(package_folder().join("..").join(page)).unwrap();
        let programs = blocks(&text).into_iter().filter(|(language, _)| language == "python");
        let programs: Vec<String> = programs.map(|(_, program)| program).collect();
        assert_eq!(programs.len(), expected_programs, "{page}");
        let output = machine.run_python(&programs.join("\n"));
        let [printed, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success() && printed.contains("United Air Lines"), "{page}:\n{printed}\n{said}");
    }
}

#[test]
fn pages_of_clients() {
    check("docs/client-claude.md", 4);
    check("docs/client-cursor.md", 4);
    check("docs/client-dbeaver.md", 2);
    check("docs/client-grafana.md", 2);
    check("docs/client-pandas.md", 1);
    check("docs/client-langchain.md", 1);
}

#[test]
fn architecture() {
    check("docs/architecture.md", 3);
}

#[test]
fn troubleshooting() {
    check("docs/troubleshooting.md", 3);
}

/// Runs a search on a machine without a model, and returns what it printed and said.
fn search(machine: &CleanMachine, prefix: &str) -> (String, String) {
    let began = std::time::Instant::now();
    let output = machine.run(&format!("{prefix} querent search --json delayed carriers"));
    assert!(output.status.success(), "{output:?}");
    assert!(began.elapsed().as_secs() < 60, "it answers at once");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn a_search_answers_without_a_model() {
    let machine = CleanMachine::new();
    let imported = machine.run("printf 'carrier,delay\\nUA,1\\n' > flights.csv; querent import flights.csv");
    assert!(imported.status.success(), "{imported:?}");
    // Again and again: what an earlier process could not embed is embedded by none.
    for _ in 0..2 {
        let (found, said) = search(&machine, "");
        assert!(found.contains("\"table\":\"flights\""), "{found}");
        assert!(said.contains("found by name and by text only") && said.contains("downloaded"), "{said}");
    }
    let (found, said) = search(&machine, "QUERENT_EMBED_PROVIDER=none");
    assert!(found.contains("\"table\":\"flights\"") && said.is_empty(), "{found}\n{said}");
    let (found, said) = search(&machine, "ORT_DYLIB_PATH=/nowhere/libonnxruntime.so");
    assert!(found.contains("\"table\":\"flights\"") && said.contains("unset it"), "{found}\n{said}");
    // A server says the same, and does not wait either.
    let mut machine = machine;
    machine.serve();
    let output = machine.run("curl -sf 'localhost:8080/v1/catalog/search?q=delayed%20carriers'");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["hits"][0]["table"], "flights", "{found}");
    assert!(found["missing_meaning"]["reason"].as_str().unwrap().contains("all-MiniLM-L6-v2"), "{found}");
    assert!(found["missing_meaning"]["hint"].as_str().unwrap().contains("network"), "{found}");
}

//! Statements that are made to take the server down, by a token that may only read. The process goes on, its memory stays
//! within the limit that it was given and falls back, and another caller is answered meanwhile.

mod statements;
mod uploads;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use querent_catalog::{Principal, Role};
use querent_engine::Limits;
use querent_tests::{ServerProcess, wait_for};

use statements::{Attack, attacks};
use uploads::{Upload, uploads};

/// The limit that the process is given.
const LIMIT_BYTES: u64 = 1 << 30;
/// How long a statement may run.
const TIMEOUT: &str = "2s";
/// The longest that another caller waits: the machine of the tests may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(3);

/// Attacks of every run of the tests.
const ALWAYS_TRIED: [&str; 32] = [
    "a long pattern",
    "centroids",
    "a long unknown function",
    "KQL doubling views",
    "three nested unnests",
    "text to decimal",
    "a number of many digits",
    "nested types",
    "lists of a lambda",
    "a join that reads a side again",
    "large texts in an aggregate",
    "nested concat",
    "regexp_replace",
    "concat_ws",
    "doubling array_concat",
    "array_distinct",
    "split_part",
    "array_to_string",
    "endless recursion",
    "to_char",
    "a cube of 15",
    "comparing lists",
    "a long chain over a query",
    "JSON of many values",
    "rows of JSON below a long key",
    "doubling WITH by joins",
    "doubling scalar subqueries",
    "nested dayname",
    "a long IN list",
    "growing texts as a window",
    "KQL many ors",
    "KQL gunzip",
];

fn server() -> ServerProcess {
    ServerProcess::start(&[
        ("QUERENT_AUTH_TOKENS", "eve:read:eve,ann:read:ann,wes:write:wes"),
        ("QUERENT_QUERY_PROCESS_MEMORY", "1GiB"),
        ("QUERENT_QUERY_POOL_MEMORY", "512MiB"),
        ("QUERENT_QUERY_MEMORY", "384MiB"),
        ("QUERENT_QUERY_TIMEOUT", TIMEOUT),
        ("QUERENT_QUERY_SPILL", "2GiB"),
        // The allocator of debug builds keeps what was freed, unless large pieces are the system's; that of released ones
        // gives it back.
        ("MALLOC_MMAP_THRESHOLD_", "65536"),
        ("MALLOC_ARENA_MAX", "2"),
    ])
}

/// What was seen while a statement ran.
struct Observed {
    outcome: String,
    took: Duration,
    most_bytes: u64,
    slowest: Duration,
}

/// What one attack showed, judged.
struct Verdicts {
    server: ServerProcess,
    failures: Vec<String>,
}

impl Verdicts {
    async fn judge(&mut self, name: &str, observed: Observed) {
        println!(
            "{name:<34} {:>6} ms, most {:>5} MiB, another caller {:>5} ms: {}",
            observed.took.as_millis(),
            observed.most_bytes >> 20,
            observed.slowest.as_millis(),
            observed.outcome
        );
        if let Some(status) = self.server.child.try_wait().unwrap() {
            self.failures.push(format!("{name} ended the process: {status}"));
            self.server = server();
            return;
        }
        if observed.most_bytes > LIMIT_BYTES / 100 * 110 {
            self.failures.push(format!("{name} took {} MiB", observed.most_bytes >> 20));
        }
        if observed.slowest > PATIENCE {
            self.failures.push(format!("{name} made another caller wait {:?}", observed.slowest));
        }
        if observed.outcome.starts_with("500") || observed.outcome.contains("panicked") {
            self.failures.push(format!("{name} is answered with {}", observed.outcome));
        }
        if !falls_back(&self.server).await {
            self.failures.push(format!("{name} keeps {} MiB", self.server.resident_bytes() >> 20));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_files_that_are_large_inside_do_not_take_the_server_down() {
    let mut verdicts = Verdicts { server: server(), failures: Vec::new() };
    let only = std::env::var("QUERENT_ATTACK").ok();
    let is_wanted = |upload: &Upload| only.as_deref().is_none_or(|only| upload.name.contains(only));
    for upload in uploads().into_iter().filter(is_wanted) {
        let name = upload.name;
        let url = format!("{}/v1/import?table=t&if_exists=replace&format={}", verdicts.server.url, upload.format);
        let sent = reqwest::Client::new().post(url).bearer_auth("wes").header("content-encoding", "gzip");
        let observed = observe(&verdicts.server, sent.body(upload.body)).await;
        verdicts.judge(name, observed).await;
    }
    assert!(verdicts.failures.is_empty(), "{:#?}", verdicts.failures);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_a_reader_do_not_take_the_server_down() {
    let mut verdicts = Verdicts { server: server(), failures: Vec::new() };
    let only = std::env::var("QUERENT_ATTACK").ok();
    // One of each kind; all of them take minutes.
    let is_wanted = |attack: &Attack| match only.as_deref() {
        Some(only) => attack.name.contains(only),
        None => ALWAYS_TRIED.contains(&attack.name),
    };
    for attack in attacks().into_iter().filter(is_wanted) {
        let sent = statement(&verdicts.server.url, "eve", &attack);
        let observed = observe(&verdicts.server, sent).await;
        verdicts.judge(attack.name, observed).await;
    }
    assert!(verdicts.failures.is_empty(), "{:#?}", verdicts.failures);
}

/// Returns whether memory falls below the limit by a half within half a minute.
async fn falls_back(server: &ServerProcess) -> bool {
    for _ in 0..300 {
        if server.resident_bytes() < LIMIT_BYTES / 2 {
            return true;
        }
        // What is freed goes back to the machine after a while.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    false
}

async fn observe(server: &ServerProcess, attack: reqwest::RequestBuilder) -> Observed {
    let innocent = Attack { name: "innocent", text: "SELECT 1".into(), language: "application/sql" };
    let is_over = Arc::new(AtomicBool::new(false));
    let most = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let attacked = answer(attack);
    let watched = async {
        while !is_over.load(Ordering::Relaxed) {
            most.fetch_max(server.resident_bytes(), Ordering::Relaxed);
            // Memory is sampled.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let others = async {
        let mut slowest = Duration::ZERO;
        while !is_over.load(Ordering::Relaxed) {
            let asked = Instant::now();
            answer(statement(&server.url, "ann", &innocent)).await;
            slowest = slowest.max(asked.elapsed());
            // The other caller asks now and then.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        slowest
    };
    let attacked = async {
        let outcome = attacked.await;
        is_over.store(true, Ordering::Relaxed);
        (outcome, started.elapsed())
    };
    let ((outcome, took), (), slowest) = tokio::join!(attacked, watched, others);
    Observed { outcome, took, most_bytes: most.load(Ordering::Relaxed), slowest }
}

fn statement(url: &str, token: &str, attack: &Attack) -> reqwest::RequestBuilder {
    let sent = reqwest::Client::new().post(format!("{url}/v1/query")).bearer_auth(token);
    sent.header("content-type", attack.language).body(attack.text.clone())
}

/// Returns a short form of what the server answered.
async fn answer(request: reqwest::RequestBuilder) -> String {
    match request.timeout(Duration::from_secs(60)).send().await {
        Ok(reply) => {
            let status = reply.status().as_u16();
            let text = reply.text().await.unwrap_or_else(|error| error.to_string());
            let error = text.find("\"error\"").map_or("", |at| &text[at..]);
            let shown: String = if error.is_empty() { format!("{} bytes", text.len()) } else { error.to_owned() };
            format!("{status} {}", shown.chars().take(160).collect::<String>().replace('\n', " "))
        }
        Err(error) => format!("no answer: {error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_query_is_seen_and_killed_by_its_owner_and_administrators() {
    let (_folder, engine) = crate::sql::engine().await;
    let session = |subject: &str, role| engine.session(Principal::new(subject, role), Limits::default());
    let (owner, stranger, root) =
        (session("ann", Role::Read), session("bob", Role::Read), session("root", Role::Admin));
    for killer in [&owner, &root] {
        let sql = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b \
                   WHERE a.value + b.value < 0";
        let running = owner.clone();
        let query = tokio::spawn(async move { crate::sql::rows(&running, sql).await });
        let listed = "SELECT id FROM system.queries WHERE statement LIKE 'SELECT count(*) FROM generate%'";
        let id = wait_for("the query runs", async || {
            let found = crate::sql::rows(&root, listed).await.unwrap();
            found.first().map(|row| row[0].clone())
        })
        .await;
        assert!(crate::sql::rows(&stranger, listed).await.unwrap().is_empty(), "a stranger sees the query");
        let refused = crate::sql::rows(&stranger, &format!("KILL {id}")).await.unwrap_err();
        assert_eq!(refused.code(), "object_not_found");
        crate::sql::rows(killer, &format!("KILL QUERY {id}")).await.unwrap();
        assert_eq!(query.await.unwrap().unwrap_err().code(), "cancelled");
        wait_for("the query has gone", async || {
            crate::sql::rows(&root, listed).await.unwrap().is_empty().then_some(())
        })
        .await;
    }
    let read_only = root.read_only();
    assert_eq!(crate::sql::rows(&read_only, "KILL 1").await.unwrap_err().code(), "not_allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_of_a_batch_ends_with_its_query() {
    let (_folder, engine) = crate::sql::engine().await;
    let root = engine.session(Principal::new("root", Role::Admin), Limits::default());
    let hasty = Limits { wall_clock: Duration::from_millis(300), ..Limits::default() };
    // A batch of these takes minutes.
    let likeness = ["jaro_similarity", "jaro_winkler_similarity", "damerau_levenshtein"];
    for function in likeness {
        let long = format!(
            "SELECT max({function}(repeat('a', 9000) || value, repeat('b', 9000))) FROM generate_series(1, 4000)"
        );
        let error =
            crate::sql::rows(&engine.session(Principal::local_admin(), hasty.clone()), &long).await.unwrap_err();
        assert_eq!(error.code(), "wall_clock_exceeded", "{function}: {error}");
    }
    let listed = "SELECT id FROM system.queries WHERE statement LIKE 'SELECT max(%'";
    wait_for("the queries have gone", async || crate::sql::rows(&root, listed).await.unwrap().is_empty().then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_of_one_long_text_ends_with_its_query() {
    let (_folder, engine) = crate::sql::engine().await;
    let root = engine.session(Principal::new("root", Role::Admin), Limits::default());
    let limits = Limits { wall_clock: Duration::from_millis(300), ..Limits::default() };
    let hasty = engine.session(Principal::local_admin(), limits);
    // Each match is looked for up to the end of the text: all of them take hours.
    for statement in [
        "SELECT regexp_count(repeat('a', 300000), '.*x|a')",
        "SELECT regexp_instr(repeat('a', 300000), '.*x|a', 1, 299999)",
        "SELECT regexp_replace(repeat('a', 300000), '.*x|a', 'b', 'g')",
    ] {
        let error = crate::sql::rows(&hasty, statement).await.unwrap_err();
        assert_eq!(error.code(), "wall_clock_exceeded", "{statement}: {error}");
    }
    for asked in [
        "print replace_regex(text, '.*x|a', 'b')",
        "print extract_all('(.*x|a)', text)",
        "print countof(text, '.*x|a', 'regex')",
        "print indexof_regex(text, '.*x|a', 0, -1, 999999)",
        "print s = text | parse-kv s as (b: string) with (regex = '(.*x|a)()')",
        // So is each of what may overlap, and all of a list for each address.
        "print countof(text, strrep(strrep('a', 1000), 500))",
        "print indexof(text, strrep(strrep('a', 1000), 500), 0, -1, 400000)",
        "print has_any_ipv4(strrep(strrep('1.1.1.1 ', 1000), 100), repeat('2.2.2.2', 1000000))",
    ] {
        let query = format!("let text = strrep(strrep('a', 1000), 1000); {asked}");
        let error = match hasty.kql(&query).await {
            Ok(stream) => stream.collect().await.map(drop).unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.code(), "wall_clock_exceeded", "{asked}: {error}");
    }
    let listed = "SELECT id FROM system.queries WHERE statement LIKE 'SELECT regexp%' OR statement LIKE 'let text%'";
    wait_for("the queries have gone", async || crate::sql::rows(&root, listed).await.unwrap().is_empty().then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_that_are_bits_count_as_items() {
    let (_folder, engine) = crate::sql::engine().await;
    let reader = engine.session(Principal::new("ann", Role::Read), Limits::default());
    // Two and a half megabytes of bits are 20 million items: rows, numbers or texts of them are hundreds.
    let all = ["b"; 10].join(", ");
    let sql = format!("SELECT len(array_concat({all})) FROM (SELECT array_repeat(true, 2000000) AS b)");
    let error = crate::sql::rows(&reader, &sql).await.unwrap_err();
    assert_eq!(error.code(), "invalid_value", "{error}");
    let few = "SELECT list_sum(CAST([true, true, NULL] AS BIGINT[])), len(CAST([true] AS VARCHAR[]))";
    assert_eq!(crate::sql::rows(&reader, few).await.unwrap(), [["2", "1"]]);
    let wider = "SELECT list_sum(CAST(CAST([1, 2] AS INTEGER[]) AS DECIMAL(10, 2)[])), CAST([1, 20] AS VARCHAR[])[2],
                     CAST(['1.5', '2'] AS DECIMAL(5, 2)[])[1]";
    assert_eq!(crate::sql::rows(&reader, wider).await.unwrap(), [["3.00", "20", "1.50"]]);
}

//! A caller's answers are those of a catalog whose tables hold what the caller sees and nothing else: many random policies,
//! many random statements each, among them ones that fail on some rows. Which of several conditions is evaluated first is not
//! said, and files' statistics may spare the second, so an error of one side alone must be one of what the caller sees;
//! rows are compared with the administrator's as well.
//!
//! `QUERENT_POLICY_CASES` says how many, `QUERENT_POLICY_SEED` the first seed; a failing one names its own.

use querent_engine::Session;
use querent_tests::RandomNumbers;

use super::{admin, caller, run};
use crate::sql::{cells, engine, rows};

/// Statements that are compared unless the variable says another number.
const CASES: usize = 300;
/// Statements of one policy.
const CASES_A_POLICY: usize = 15;

/// What makes the tables of what is seen be read as those of which some is not.
const ALL_OF_Q: &str = "CREATE ROW POLICY everything ON q.t USING (true) TO PUBLIC;
    CREATE ROW POLICY everything ON q.u USING (true) TO PUBLIC";

const SETUP: [&str; 2] = ["CREATE DATABASE p", "CREATE DATABASE q"];

/// Two tables of random numbers of rows and values.
fn tables(numbers: &mut RandomNumbers) -> [String; 2] {
    let (rows, others) = (numbers.below(90), 1 + numbers.below(50));
    let (nulls, values, kinds) = (2 + numbers.below(9), 1 + numbers.below(9), 1 + numbers.below(4));
    let (texts, wide) = (2 + numbers.below(5), 1 + numbers.below(40));
    let third = numbers.one(&["'ä''z'", "''", "NULL", "'x '", "'%z'"]);
    let t = format!(
        "CREATE OR REPLACE TABLE p.t AS SELECT value AS id, CASE WHEN value % {nulls} = 0 THEN NULL ELSE value % {values} END AS a,
            CASE value % {kinds} WHEN 0 THEN 'x' WHEN 1 THEN 'y' ELSE {third} END AS b,
            CASE WHEN value % {texts} = 0 THEN 'n/a' ELSE CAST(value % 11 AS VARCHAR) END AS s
         FROM generate_series(1, {rows}) AS g(value)"
    );
    let u = format!(
        "CREATE OR REPLACE TABLE p.u AS SELECT value AS k, value * {wide} % 60 AS t_id,
            CASE WHEN value % {kinds} = 0 THEN 'x' ELSE 'y' END AS b FROM generate_series(1, {others}) AS g(value)"
    );
    [t, u]
}

/// What is there of a table, as a policy and as a query of an administrator.
struct SeenPart {
    statements: Vec<String>,
    query: String,
}

fn part(numbers: &mut RandomNumbers, table: &str, columns: &[&str]) -> SeenPart {
    let mut statements = Vec::new();
    let mut shown: Vec<&str> = columns.to_vec();
    if numbers.chance(30) {
        shown.remove(1 + numbers.below(columns.len() - 1));
        statements.push(format!("GRANT SELECT ({}) ON {table} TO ROLE reader", shown.join(", ")));
    } else {
        statements.push(format!("GRANT SELECT ON {table} TO PUBLIC"));
    }
    let key = columns[0];
    let constant = numbers.below(50);
    let condition = match numbers.below(7) {
        0 | 1 => None,
        2 => Some(format!("{key} > {constant}")),
        3 => Some("b = attribute('region')".to_owned()),
        4 => Some(format!("{key} % 3 = 1 OR b = 'y'")),
        5 => Some(format!("CASE WHEN {key} < {constant} THEN {key} % 2 = 0 ELSE {key} % 4 <> 1 END")),
        _ => Some(format!("{key} <> {constant} AND has_role('reader')")),
    };
    if let Some(condition) = &condition {
        statements.push(format!("CREATE ROW POLICY one ON {table} USING ({condition}) TO ROLE reader"));
    }
    let second = condition.is_some() && numbers.chance(30);
    if second {
        statements.push(format!("CREATE ROW POLICY two ON {table} USING ({key} = 7) TO PUBLIC"));
    }
    let masked = numbers.chance(35).then(|| shown[numbers.below(shown.len())]);
    let mask = match (masked, masked.is_some_and(|column| column == "b" || column == "s")) {
        (Some(_), true) => numbers.one(&["'***'", "NULL", "upper(b)"]).to_owned(),
        (_, _) => numbers.one(&["0", "NULL", "-1"]).to_owned(),
    };
    if let Some(column) = masked {
        statements.push(format!("CREATE MASK m ON {table}({column}) USING ({mask}) TO PUBLIC EXCEPT ROLE nobody"));
    }
    let selected = shown.iter().map(|column| match masked == Some(*column) {
        true if *column == "b" || *column == "s" => format!("CAST({mask} AS VARCHAR) AS {column}"),
        true => format!("CAST({mask} AS BIGINT) AS {column}"),
        false => (*column).to_owned(),
    });
    let selected = selected.collect::<Vec<_>>().join(", ");
    let condition = condition.map(|condition| {
        let condition = condition.replace("attribute('region')", "'x'").replace("has_role('reader')", "true");
        if second { format!(" WHERE ({condition}) OR {key} = 7") } else { format!(" WHERE {condition}") }
    });
    SeenPart { statements, query: format!("(SELECT {selected} FROM {table}{})", condition.unwrap_or_default()) }
}

/// A statement with `{t}` and `{u}` in the places of the tables, and its condition that may fail on a row, where it has
/// one.
fn statement(numbers: &mut RandomNumbers) -> (String, Option<String>) {
    let n = numbers.below(60);
    let fallible = [
        format!("1 / (t.id - {n}) > 0"),
        format!("100 % (t.a - {}) = 1", n % 5),
        "CAST(t.s AS INT) > 3".to_owned(),
        format!("t.id / (t.a - {}) < 9", n % 5),
    ];
    let sure = [
        format!("t.id < {n}"),
        format!("t.a = {}", n % 5),
        "t.b = 'x'".to_owned(),
        "t.b LIKE '%z'".to_owned(),
        format!("t.id BETWEEN {} AND {n}", n / 2),
        "t.a IS NULL".to_owned(),
        format!("t.id IN (1, {n}, 7)"),
        "length(t.s) = 1".to_owned(),
        format!("NOT (t.id >= {n} OR t.b <> 'y')"),
    ];
    let mut conditions = Vec::new();
    for _ in 0..numbers.below(3) {
        conditions.push(sure[numbers.below(sure.len())].clone());
    }
    let may_fail = numbers.chance(35).then(|| fallible[numbers.below(fallible.len())].clone());
    if let Some(condition) = &may_fail {
        conditions.insert(numbers.below(conditions.len() + 1), condition.clone());
    }
    let joined = numbers.one(&[" AND ", " OR "]);
    let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(joined)) };
    let sql = match numbers.below(40) {
        0 => format!("SELECT count(*), min(t.id), max(t.id), sum(t.a) FROM {{t}} t{filter}"),
        1 => format!("SELECT * FROM {{t}} t{filter}"),
        2 => format!("SELECT t.b, count(*), avg(t.id) FROM {{t}} t{filter} GROUP BY t.b"),
        3 => format!("SELECT t.id, t.s FROM {{t}} t{filter} ORDER BY t.id LIMIT {}", 1 + n % 9),
        4 => format!("SELECT t.id, u.k FROM {{t}} t JOIN {{u}} u ON u.t_id = t.id{filter}"),
        5 => format!("SELECT t.id, u.k FROM {{t}} t LEFT JOIN {{u}} u ON u.t_id = t.id AND u.k < {n}{filter}"),
        6 => "SELECT t.id FROM {t} t WHERE EXISTS (SELECT 1 FROM {u} u WHERE u.t_id = t.id AND u.b = t.b)".to_owned(),
        7 => format!("SELECT t.id FROM {{t}} t WHERE t.id NOT IN (SELECT u.k FROM {{u}} u WHERE u.k > {n})"),
        8 => format!("SELECT t.id, row_number() OVER (PARTITION BY t.b ORDER BY t.id) FROM {{t}} t{filter}"),
        9 => format!("SELECT DISTINCT t.a, t.b FROM {{t}} t{filter}"),
        10 => format!("SELECT t.id FROM {{t}} t{filter} UNION SELECT u.k FROM {{u}} u"),
        11 => format!("WITH w AS (SELECT t.id, t.a FROM {{t}} t{filter}) SELECT count(*), count(w.a) FROM w"),
        12 => format!("SELECT (SELECT max(u.k) FROM {{u}} u WHERE u.t_id = t.id) AS m, t.id FROM {{t}} t{filter}"),
        13 => format!(
            "SELECT t.b, count(*) FILTER (WHERE t.id > {n}), max(t.s) FROM {{t}} t{filter} GROUP BY ROLLUP (t.b)"
        ),
        14 => format!("SELECT t.a, sum(t.id) AS n FROM {{t}} t{filter} GROUP BY t.a HAVING sum(t.id) > {n}"),
        15 => format!("SELECT t.id FROM {{t}} t{filter} EXCEPT SELECT u.t_id FROM {{u}} u WHERE u.b = 'x'"),
        16 => {
            format!("SELECT t.id, u.k FROM {{t}} t FULL JOIN {{u}} u ON u.t_id = t.id WHERE u.k IS NULL OR t.id < {n}")
        }
        17 => format!(
            "SELECT one.id, two.id FROM {{t}} one JOIN {{t}} two ON one.id = two.id + {} AND one.b = two.b",
            n % 7
        ),
        18 => format!(
            "SELECT t.id, lag(t.s) OVER (ORDER BY t.id), sum(t.a) OVER (PARTITION BY t.b ORDER BY t.id) FROM {{t}} t{filter}"
        ),
        19 => format!("SELECT t.id, x.v FROM {{t}} t CROSS JOIN (VALUES (1), ({n})) AS x(v){filter}"),
        20 => {
            "SELECT (SELECT count(*) FROM {t} t), (SELECT count(*) FROM {u} u), (SELECT min(t.s) FROM {t} t)".to_owned()
        }
        21 => format!("SELECT concat(t.b, t.s, '-'), t.id + coalesce(t.a, {n}) FROM {{t}} t{filter}"),
        22 => format!("SELECT t.id FROM {{t}} t{filter} ORDER BY t.id DESC LIMIT 5 OFFSET {}", n % 11),
        23 => format!(
            "SELECT t.id, l.m FROM {{t}} t, LATERAL (SELECT max(u.k) AS m FROM {{u}} u WHERE u.t_id = t.id AND u.k < {n}) l{filter}"
        ),
        24 => format!(
            "WITH RECURSIVE w AS (SELECT t.id FROM {{t}} t WHERE t.id < {n} UNION SELECT t.id FROM {{t}} t JOIN w ON t.id = w.id + 1) \
             SELECT count(*), max(w.id) FROM w"
        ),
        25 => format!(
            "WITH RECURSIVE r AS (SELECT min(t.id) AS n FROM {{t}} t{filter} UNION ALL SELECT r.n + 1 FROM r WHERE r.n < {n}) \
             SELECT count(*), sum(r.n) FROM r"
        ),
        26 => format!(
            "SELECT t.b, t.a, count(*), max(t.id) FROM {{t}} t{filter} GROUP BY GROUPING SETS ((t.b), (t.a), ())"
        ),
        27 => format!(
            "SELECT t.id, t.a FROM {{t}} t{filter} QUALIFY rank() OVER (PARTITION BY t.b ORDER BY t.id DESC) <= {}",
            1 + n % 4
        ),
        28 => format!("SELECT t.id FROM {{t}} t WHERE t.id > ALL (SELECT u.k FROM {{u}} u WHERE u.k < {n})"),
        29 => format!("SELECT b, count(*), sum(t.id) FROM {{t}} t JOIN {{u}} u USING (b){filter} GROUP BY b"),
        30 => format!("SELECT * EXCLUDE (b) FROM {{t}} t{filter}"),
        31 => format!("SELECT to_json(t) FROM {{t}} t{filter}"),
        32 => "WITH w AS (SELECT t.id, t.a FROM {t} t) SELECT * FROM w UNPIVOT (v FOR name IN (id, a))".to_owned(),
        33 => format!(
            "WITH w AS (SELECT t.id, t.b FROM {{t}} t{filter}) SELECT * FROM w PIVOT (count(id) FOR b IN ('x', 'y'))"
        ),
        34 => format!("SELECT t.id FROM {{t}} t{filter} INTERSECT ALL SELECT u.t_id FROM {{u}} u"),
        35 => format!("SELECT unnest([t.id, t.a, {n}]) AS v, t.b FROM {{t}} t{filter}"),
        36 => format!("SELECT list_sort(array_agg(t.s)), max(t.b) FROM {{t}} t{filter}"),
        37 => format!(
            "SELECT t.id, sum(t.id) OVER (ORDER BY t.id RANGE BETWEEN {} PRECEDING AND CURRENT ROW) FROM {{t}} t{filter}",
            n % 9
        ),
        38 => format!(
            "SELECT t.id, EXISTS (SELECT 1 FROM {{u}} u WHERE u.t_id = t.id AND u.k > {n}) AS e, \
             t.id IN (SELECT u.k FROM {{u}} u) AS i FROM {{t}} t{filter}"
        ),
        _ => format!("SELECT CASE WHEN t.id > {n} THEN 1 / (t.id - {n}) ELSE 0 END, t.id FROM {{t}} t{filter}"),
    };
    (sql, may_fail)
}

/// A query in KQL with `{t}` and `{u}` in the places of the tables.
fn kql_query(numbers: &mut RandomNumbers) -> String {
    let n = numbers.below(60);
    let filter = match numbers.below(5) {
        0 => String::new(),
        1 => format!(" | where id < {n}"),
        2 => " | where b == 'x' or isnull(a)".to_owned(),
        3 => format!(" | where s has '{}' and id != {n}", n % 11),
        _ => format!(" | where toint(s) > {} ", n % 11),
    };
    match numbers.below(16) {
        0 => format!("{{t}}{filter} | count"),
        1 => format!("{{t}}{filter} | summarize n = count(), m = max(id), d = dcount(a) by b"),
        2 => format!("{{t}}{filter} | project id, s | top {} by id asc", 1 + n % 9),
        3 => format!(
            "{{t}}{filter} | join kind=inner ({{u}} | where k < {n}) on $left.id == $right.t_id | project id, k"
        ),
        4 => format!("{{t}}{filter} | extend y = 100 / (id - {n}), z = strcat(b, s) | project id, y, z"),
        5 => format!("{{t}}{filter} | distinct a, b"),
        6 => format!(
            "union (print id = tolong({n})), ({{t}}{filter} | project id), ({{u}} | project id = k) | summarize sum(id)"
        ),
        7 => format!(
            "{{t}}{filter} | extend l = pack_array(id, a) | mv-expand l to typeof(long) | summarize sum(l) by b"
        ),
        8 => format!(
            "{{t}}{filter} | summarize by id, a | order by id asc, a asc | extend p = prev(id) | summarize sum(p), count()"
        ),
        9 => format!(
            "{{t}}{filter} | lookup kind=leftouter ({{u}} | summarize k = max(k) by id = t_id) on id | summarize count(), sum(k)"
        ),
        10 => format!(
            "{{u}} | make-graph t_id --> k | graph-match (x)-[e]->(y) where e.k < {n} project f = e.t_id, g = e.k \
             | summarize count(), sum(f), max(g)"
        ),
        11 => format!("{{t}}{filter} | summarize s = array_sort_asc(make_set(s)), l = countif(id > {n}) by b"),
        12 => format!(
            "let w = materialize({{t}}{filter} | project id, a); \
             w | join kind=leftouter (w | summarize n = count() by a) on a | summarize sum(n), count()"
        ),
        13 => format!("{{t}}{filter} | where * has 'x' | summarize count(), max(id)"),
        14 => format!("{{t}}{filter} | evaluate pivot(b, count(), a)"),
        _ => format!("{{t}}{filter} | where id in (({{u}} | project t_id)) | summarize arg_max(id, s) by b"),
    }
}

/// The rows of a KQL query in any order, or the error's code.
async fn kql_answer(session: &Session, text: &str) -> Result<Vec<Vec<String>>, &'static str> {
    let collected = async {
        let stream = session.kql(text).await?;
        let declared = stream.schema();
        let (batches, _) = stream.collect().await?;
        Ok::<_, querent_engine::EngineError>(cells(&declared, &batches))
    };
    let mut rows = collected.await.map_err(|error| error.code())?;
    rows.sort();
    Ok(rows)
}

/// The rows in any order, or the error's code.
async fn answer(session: &Session, sql: &str) -> Result<Vec<Vec<String>>, &'static str> {
    let mut rows = rows(session, sql).await.map_err(|error| error.code())?;
    rows.sort();
    Ok(rows)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_answers_are_those_over_what_it_sees() {
    let cases = std::env::var("QUERENT_POLICY_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let first = std::env::var("QUERENT_POLICY_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0_usize);
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &SETUP).await;
    let anna = caller(&engine, "anna", &["reader"], Some("x"));
    let (mut answered, mut failed) = (0, 0);
    for policy in first..first + cases.div_ceil(CASES_A_POLICY) {
        let mut numbers = RandomNumbers::new(policy as u64);
        for statement in tables(&mut numbers) {
            run(&root, &[&statement]).await;
        }
        let t = part(&mut numbers, "p.t", &["id", "a", "b", "s"]);
        let u = part(&mut numbers, "p.u", &["k", "t_id", "b"]);
        for (table, part) in [("q.t", &t), ("q.u", &u)] {
            let query = &part.query[1..part.query.len() - 1];
            run(&root, &[&format!("CREATE OR REPLACE TABLE {table} AS {query}")]).await;
        }
        let text = [t.statements.join(";\n"), u.statements.join(";\n"), ALL_OF_Q.to_owned()].join(";\n");
        root.replace_policy(&text, false).await.unwrap_or_else(|error| panic!("policy {policy}: {text}: {error}"));
        for case in 0..CASES_A_POLICY {
            if numbers.chance(20) {
                let query = kql_query(&mut numbers);
                let of = |database: &str| {
                    let table = |name: &str| format!("database('{database}').{name}");
                    query.replace("{t}", &table("t")).replace("{u}", &table("u"))
                };
                let (own, copied) = (kql_answer(&anna, &of("p")).await, kql_answer(&anna, &of("q")).await);
                assert_eq!(own, copied, "policy {policy}, case {case}: {query}\n{text}\n{} | {}", t.query, u.query);
                if own.is_ok() {
                    answered += 1
                } else {
                    failed += 1
                }
                continue;
            }
            let (sql, may_fail) = statement(&mut numbers);
            let own = answer(&anna, &sql.replace("{t}", "p.t").replace("{u}", "p.u")).await;
            let copied = answer(&anna, &sql.replace("{t}", "q.t").replace("{u}", "q.u")).await;
            let what = format!("policy {policy}, case {case}: {sql}\n{text}\n{} | {}", t.query, u.query);
            if own != copied {
                let condition = may_fail.unwrap_or_else(|| panic!("{own:?} is not {copied:?}: {what}"));
                assert!(own.is_err() != copied.is_err(), "{own:?} is not {copied:?}: {what}");
                let seen = answer(&anna, &format!("SELECT {condition} FROM q.t t")).await;
                assert_eq!(seen, Err("invalid_value"), "of rows that are seen: {own:?}, {copied:?}: {what}");
            }
            match &own {
                Ok(rows) => {
                    answered += 1;
                    let filtered = answer(&root, &sql.replace("{t}", &t.query).replace("{u}", &u.query)).await;
                    if let Ok(filtered) = filtered {
                        assert_eq!(*rows, filtered, "{what}");
                    }
                }
                Err(_) => failed += 1,
            }
        }
    }
    println!("{answered} answers and {failed} errors were the same");
    assert!(answered > cases / 3 && failed > cases / 50, "{answered} answers, {failed} errors");
}

//! What is repaired without a model, each case through a run: what the model sent, what it changed to, what came of it.

use querent_agent::{EventKind, ToolStatus};
use querent_tests::script::run_sql;
use serde_json::{Value, json};

use super::{AnswersFixture, results};

/// Question, SQL as sent, the kinds of the changes, and the rows.
pub(super) type RepairCase = (&'static str, &'static str, &'static [&'static str], Value);

pub(super) const CARS: &str = "What are the horsepower and mpg of the cars data by model name?";
pub(super) const VOTES: &str = "How many votes by state and phone number?";
const POKER: &str = "What are the names and earnings of poker player people by nationality?";
pub(super) const WORLD: &str = "Which country on each continent, and the population of its city?";
pub(super) const CONCERTS: &str = "Names of each singer, of the concert and the stadium capacity?";

#[tokio::test(flavor = "multi_thread")]
async fn years_and_months_are_all_of_their_days_and_words_are_texts() {
    // Votes of 9 and 10 March and of 1 April 2018.
    let votes = |condition: &str| format!("SELECT count(*) AS n FROM voter_1.votes WHERE {condition}");
    let fixture = AnswersFixture::new().await;
    for (condition, kind, n) in [
        ("created > '2017'", "literal", 3),
        ("created > '2018'", "literal", 0),
        ("created >= '2018-04'", "literal", 1),
        ("created <= '2018-03'", "literal", 2),
        ("created < '2018-04'", "literal", 2),
        ("created = '2018-03'", "literal", 2),
        ("created BETWEEN '2018-03' AND '2018-04'", "literal", 3),
        ("created BETWEEN '2018-03-10' AND '2018-03'", "literal", 1),
        ("contestant = Bob", "quotes", 1),
        // A number is a year, or a day, and none of days since 1970.
        ("created > 2017", "type", 3),
        ("created < 2018", "type", 0),
        ("created = 2018", "type", 3),
        ("2018 <= created", "type", 3),
        ("created BETWEEN 2016 AND 2018", "type", 3),
        ("created IN (2016, 2017)", "type", 0),
        ("created >= 20180401", "type", 1),
    ] {
        let result = fixture.result_of(VOTES, &votes(condition)).await.result;
        assert_eq!(result["rows"], json!([{ "n": n }]), "{condition}: {result}");
        let changes = result["repaired"]["changes"].as_array().cloned().unwrap_or_default();
        assert!(changes.iter().any(|change| change["kind"] == kind), "{condition}: {result}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_tables_resolve_as_a_model_writes_them() {
    run_table(vec![
        (VOTES, "SELECT count(*) AS n FROM votes WHERE state = 'CA'", &["table"], json!([{"n": 2}])),
        (VOTES, "SELECT count(*) AS n FROM voter_1 WHERE state = 'CA'", &["table"], json!([{"n": 2}])),
        (VOTES, "SELECT count(*) AS n FROM voter_1 WHERE voter_1.state = 'CA'", &["table"], json!([{"n": 2}])),
        (VOTES, "SELECT count(*) AS n FROM public.votes", &["table"], json!([{"n": 3}])),
        (VOTES, "SELECT count(*) AS n FROM voter_1.vote", &["table"], json!([{"n": 3}])),
        (CARS, "SELECT max(horsepower) AS h FROM car_data", &["table"], json!([{"h": 165}])),
        // A database that has a table of its name: the column tells which is meant.
        (POKER, "SELECT max(earnings) AS e FROM poker_player", &["table"], json!([{"e": 476_090.0}])),
        // Joined tables that drop the database.
        (
            WORLD,
            "SELECT count(*) AS n FROM world_1.city JOIN country ON city.country_code = country.code \
             WHERE country.name = 'France'",
            &["table"],
            json!([{"n": 2}]),
        ),
        (
            POKER,
            "SELECT t1.name FROM people AS t1 JOIN poker_player AS t2 ON t1.people_id = t2.people_id \
             ORDER BY t2.earnings DESC LIMIT 1",
            &["table", "table"],
            json!([{"name": "Aleksey"}]),
        ),
        (
            WORLD,
            "SELECT name FROM country WHERE code IN (SELECT country_code FROM city WHERE population > 2)",
            &["table", "table"],
            json!([{"name": "Spain"}]),
        ),
        (
            WORLD,
            "WITH big AS (SELECT * FROM city WHERE population > 1) SELECT count(*) AS n FROM big",
            &["table"],
            json!([{"n": 2}]),
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_found_where_they_are() {
    run_table(vec![
        // An alias that does not own the column, and the table's own name where it has an alias.
        (
            CONCERTS,
            "SELECT count(*) AS n FROM concert_singer.concert AS t1 JOIN concert_singer.stadium AS t2 \
             ON t1.stadium_id = t2.stadium_id WHERE t1.capacity > 150",
            &["column"],
            json!([{"n": 1}]),
        ),
        (
            CONCERTS,
            "SELECT singer.name FROM concert_singer.singer AS s WHERE s.age > 50",
            &["column"],
            json!([{"name": "Joe"}]),
        ),
        // Spelled in another way.
        (CONCERTS, "SELECT count(*) AS n FROM singer WHERE is_males = 'T'", &["table", "column"], json!([{"n": 2}])),
        (
            CONCERTS,
            "SELECT concertname AS c FROM concert WHERE year = '2015'",
            &["table", "column"],
            json!([{"c": "Week"}]),
        ),
        // In more than one table.
        (
            CONCERTS,
            "SELECT count(*) AS n FROM concert_singer.concert JOIN concert_singer.stadium ON concert.stadium_id = \
             stadium.stadium_id WHERE stadium_id = 1",
            &["column"],
            json!([{"n": 2}]),
        ),
        // Of a table that is not joined, by one relationship and by a table between.
        (
            CONCERTS,
            "SELECT max(capacity) AS c FROM concert_singer.concert WHERE year = '2014'",
            &["join"],
            json!([{"c": 200}]),
        ),
        (
            CONCERTS,
            "SELECT count(DISTINCT singer.name) AS n FROM concert_singer.singer WHERE concert.year = '2014'",
            &["join", "join"],
            json!([{"n": 3}]),
        ),
        // An id that the table calls otherwise: by what other tables refer to it.
        (
            CONCERTS,
            "SELECT s.name FROM concert_singer.singer_in_concert AS x JOIN concert_singer.singer AS s \
             ON x.singer_id = s.person_id WHERE x.concert_id = 2",
            &["column"],
            json!([{"name": "Justin"}]),
        ),
        // A join by two columns of one table, of which it lacks one.
        (
            CONCERTS,
            "SELECT count(*) AS n FROM concert_singer.concert AS c JOIN concert_singer.stadium AS s \
             ON s.held_at = s.stadium_id WHERE s.capacity = 100",
            &["join"],
            json!([{"n": 2}]),
        ),
        // A condition whose columns exist stays, whatever else is wrong with the query.
        (
            CONCERTS,
            "SELECT count(*) AS n FROM concert_singer.concert AS c JOIN stadium AS s \
             ON s.stadium_id = s.stadium_id WHERE s.capacity = 100",
            &["table"],
            json!([{"n": 3}]),
        ),
        // A join by a name that one of the two tables lacks.
        (
            CONCERTS,
            "SELECT count(*) AS n FROM concert_singer.concert AS c JOIN concert_singer.stadium AS s \
             ON c.capacity = s.capacity WHERE s.capacity = 100",
            &["join"],
            json!([{"n": 2}]),
        ),
        // A join that says not by what.
        (
            CONCERTS,
            "SELECT count(*) AS n FROM concert_singer.concert AS c JOIN stadium AS s WHERE s.capacity = 100",
            &["table", "join"],
            json!([{"n": 2}]),
        ),
        // Texts in double quotes.
        (
            CONCERTS,
            "SELECT count(*) AS n FROM singer WHERE country = \"France\"",
            &["table", "quotes"],
            json!([{"n": 2}]),
        ),
        // Numbers that are kept as texts.
        (CARS, "SELECT avg(mpg) AS a FROM cars_data", &["table", "type"], json!([{"a": 21.0}])),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregates_stand_where_they_can() {
    run_table(vec![
        (
            WORLD,
            "SELECT name FROM world_1.country WHERE population = max(population)",
            &["grouping"],
            json!([{"name": "France"}]),
        ),
        (
            WORLD,
            "SELECT name FROM world_1.country WHERE continent = 'Europe' AND population < avg(population)",
            &["grouping"],
            json!([{"name": "Spain"}]),
        ),
        (
            WORLD,
            "SELECT continent FROM world_1.country WHERE count(*) > 1 GROUP BY continent",
            &["grouping"],
            json!([{"continent": "Europe"}]),
        ),
        (
            WORLD,
            "SELECT continent, count(*) AS n FROM world_1.country WHERE n > 1 GROUP BY continent",
            &["grouping"],
            json!([{"continent": "Europe", "n": 2}]),
        ),
        (WORLD, "SELECT max(count(*)) AS m FROM world_1.country GROUP BY continent", &["grouping"], json!([{"m": 2}])),
        (
            CONCERTS,
            "SELECT name FROM concert_singer.stadium WHERE stadium_id IN (SELECT * FROM concert_singer.concert \
             WHERE year = '2015')",
            &["column"],
            json!([{"name": "Stark"}]),
        ),
        (
            WORLD,
            "SELECT name FROM world_1.country UNION SELECT name FROM world_1.city WHERE population > 2 \
             ORDER BY country.name",
            &["column"],
            json!([{"name": "France"}, {"name": "Madrid"}, {"name": "Perú"}, {"name": "Spain"}]),
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_spelled_as_the_column_spells_them() {
    run_table(vec![
        (
            CONCERTS,
            "SELECT name FROM concert_singer.singer WHERE country = 'united'",
            &["literal"],
            json!([{"name": "Timbaland"}]),
        ),
        (
            CONCERTS,
            "SELECT count(*) AS n FROM concert_singer.singer WHERE country = 'FRANCE'",
            &["literal"],
            json!([{"n": 2}]),
        ),
        (WORLD, "SELECT code FROM world_1.country WHERE name IN ('Peru')", &["literal"], json!([{"code": "PER"}])),
        (
            CONCERTS,
            "SELECT count(*) AS n FROM concert_singer.singer WHERE is_male = 'yes'",
            &["literal"],
            json!([{"n": 2}]),
        ),
        (
            VOTES,
            "SELECT count(*) AS n FROM voter_1.votes WHERE created = 'March 9, 2018'",
            &["literal"],
            json!([{"n": 1}]),
        ),
        (CARS, "SELECT model FROM car_1.car_names WHERE make LIKE '%Pinto%'", &["literal"], json!([{"model": "ford"}])),
        (
            CONCERTS,
            "SELECT name FROM singer WHERE country = \"netherlands\"",
            &["table", "quotes", "literal"],
            json!([{"name": "Joe"}]),
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_found_in_other_columns() {
    run_table(vec![
        // A key that is compared with the name of what it refers to.
        (
            WORLD,
            "SELECT count(*) AS n FROM world_1.city WHERE country_code = 'france'",
            &["literal"],
            json!([{"n": 2}]),
        ),
        (
            WORLD,
            "SELECT c.name FROM world_1.city AS c WHERE c.country_code = 'Spain' AND c.population > 2",
            &["literal"],
            json!([{"name": "Madrid"}]),
        ),
        // Another column of the same table.
        (
            WORLD,
            "SELECT max(population) AS p FROM world_1.country WHERE code = 'South America'",
            &["literal"],
            json!([{"p": 33}]),
        ),
        // A text that no column has stays where it is.
        (WORLD, "SELECT name FROM world_1.city WHERE country_code = 'Atlantis'", &[], json!([])),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_of_the_querys_own_is_no_limit() {
    run_table(vec![(
        VOTES,
        "SELECT [state], [RowNum] FROM (SELECT [state], ROW_NUMBER() OVER (PARTITION BY [state] ORDER BY [vote_id]) AS \
         RowNum FROM [voter_1].[votes]) x WHERE RowNum <= 1 ORDER BY [state]",
        &["dialect", "quotes"],
        json!([{"state": "CA", "RowNum": 1}, {"state": "NY", "RowNum": 1}]),
    )])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subquery_reads_the_table_that_has_its_columns() {
    run_table(vec![(
        CARS,
        "SELECT car_names.model FROM cars_data JOIN car_names ON cars_data.id = car_names.make_id \
         WHERE horsepower = (SELECT min(horsepower) FROM car_names)",
        &["table", "table", "table"],
        json!([{"model": "ford"}]),
    )])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_table_of_the_name_is_read_where_one_finds_nothing() {
    let fixture = AnswersFixture::new().await;
    fixture.execute("CREATE SCHEMA company_employee").await;
    fixture.execute("CREATE TABLE company_employee.people (people_id BIGINT, nationality VARCHAR, age BIGINT)").await;
    fixture.execute("INSERT INTO company_employee.people VALUES (1, 'Spain', 30)").await;
    fixture.engine.catalog().search().index_idle().await.unwrap();
    let sql = "SELECT nationality FROM company_employee.people GROUP BY nationality HAVING count(*) >= 2";
    let result = fixture.result_of("Which nationalities do at least two people share?", sql).await;
    assert_eq!(result.result["rows"], json!([{"nationality": "Russia"}]), "{}", result.text);
    assert_eq!(result.result["repaired"]["changes"][0]["kind"], "table");
    // Who names the company means it.
    let result = fixture.result_of("Which nationalities do two employees of the company share?", sql).await;
    assert_eq!(result.result["rows"], json!([]), "{}", result.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_one_query_are_of_one_database_where_one_has_them_all() {
    let fixture = AnswersFixture::new().await;
    fixture.execute("CREATE SCHEMA albums").await;
    fixture.execute("CREATE TABLE albums.singer (singer_id BIGINT, name VARCHAR)").await;
    fixture.execute("CREATE TABLE albums.song (song_id BIGINT, singer_id BIGINT, sales BIGINT)").await;
    fixture.execute("INSERT INTO albums.singer VALUES (1, 'Adele'), (2, 'Beck')").await;
    fixture.execute("INSERT INTO albums.song VALUES (1, 2, 5), (2, 2, 6)").await;
    fixture.engine.catalog().search().index_idle().await.unwrap();
    let sql = "SELECT singer.name, sum(song.sales) AS sales FROM singer JOIN song \
               ON singer.singer_id = song.singer_id GROUP BY singer.name";
    let question = "For each singer of a concert, what are the total sales of the songs?";
    let result = fixture.result_of(question, sql).await;
    assert_eq!(result.result["rows"], json!([{"name": "Beck", "sales": 11}]), "{}", result.text);
    // `albums.songs` is not there, and `song` is; another database's table of the very name is not meant.
    fixture.execute("CREATE SCHEMA sheets").await;
    fixture.execute("CREATE TABLE sheets.songs (singer_id BIGINT, sales BIGINT)").await;
    fixture.engine.catalog().search().index_idle().await.unwrap();
    let sql = sql.replace("JOIN song ", "JOIN songs AS song ");
    let result = fixture.result_of(question, &sql).await;
    assert_eq!(result.result["rows"], json!([{"name": "Beck", "sales": 11}]), "{}", result.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_called_as_a_table_that_refers_to_it_is_its_rows_counted() {
    run_table(vec![
        (
            CONCERTS,
            "SELECT name FROM concert_singer.stadium WHERE concerts > 0 ORDER BY number_of_concerts DESC",
            &["column"],
            json!([{"name": "Stark"}, {"name": "Glebe"}]),
        ),
        (WORLD, "SELECT c.name FROM world_1.country AS c WHERE c.cities > 1", &["column"], json!([{"name": "France"}])),
        // The city itself may be meant.
        (WORLD, "SELECT c.name FROM world_1.country AS c WHERE c.city > 1", &[], Value::Null),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_does_not_become_a_comparison_of_a_column_with_itself() {
    let fixture = AnswersFixture::new().await;
    let sql = "SELECT s.name FROM concert_singer.stadium AS s JOIN concert_singer.singer AS g \
               ON s.stadium_id = g.stadium_id";
    let result = fixture.result_of(CONCERTS, sql).await;
    assert_eq!((result.result.get("repaired"), result.status), (None, ToolStatus::Error), "{}", result.result);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_runs_is_left_alone_and_one_beyond_repair_fails() {
    let fixture = AnswersFixture::new().await;
    let result = fixture.result_of(VOTES, "SELECT count(*) AS n FROM voter_1.votes").await;
    assert_eq!(result.result.get("repaired"), None, "{}", result.result);
    let none = fixture.result_of(CONCERTS, "SELECT name FROM concert_singer.singer WHERE country = 'Atlantis'").await;
    assert_eq!((none.result.get("repaired"), none.status), (None, ToolStatus::NoData), "{}", none.result);
    // Statements that write are not turned into others.
    let refused = fixture.result_of(VOTES, "DELETE FROM votes").await;
    assert_eq!(refused.status, ToolStatus::Error);
    // The error names the tables at hand, qualified and with their columns.
    let failed = fixture.result_of(VOTES, "SELECT zzz FROM qqq").await;
    let hint = failed.result["error"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("voter_1.votes(vote_id, phone_number, state, contestant, created)"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_of_weekdays_are_said_where_a_query_does_not_tell_them() {
    let fixture = AnswersFixture::new().await;
    // 1 April 2018 was a Sunday.
    for (day, said) in [
        ("WEEKDAY(created)", Some("0 for Sunday")),
        ("EXTRACT(DAYOFWEEK FROM created)", Some("is 0 on Sundays")),
        ("day(created)", None),
    ] {
        let sql = format!("SELECT {day} AS d FROM voter_1.votes WHERE vote_id = 3");
        let result = fixture.result_of(VOTES, &sql).await.result;
        assert_eq!(result["rows"][0]["d"], if said.is_some() { 0 } else { 1 }, "{result}");
        assert!(said.is_none_or(|said| result.to_string().contains(said)), "{day}: {result}");
        assert!(said.is_some() || result.get("note").is_none(), "{day}: {result}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_of_times_is_in_days_where_a_number_multiplies_it() {
    let fixture = AnswersFixture::new().await;
    for statement in [
        "CREATE TABLE voter_1.calls (call_id BIGINT, began TIMESTAMP, ended TIMESTAMP)",
        "INSERT INTO voter_1.calls VALUES (1, TIMESTAMP '2024-01-01 10:00:00', TIMESTAMP '2024-01-01 11:30:00')",
    ] {
        fixture.execute(statement).await;
    }
    let sql = "SELECT (ended - began) * 24 AS h FROM voter_1.calls";
    let result = fixture.result_of("How long was each of the calls?", sql).await.result;
    assert_eq!(result["rows"], json!([{ "h": 1.5 }]), "{result}");
    assert_eq!(result["repaired"]["changes"][0]["kind"], "type", "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_full_are_found_in_short() {
    let fixture = AnswersFixture::new().await;
    for statement in [
        "CREATE SCHEMA trade",
        "CREATE TABLE trade.cust (cust_id BIGINT, cust_nm VARCHAR, qty BIGINT)",
        "INSERT INTO trade.cust VALUES (1, 'Ann', 5), (2, NULL, 7)",
    ] {
        fixture.execute(statement).await;
    }
    for (sql, n) in [
        ("SELECT count(customer_name) AS n FROM trade.cust", 1),
        ("SELECT sum(quantity) AS n FROM trade.cust", 12),
        ("SELECT sum(qty) AS n FROM trade.customers", 12),
    ] {
        let result = fixture.result_of("The quantity of each cust of trade?", sql).await.result;
        assert_eq!(result["rows"], json!([{ "n": n }]), "{sql}: {result}");
        assert!(result["repaired"]["changes"].is_array(), "{sql}: {result}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_failing_query_is_not_sent_back_twice_the_same() {
    let fixture = AnswersFixture::new().await;
    let turns = json!([
        { "events": [run_sql("SELECT zzz FROM qqq")] },
        { "events": [run_sql("SELECT  zzz FROM qqq;")] },
        { "events": [{ "text": "It cannot be done." }] },
    ]);
    let events = fixture.ask(VOTES, turns).await;
    let results = results(&events);
    assert_eq!(results[0].result["error"]["code"], "table_not_found");
    assert_eq!(results[1].result["error"]["code"], "repeated_tool_failure");
    assert_ne!(results[0].text, results[1].text);
    // It says something new: a query that runs, with its rows.
    assert!(results[1].text.contains("this one runs: SELECT"), "{}", results[1].text);
    assert!(matches!(events.last(), Some(EventKind::RunFinished { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_reports_the_query_that_ran() {
    let fixture = AnswersFixture::new().await;
    let turns = json!([
        { "events": [run_sql("SELECT count(*) AS n FROM votes WHERE state = 'CA'")] },
        { "events": [{ "text": "2 votes." }] },
    ]);
    let events = fixture.ask(VOTES, turns).await;
    let used = events.iter().find_map(|event| match event {
        EventKind::AnswerFinal(answer) => answer.sql_used.clone(),
        _ => None,
    });
    assert_eq!(used.as_deref(), Some("SELECT count(*) AS n FROM voter_1.votes WHERE state = 'CA'"));
    let repaired = &results(&events)[0].result["repaired"];
    assert_eq!(repaired["sent"], "SELECT count(*) AS n FROM votes WHERE state = 'CA'");
    assert_eq!(repaired["ran"].as_str(), used.as_deref());
    assert_eq!(repaired["changes"][0]["to"], "voter_1.votes");
    assert!(results(&events)[0].text.contains("\nThe query was corrected and ran as: "));
}

/// Runs every case and reports all that fail.
pub(super) async fn run_table(cases: Vec<RepairCase>) {
    let fixture = AnswersFixture::new().await;
    let mut failures = Vec::new();
    for (question, sql, kinds, rows) in cases {
        let result = fixture.result_of(question, sql).await.result;
        let mut found: Vec<&str> = result["repaired"]["changes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|change| change["kind"].as_str())
            .collect();
        let mut expected = kinds.to_vec();
        // A kind is listed once in these cases, but for tables and joins, which are counted.
        let count = |kinds: &mut Vec<&str>| {
            kinds.sort_unstable();
            kinds.dedup_by(|left, right| left == right && !["table", "join"].contains(left));
        };
        count(&mut found);
        count(&mut expected);
        if result["rows"] != rows || found != expected {
            failures.push(format!("{sql}\n  expected {expected:?} {rows}\n  found {found:?} {result:#}"));
        }
    }
    assert!(failures.is_empty(), "{} cases:\n{}", failures.len(), failures.join("\n\n"));
}

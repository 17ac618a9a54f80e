//! Queries as other systems have them: their rows are those that the system's documentation says. The first tests compare
//! what is said of the changes too.

use serde_json::{Value, json};

use super::AnswersFixture;
use super::repairs::{CARS, CONCERTS, VOTES, WORLD, run_table};

#[tokio::test(flavor = "multi_thread")]
async fn other_dialects_are_turned() {
    let votes = |sql: &'static str, kinds: &'static [&'static str], rows: Value| (VOTES, sql, kinds, rows);
    run_table(vec![
        votes(
            "SELECT TOP 1 contestant FROM voter_1.votes ORDER BY vote_id DESC",
            &["dialect"],
            json!([{"contestant": "Ann"}]),
        ),
        votes(
            "SELECT [contestant] FROM [voter_1].[votes] WHERE [vote_id] = 2",
            &["dialect", "quotes"],
            json!([{"contestant": "Bob"}]),
        ),
        votes(
            "SELECT `contestant` FROM `votes` WHERE `vote_id` = 2",
            &["quotes", "table"],
            json!([{"contestant": "Bob"}]),
        ),
        votes(
            "SELECT strftime('%Y-%m', created) AS m FROM votes WHERE vote_id = 3",
            &["dialect", "table"],
            json!([{"m": "2018-04"}]),
        ),
        votes(
            "SELECT DATE_FORMAT(created, '%Y/%m/%d') AS d FROM votes WHERE vote_id = 1",
            &["dialect", "table"],
            json!([{"d": "2018/03/09"}]),
        ),
        votes("SELECT DATEDIFF(max(created), min(created)) AS d FROM votes", &["dialect", "table"], json!([{"d": 23}])),
        votes(
            "SELECT DATEDIFF(day, min(created), max(created)) AS d FROM votes",
            &["dialect", "table"],
            json!([{"d": 23}]),
        ),
        votes(
            "SELECT DATE_DIFF(max(created), min(created), DAY) AS d FROM votes",
            &["dialect", "table"],
            json!([{"d": 23}]),
        ),
        votes(
            "SELECT count(*) AS n FROM votes WHERE created > DATE_SUB('2018-03-11', INTERVAL 1 DAY)",
            &["dialect", "table"],
            json!([{"n": 1}]),
        ),
        votes(
            "SELECT count(*) AS n FROM votes WHERE DATEADD(day, 1, created) = DATE '2018-03-10'",
            &["dialect", "table"],
            json!([{"n": 1}]),
        ),
        votes(
            "SELECT DATEPART(year, created) AS y FROM votes WHERE vote_id = 1",
            &["dialect", "table"],
            json!([{"y": 2018}]),
        ),
        votes(
            "SELECT SAFE_DIVIDE(1, 0) AS q, SAFE_CAST('x' AS INT64) AS i FROM votes LIMIT 1",
            &["dialect", "table"],
            json!([{"q": null, "i": null}]),
        ),
        votes(
            "SELECT GROUP_CONCAT(contestant SEPARATOR '/') AS c FROM votes WHERE state = 'CA'",
            &["dialect", "table"],
            json!([{"c": "Bob/Ann"}]),
        ),
        votes("SELECT count(*) AS n FROM votes WHERE contestant REGEXP '^A'", &["dialect", "table"], json!([{"n": 2}])),
        votes("SELECT vote_id FROM votes ORDER BY vote_id LIMIT 1, 1", &["dialect", "table"], json!([{"vote_id": 2}])),
        votes(
            "SELECT CONVERT(VARCHAR, vote_id) AS v FROM votes WHERE vote_id = 1",
            &["dialect", "table"],
            json!([{"v": "1"}]),
        ),
        votes(
            "SELECT `state`, 7 / 2 AS q FROM votes WHERE vote_id = 1",
            &["dialect", "quotes", "table"],
            json!([{"state": "NY", "q": 3.5}]),
        ),
        votes(
            "SELECT contestant FROM votes ORDER BY state COLLATE NOCASE DESC LIMIT 1",
            &["dialect", "table"],
            json!([{"contestant": "Ann"}]),
        ),
        votes(
            "SELECT state, contestant, count(*) AS n FROM voter_1.votes GROUP BY state HAVING state = 'NY'",
            &["grouping"],
            json!([{"state": "NY", "contestant": "Ann", "n": 1}]),
        ),
        (CARS, "SELECT id, max(horsepower) AS h FROM car_1.cars_data", &["grouping"], json!([{"id": 2, "h": 165}])),
        (
            WORLD,
            "SELECT DISTINCT continent FROM world_1.country ORDER BY population LIMIT 1",
            &["grouping"],
            json!([{"continent": "South America"}]),
        ),
        votes(
            "Here it is:\n```sql\nSELECT count(*) AS n FROM votes;\n```\nIt counts.",
            &["statement", "table"],
            json!([{"n": 3}]),
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_other_systems_keep_their_meaning() {
    let votes = |sql: &'static str, kinds: &'static [&'static str], rows: Value| (VOTES, sql, kinds, rows);
    run_table(vec![
        // From the end, as SQLite and MySQL count.
        votes(
            "SELECT SUBSTR(contestant, -2) AS s FROM votes WHERE vote_id = 2",
            &["dialect", "table"],
            json!([{"s": "ob"}]),
        ),
        // MySQL counts the months that are over, T-SQL those that have begun.
        votes(
            "SELECT TIMESTAMPDIFF(MONTH, '2018-03-09', created) AS m FROM votes WHERE vote_id = 3",
            &["dialect", "table"],
            json!([{"m": 0}]),
        ),
        votes(
            "SELECT DATEDIFF(month, '2018-03-09', created) AS m FROM votes WHERE vote_id = 3",
            &["dialect", "table"],
            json!([{"m": 1}]),
        ),
        // The first of April 2018 was a Sunday: 1 in T-SQL.
        votes(
            "SELECT DATEPART(weekday, created) AS d FROM votes WHERE vote_id = 3",
            &["dialect", "table"],
            json!([{"d": 1}]),
        ),
        votes(
            "SELECT GROUP_CONCAT(DISTINCT contestant ORDER BY contestant DESC SEPARATOR '/') AS c FROM votes",
            &["dialect", "table"],
            json!([{"c": "Bob/Ann"}]),
        ),
        votes(
            "SELECT STRING_AGG(contestant, ',') WITHIN GROUP (ORDER BY vote_id DESC) AS c FROM votes \
             WHERE state = 'CA'",
            &["dialect", "table"],
            json!([{"c": "Ann,Bob"}]),
        ),
        votes(
            "SELECT DECODE(state, 'CA', 'west', 'east') AS d FROM votes WHERE vote_id = 1",
            &["dialect", "table"],
            json!([{"d": "east"}]),
        ),
        votes(
            "SELECT contestant FROM votes WHERE ROWNUM <= 1 AND state = 'NY'",
            &["dialect", "table"],
            json!([{"contestant": "Ann"}]),
        ),
        votes(
            "SELECT state FROM votes MINUS SELECT state FROM votes WHERE state = 'CA'",
            &["dialect", "table"],
            json!([{"state": "NY"}]),
        ),
        votes("SELECT 1 + 1 AS two FROM DUAL", &["dialect"], json!([{"two": 2}])),
        votes(
            "SELECT contestant FROM votes WHERE created > TO_DATE('2018-03-31', 'YYYY-MM-DD')",
            &["dialect", "table"],
            json!([{"contestant": "Ann"}]),
        ),
        votes(
            "SELECT ADD_MONTHS(created, 1) AS d FROM votes WHERE vote_id = 1",
            &["dialect", "table"],
            json!([{"d": "2018-04-09"}]),
        ),
        votes(
            "SELECT CONVERT(VARCHAR(10), created, 103) AS d FROM votes WHERE vote_id = 1",
            &["dialect", "table"],
            json!([{"d": "09/03/2018"}]),
        ),
        // Not found behind a place, nulls in CONCAT, and .NET's formats.
        votes(
            "SELECT CHARINDEX('A', contestant, 2) AS i FROM votes WHERE vote_id = 1",
            &["dialect", "table"],
            json!([{"i": 0}]),
        ),
        votes(
            "SELECT CONCAT(`state`, NULL) AS c FROM `votes` WHERE `vote_id` = 1",
            &["dialect", "quotes", "table"],
            json!([{"c": null}]),
        ),
        votes(
            "SELECT FORMAT(vote_id * 1000, 'N1') AS f FROM votes WHERE vote_id = 2",
            &["dialect", "table"],
            json!([{"f": "2,000.0"}]),
        ),
        votes("SELECT COUNT_BIG(*) AS n FROM votes", &["dialect", "table"], json!([{"n": 3}])),
        votes("SELECT vote_id MOD 2 AS m FROM votes WHERE vote_id = 3", &["dialect", "table"], json!([{"m": 1}])),
        votes(
            "SELECT contestant FROM votes WHERE contestant GLOB 'B*'",
            &["dialect", "table"],
            json!([{"contestant": "Bob"}]),
        ),
        votes(
            "SELECT contestant + '/' + state AS c FROM votes WHERE vote_id = 1",
            &["table", "type"],
            json!([{"c": "Ann/NY"}]),
        ),
        votes(
            "SELECT strftime('%Y', created) - 1 AS y FROM votes WHERE vote_id = 1",
            &["dialect", "table", "type"],
            json!([{"y": 2017.0}]),
        ),
        votes(
            "SELECT TRUNC(created) AS d FROM votes WHERE vote_id = 1",
            &["table", "type"],
            json!([{"d": "2018-03-09"}]),
        ),
        // Texts beside numbers.
        (CARS, "SELECT id FROM cars_data WHERE mpg > 20", &["table", "type"], json!([{"id": 3}])),
        (
            CONCERTS,
            "SELECT concert_name AS c FROM concert WHERE year > 2014",
            &["table", "type"],
            json!([{"c": "Week"}]),
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_other_systems() {
    run_rows(
        VOTES,
        &[
            // MySQL.
            ("SELECT SUM(state = 'CA') AS n FROM votes", json!([{"n": 2}])),
            ("SELECT TIMESTAMPDIFF(MONTH, '2024-01-31', '2024-02-29') AS m", json!([{"m": 0}])),
            ("SELECT TIMESTAMPDIFF(MONTH, '2024-01-15', '2024-03-15') AS m", json!([{"m": 2}])),
            ("SELECT TIMESTAMPDIFF(YEAR, '2020-02-29', '2024-02-28') AS y", json!([{"y": 3}])),
            ("SELECT `state`, DAYOFWEEK(created) AS d FROM votes WHERE vote_id = 1", json!([{"state": "NY", "d": 6}])),
            ("SELECT `state`, WEEKDAY(created) AS d FROM votes WHERE vote_id = 1", json!([{"state": "NY", "d": 4}])),
            ("SELECT count(*) AS n FROM votes WHERE MONTH(created) = 'March'", json!([{"n": 2}])),
            (
                "SELECT count(*) AS n FROM votes WHERE EXTRACT(MONTH FROM created) IN ('Mar', 'April')",
                json!([{"n": 3}]),
            ),
            // There is no seventh day from 0: Saturday and Sunday.
            ("SELECT count(*) AS n FROM voter_1.votes WHERE DAYOFWEEK(created) IN (1, 7)", json!([{"n": 2}])),
            ("SELECT vote_id AS v FROM votes WHERE EXTRACT(DAYOFWEEK FROM created) = 7", json!([{"v": 2}])),
            ("SELECT EXTRACT(YEAR_MONTH FROM created) AS m FROM votes WHERE vote_id = 1", json!([{"m": 201_803}])),
            ("SELECT MID(contestant, 1, 2) AS c FROM votes WHERE vote_id = 1", json!([{"c": "An"}])),
            ("SELECT PERIOD_DIFF(202403, 202311) AS m", json!([{"m": 4}])),
            ("SELECT CAST(SEC_TO_TIME(3661) AS VARCHAR) AS t", json!([{"t": "01:01:01"}])),
            (
                "SELECT state, COUNT(*) AS n FROM votes GROUP BY state WITH ROLLUP ORDER BY n DESC, state",
                json!([{"state": null, "n": 3}, {"state": "CA", "n": 2}, {"state": "NY", "n": 1}]),
            ),
            ("SELECT count(*) AS n FROM votes WHERE created LIKE '2018-03%'", json!([{"n": 2}])),
            // T-SQL.
            ("SELECT EOMONTH('2024-01-15', 1) AS d", json!([{"d": "2024-02-29"}])),
            ("SELECT TRY_CONVERT(int, 'x') AS i", json!([{"i": null}])),
            ("SELECT CHOOSE(2, 'a', 'b', 'c') AS c", json!([{"c": "b"}])),
            ("SELECT STR(vote_id, 5) AS v FROM votes WHERE vote_id = 3", json!([{"v": "    3"}])),
            ("SELECT TOP (1) WITH TIES state FROM votes ORDER BY state", json!([{"state": "CA"}, {"state": "CA"}])),
            ("SELECT TOP 50 PERCENT vote_id FROM votes ORDER BY vote_id", json!([{"vote_id": 1}, {"vote_id": 2}])),
            // BigQuery.
            (
                "SELECT contestant FROM `project.voter_1.votes` WHERE REGEXP_CONTAINS(contestant, r'^B')",
                json!([{"contestant": "Bob"}]),
            ),
            ("SELECT x FROM UNNEST([2, 1]) AS x ORDER BY x", json!([{"x": 1}, {"x": 2}])),
            ("SELECT SPLIT('a b', ' ')[OFFSET(1)] AS w", json!([{"w": "b"}])),
            ("SELECT SPLIT('a b', ' ')[ORDINAL(1)] AS w", json!([{"w": "a"}])),
            // Snowflake.
            ("SELECT TRY_TO_NUMBER('abc') AS n", json!([{"n": null}])),
            ("SELECT ARRAY_SIZE(SPLIT('a b', ' ')) AS n", json!([{"n": 2}])),
            (
                "SELECT vote_id, RATIO_TO_REPORT(vote_id) OVER () AS r FROM votes ORDER BY vote_id LIMIT 1",
                json!([{"vote_id": 1, "r": 1.0 / 6.0}]),
            ),
            // Oracle and Redshift.
            ("SELECT MONTHS_BETWEEN(DATE '2024-03-31', DATE '2024-02-29') AS m FROM dual", json!([{"m": 1.0}])),
            ("SELECT TRUNC(SYSDATE) - TRUNC(SYSDATE) AS d FROM dual", json!([{"d": 0}])),
            ("SELECT count(*) AS n FROM votes WHERE created < SYSDATE - 30", json!([{"n": 3}])),
            ("SELECT SYSDATE - 1/24 < SYSDATE AS b FROM dual", json!([{"b": true}])),
            (
                "SELECT state, MIN(contestant) KEEP (DENSE_RANK FIRST ORDER BY created) AS c FROM votes GROUP BY state \
                 ORDER BY state",
                json!([{"state": "CA", "c": "Bob"}, {"state": "NY", "c": "Ann"}]),
            ),
            ("SELECT REGEXP_SUBSTR('Anna Koch', '[^ ]+', 1, 2) AS w FROM dual", json!([{"w": "Koch"}])),
            ("SELECT DATE_PART(month, created) AS m FROM votes WHERE vote_id = 3", json!([{"m": 4}])),
            ("SELECT APPROXIMATE COUNT(DISTINCT state) AS n FROM votes", json!([{"n": 2}])),
            // Spark and Hive.
            ("SELECT date_format(created, 'yyyy-MM') AS m FROM votes WHERE vote_id = 1", json!([{"m": "2018-03"}])),
            ("SELECT date_sub('2024-03-01', 1) AS d", json!([{"d": "2024-02-29"}])),
            ("SELECT unix_timestamp('2024-01-01', 'yyyy-MM-dd') AS s", json!([{"s": 1_704_067_200}])),
            ("SELECT sort_array(collect_set(state)) AS s FROM votes", json!([{"s": ["CA", "NY"]}])),
            ("SELECT size(split('a b', ' ')) AS n", json!([{"n": 2}])),
            ("SELECT p FROM (SELECT explode(split('b,a', ',')) AS p) AS t ORDER BY p", json!([{"p": "a"}, {"p": "b"}])),
            (
                "SELECT vote_id, w FROM votes LATERAL VIEW explode(split(contestant, 'n')) t AS w WHERE vote_id = 2",
                json!([{"vote_id": 2, "w": "Bob"}]),
            ),
            ("SELECT percentile_approx(vote_id, 0.5) AS m FROM votes", json!([{"m": 2}])),
            ("SELECT collect_list(contestant) FILTER (WHERE state = 'NY') AS c FROM votes", json!([{"c": ["Ann"]}])),
            // SQLite, MySQL and Oracle: of a query that runs here as well.
            ("SELECT SUBSTR(contestant, -2) AS c FROM voter_1.votes WHERE vote_id = 2", json!([{"c": "ob"}])),
            ("SELECT SUBSTR(contestant, -3, 2) AS c FROM voter_1.votes WHERE vote_id = 2", json!([{"c": "Bo"}])),
            // SQLite.
            ("SELECT contestant FROM votes WHERE state IS NOT 'CA'", json!([{"contestant": "Ann"}])),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_of_other_systems() {
    run_rows(
        WORLD,
        &[
            (
                "SELECT co.name AS country, ci.name AS city FROM world_1.country co, world_1.city ci \
                 WHERE co.code = ci.country_code (+) AND co.continent <> 'Asia' ORDER BY co.name, ci.name",
                json!([
                    {"country": "France", "city": "Lyon"},
                    {"country": "France", "city": "Paris"},
                    {"country": "Perú", "city": null},
                    {"country": "Spain", "city": "Madrid"},
                ]),
            ),
            (
                "SELECT co.name, x.name AS city FROM world_1.country co CROSS APPLY (SELECT TOP 1 name FROM \
                 world_1.city WHERE country_code = co.code ORDER BY population DESC) x ORDER BY co.name",
                json!([{"name": "France", "city": "Paris"}, {"name": "Spain", "city": "Madrid"}]),
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clauses_that_stand_elsewhere() {
    run_rows(
        VOTES,
        &[
            (
                "SELECT contestant FROM voter_1.votes LIMIT 1 ORDER BY vote_id DESC",
                json!([{"contestant": "Ann"}]),
            ),
            (
                "SELECT state, count(*) AS n FROM voter_1.votes GROUP BY state WHERE vote_id > 1",
                json!([{"state": "CA", "n": 2}]),
            ),
            (
                "SELECT contestant FROM voter_1.votes ORDER BY vote_id LIMIT 1 UNION SELECT contestant FROM voter_1.votes \
                 ORDER BY vote_id DESC LIMIT 1",
                json!([{"contestant": "Ann"}]),
            ),
            (
                "SELECT contestant FROM voter_1.votes WHERE row_number() OVER (ORDER BY vote_id DESC) = 1",
                json!([{"contestant": "Ann"}]),
            ),
            (
                "SELECT contestant, rank() OVER (ORDER BY vote_id) AS r FROM voter_1.votes WHERE r = 2",
                json!([{"contestant": "Bob", "r": 2}]),
            ),
            (
                "SELECT state, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS r FROM voter_1.votes \
                 GROUP BY state HAVING r = 1",
                json!([{"state": "CA", "n": 2, "r": 1}]),
            ),
            ("SELECT contestant FROM voter_1.votes HAVING state = 'NY'", json!([{"contestant": "Ann"}])),
            // Without GROUP BY.
            (
                "SELECT state, count(*) AS n FROM voter_1.votes ORDER BY state",
                json!([{"state": "CA", "n": 2}, {"state": "NY", "n": 1}]),
            ),
            ("SELECT count(*) AS n FROM voter_1.votes WHERE created <> ''", json!([{"n": 3}])),
            ("SELECT count(*) AS n FROM voter_1.votes WHERE created = 'March 2018'", json!([{"n": 2}])),
            ("SELECT count(*) AS n FROM voter_1.votes WHERE created >= 'Q2 2018'", json!([{"n": 1}])),
            (
                "SELECT contestant FROM voter_1.votes WHERE state = 'CA' && vote_id < 3",
                json!([{"contestant": "Bob"}]),
            ),
            (
                "SELECT array_agg(contestant ORDER BY vote_id LIMIT 1)[OFFSET(0)] AS c FROM voter_1.votes",
                json!([{"c": "Ann"}]),
            ),
            ("SELECT any_value(contestant HAVING MIN vote_id) AS c FROM voter_1.votes", json!([{"c": "Ann"}])),
            // It runs here as well, and would return the days as they are.
            (
                "SELECT FORMAT(created, 'yyyy-MM') AS m, count(*) AS n FROM voter_1.votes \
                 GROUP BY FORMAT(created, 'yyyy-MM') ORDER BY m",
                json!([{"m": "2018-03", "n": 2}, {"m": "2018-04", "n": 1}]),
            ),
            // A table that the prompt does not show.
            (
                "SELECT concert_name, capacity FROM concert_singer.concert WHERE concert_id = 2",
                json!([{"concert_name": "Super", "capacity": 200}]),
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aggregate_of_an_aggregate_beside_its_group_is_refused_with_what_to_write() {
    let fixture = AnswersFixture::new().await;
    let sql = "SELECT state, max(avg(vote_id)) AS m FROM voter_1.votes GROUP BY state";
    let refused = fixture.result_of(VOTES, sql).await.result;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("compute the inner one in a subquery"), "{refused}");
}

/// The column of one table is not the key of another.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_of_the_table_that_they_name() {
    let fixture = AnswersFixture::new().await;
    for statement in [
        "CREATE SCHEMA kiosk",
        "CREATE TABLE kiosk.buyers (id BIGINT PRIMARY KEY, title VARCHAR, joined DATE)",
        "CREATE TABLE kiosk.orders (id BIGINT PRIMARY KEY, buyer_id BIGINT REFERENCES kiosk.buyers (id), \
         ordered_at TIMESTAMP)",
        "CREATE TABLE kiosk.order_items (id BIGINT PRIMARY KEY, order_id BIGINT REFERENCES kiosk.orders (id), \
         amount BIGINT)",
        "INSERT INTO kiosk.buyers VALUES (1, 'Ann', DATE '2024-01-01'), (2, 'Bob', DATE '2024-01-02')",
        "INSERT INTO kiosk.orders VALUES (1, 2, TIMESTAMP '2024-02-01 10:00:00'), \
         (2, 1, TIMESTAMP '2024-02-02 11:00:00')",
        "INSERT INTO kiosk.order_items VALUES (1, 1, 10), (2, 2, 20), (3, 1, 30)",
    ] {
        fixture.execute(statement).await;
    }
    fixture.engine.catalog().search().index_idle().await.unwrap();
    check_rows(
        &fixture,
        "Titles of kiosk buyers, their orders and order items by amount?",
        &[
            (
                "SELECT b.title, i.amount FROM kiosk.buyers b JOIN kiosk.order_items i ON b.id = i.buyer_id \
                 WHERE i.amount > 15 ORDER BY i.amount",
                json!([{"title": "Ann", "amount": 20}, {"title": "Bob", "amount": 30}]),
            ),
            (
                "SELECT buyers.buyer_id AS b, count(orders.order_id) AS n FROM kiosk.buyers JOIN kiosk.orders ON \
                 buyers.buyer_id = orders.buyer_id GROUP BY buyers.buyer_id ORDER BY 1",
                json!([{"b": 1, "n": 1}, {"b": 2, "n": 1}]),
            ),
            (
                "SELECT title FROM kiosk.buyers JOIN kiosk.orders USING (buyer_id) WHERE orders.id = 1",
                json!([{"title": "Bob"}]),
            ),
            ("SELECT buyer_name AS t FROM kiosk.buyers WHERE id = 1", json!([{"t": "Ann"}])),
            (
                "SELECT title, order_date AS d FROM kiosk.buyers JOIN kiosk.orders ON buyers.id = orders.buyer_id \
                 WHERE orders.id = 1",
                json!([{"title": "Bob", "d": "2024-02-01T10:00:00Z"}]),
            ),
            ("SELECT count(*) AS n FROM kiosk.orders WHERE ordered_at = '2024-02-01'", json!([{"n": 1}])),
            ("SELECT count(*) AS n FROM kiosk.buyers WHERE joined = '31/01/2024' OR title = 'Ann'", json!([{"n": 1}])),
        ],
    )
    .await;
}

/// Keys, names and times that are called otherwise than a model expects.
#[tokio::test(flavor = "multi_thread")]
async fn columns_are_found_by_what_they_are() {
    let fixture = AnswersFixture::new().await;
    for statement in [
        "CREATE SCHEMA campus",
        "CREATE TABLE campus.lecturers (lecturer_id BIGINT PRIMARY KEY, full_name VARCHAR, hired DATE, born DATE)",
        "CREATE TABLE campus.faculties (fac_id BIGINT PRIMARY KEY, title VARCHAR, dean_id BIGINT)",
        "CREATE TABLE campus.students (matric_no BIGINT PRIMARY KEY, full_name VARCHAR)",
        "CREATE TABLE campus.courses (course_code VARCHAR PRIMARY KEY, title VARCHAR, lecturer_id BIGINT REFERENCES \
         campus.lecturers (lecturer_id))",
        "CREATE TABLE campus.exam_results (matric_no BIGINT REFERENCES campus.students (matric_no), course_code VARCHAR \
         REFERENCES campus.courses (course_code), mark BIGINT, sat_on TIMESTAMP)",
        "INSERT INTO campus.lecturers VALUES (1, 'Ines', DATE '2009-09-01', DATE '1970-01-01'), \
         (2, 'Karl', DATE '2015-02-15', DATE '1980-01-01')",
        "INSERT INTO campus.faculties VALUES (1, 'Science', 1), (2, 'Law', 2)",
        "INSERT INTO campus.students VALUES (900, 'Ana'), (901, 'Bo')",
        "INSERT INTO campus.courses VALUES ('P1', 'Optics', 2), ('L1', 'Contracts', 1)",
        "INSERT INTO campus.exam_results VALUES (900, 'P1', 71, TIMESTAMP '2023-06-12 09:00:00'), \
         (900, 'L1', 55, TIMESTAMP '2023-12-04 14:00:00'), (901, 'P1', 38, TIMESTAMP '2024-06-12 09:00:00')",
    ] {
        fixture.execute(statement).await;
    }
    fixture.engine.catalog().search().index_idle().await.unwrap();
    check_rows(
        &fixture,
        "Students, lecturers, courses, faculties and exam results of the campus?",
        &[
            // Neither table has what the join compares.
            (
                "SELECT s.full_name AS n FROM campus.students s JOIN campus.exam_results e ON s.student_id = e.student_id \
                 JOIN campus.courses c ON e.course_id = c.course_id WHERE c.name = 'Contracts'",
                json!([{"n": "Ana"}]),
            ),
            ("SELECT count(DISTINCT student_id) AS n FROM campus.exam_results", json!([{"n": 2}])),
            (
                "SELECT title, (SELECT count(*) FROM campus.exam_results r WHERE r.course_id = c.id) AS n \
                 FROM campus.courses c ORDER BY n DESC LIMIT 1",
                json!([{"title": "Optics", "n": 2}]),
            ),
            (
                "SELECT l.full_name AS n FROM campus.faculties f JOIN campus.lecturers l ON f.dean = l.lecturer_id \
                 WHERE f.name = 'Law'",
                json!([{"n": "Karl"}]),
            ),
            ("SELECT count(*) AS n FROM campus.exam_results WHERE year(exam_date) = 2023", json!([{"n": 2}])),
            ("SELECT count(*) AS n FROM campus.exam_results WHERE year(date) = 2024", json!([{"n": 1}])),
            ("SELECT name AS n FROM campus.faculties WHERE fac_id = 2", json!([{"n": "Law"}])),
            // The name of what a number refers to.
            ("SELECT title FROM campus.courses WHERE lecturer_id = 'Karl'", json!([{"title": "Optics"}])),
            ("SELECT title FROM campus.courses WHERE lecturer = 'ines'", json!([{"title": "Contracts"}])),
        ],
    )
    .await;
    // Of two days nobody knows which is meant, and a birth is no exam.
    for sql in [
        "SELECT max(date) AS d FROM campus.lecturers",
        "SELECT max(birth_date) AS d FROM campus.exam_results",
        "SELECT max(id) AS i FROM campus.courses",
    ] {
        let result = fixture.result_of("Lecturers, courses and exam results of the campus?", sql).await.result;
        assert!(result["error"].is_object(), "{sql}: {result}");
    }
}

/// Tables of two databases whose rows do not belong together.
#[tokio::test(flavor = "multi_thread")]
async fn a_join_over_databases_that_finds_nothing_is_tried_within_one() {
    let fixture = AnswersFixture::new().await;
    for statement in [
        "CREATE SCHEMA north",
        "CREATE SCHEMA south",
        "CREATE TABLE north.depots (id BIGINT, title VARCHAR)",
        "CREATE TABLE north.parcels (id BIGINT, depot_id BIGINT, weight BIGINT)",
        "CREATE TABLE south.parcels (id BIGINT, depot_id BIGINT, weight BIGINT)",
        "INSERT INTO north.depots VALUES (1, 'Pier'), (2, 'Yard')",
        "INSERT INTO north.parcels VALUES (1, 2, 5)",
        "INSERT INTO south.parcels VALUES (1, 900, 7)",
    ] {
        fixture.execute(statement).await;
    }
    fixture.engine.catalog().search().index_idle().await.unwrap();
    check_rows(
        &fixture,
        "Which depots have parcels, and of which weight?",
        &[(
            "SELECT d.title, p.weight FROM north.depots d JOIN south.parcels p ON p.depot_id = d.id",
            json!([{"title": "Yard", "weight": 5}]),
        )],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_short_for_a_value_is_found() {
    run_rows(
        CONCERTS,
        &[
            ("SELECT name FROM concert_singer.singer WHERE country = 'USA'", json!([{"name": "Timbaland"}])),
            (
                "SELECT count(*) AS n FROM concert_singer.singer_in_concert WHERE singer_id IN ('Joe', 'Justin')",
                json!([{"n": 3}]),
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn amounts_are_numbers_and_patterns_mind_no_accents() {
    run_rows(CARS, &[("SELECT count(*) AS n FROM cars_data WHERE horsepower > '$100'", json!([{"n": 2}]))]).await;
    run_rows(WORLD, &[("SELECT code AS c FROM world_1.country WHERE name LIKE 'peru%'", json!([{"c": "PER"}]))]).await;
}

async fn run_rows(question: &str, cases: &[(&str, Value)]) {
    check_rows(&AnswersFixture::new().await, question, cases).await;
}

/// Runs every case and reports all whose rows are others.
async fn check_rows(fixture: &AnswersFixture, question: &str, cases: &[(&str, Value)]) {
    let mut failures = Vec::new();
    for (sql, rows) in cases {
        let result = fixture.result_of(question, sql).await.result;
        if result["rows"] != *rows {
            failures.push(format!("{sql}\n  expected {rows}\n  found {result:#}"));
        }
    }
    assert!(failures.is_empty(), "{} cases:\n{}", failures.len(), failures.join("\n\n"));
}

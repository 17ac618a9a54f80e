//! Counter-checks: what they flag, and that they say nothing of queries that are right.

use serde_json::Value;

use super::AnswersFixture;

/// Tables with what the checks look for: customers with many orders, orders without a customer, times of day.
const SHOP: &[&str] = &[
    "CREATE SCHEMA shop",
    "CREATE TABLE shop.customers (id BIGINT, name VARCHAR, credit BIGINT, city VARCHAR)",
    "CREATE TABLE shop.orders (id BIGINT, customer_id BIGINT, amount BIGINT, placed TIMESTAMP, day DATE, \
     status VARCHAR)",
    "INSERT INTO shop.customers VALUES (1, 'Ann', 100, 'Rome'), (2, 'Bob', 50, 'Oslo'), (3, 'Cem', 10, NULL)",
    "INSERT INTO shop.orders VALUES (1, 1, 5, TIMESTAMP '2024-03-01 10:00:00', DATE '2024-03-01', 'paid'), \
     (2, 1, 7, TIMESTAMP '2024-03-31 18:00:00', DATE '2024-03-31', 'paid'), \
     (3, 2, 7, TIMESTAMP '2024-04-01 09:00:00', DATE '2024-04-01', 'open'), \
     (4, NULL, 1, TIMESTAMP '2024-04-02 09:00:00', DATE '2024-04-02', NULL)",
    "CREATE TABLE shop.lines (id BIGINT, order_id BIGINT, price BIGINT, reduction BIGINT, weight VARCHAR)",
    "INSERT INTO shop.lines VALUES (1, 1, 5, 1, '9'), (2, 1, 8, NULL, '10.5'), (3, 2, 5, 2, '7'), (4, 3, 6, NULL, NULL)",
    "CREATE TABLE shop.stores (id BIGINT PRIMARY KEY, name VARCHAR, town VARCHAR, takings BIGINT)",
    "CREATE TABLE shop.staff (id BIGINT PRIMARY KEY, store_id BIGINT REFERENCES shop.stores (id), name VARCHAR, \
     town VARCHAR, pay BIGINT)",
    "INSERT INTO shop.stores VALUES (1, 'North', 'Oslo', 10), (2, 'South', 'Rome', 20), (3, 'East', 'Rome', 20)",
    "INSERT INTO shop.staff VALUES (1, 2, 'Mia', 'Rome', 4), (2, 2, 'Noa', 'Oslo', 4), (3, 1, 'Ole', 'Oslo', 9), \
     (4, 3, 'Pia', 'Rome', 2)",
    "CREATE TABLE shop.visits (id BIGINT, placed TIMESTAMP, day DATE)",
    "INSERT INTO shop.visits VALUES (1, TIMESTAMP '2023-01-05 10:00:00', DATE '2023-01-31'), \
     (2, TIMESTAMP '2024-01-05 10:00:00', DATE '2024-02-29'), (3, TIMESTAMP '2024-02-29 23:00:00', DATE '2024-03-01')",
    "CREATE TABLE shop.parcels (id BIGINT, state VARCHAR, sent VARCHAR, is_back BOOLEAN, rebate_pct DOUBLE, \
     fee_cents BIGINT)",
    "CREATE TABLE shop.stock_snapshots (item BIGINT, snapshot_date DATE, on_hand BIGINT)",
    "INSERT INTO shop.stock_snapshots VALUES (1, DATE '2024-01-01', 5), (2, DATE '2024-01-01', 7), \
     (1, DATE '2024-02-01', 4), (2, DATE '2024-02-01', 9)",
    "CREATE TABLE shop.silos (product VARCHAR, checked_on DATE, kg_left DOUBLE, kg_taken DOUBLE)",
    "INSERT INTO shop.silos VALUES ('hay', DATE '2024-01-01', 90, 1), ('oats', DATE '2024-01-01', 40, 2), \
     ('hay', DATE '2024-01-02', 80, 3), ('oats', DATE '2024-01-02', 30, 4)",
    "CREATE TABLE shop.repairs (repair_id BIGINT PRIMARY KEY, store_id BIGINT REFERENCES shop.stores (id), cost DOUBLE)",
    "INSERT INTO shop.repairs VALUES (1, 1, 4), (2, 1, 9), (3, 3, NULL)",
    "CREATE TABLE shop.parcel_owners (parcel_id BIGINT, referrer_id BIGINT)",
    "INSERT INTO shop.parcel_owners VALUES (1, 2), (2, NULL)",
    "INSERT INTO shop.parcels VALUES (1, 'sent', '31/01/2024', true, 5, 100), (2, 'SENT', '01/02/2023', false, 10, 250), \
     (3, 'lost ', '15/06/2024', NULL, 0, 300)",
];

/// SQL, and the kinds that are found.
const CASES: &[(&str, &[&str])] = &[
    // Joins that repeat what is summed.
    ("SELECT sum(c.credit) AS s FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id", &["fan_out"]),
    (
        "SELECT c.name, avg(c.credit) AS a, count(*) AS n FROM shop.customers c JOIN shop.orders o ON o.customer_id = \
         c.id GROUP BY c.name",
        &["fan_out"],
    ),
    ("SELECT sum(o.amount) AS s FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id", &[]),
    (
        "SELECT c.name, sum(o.amount) AS s FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id GROUP BY \
         c.name",
        &[],
    ),
    ("SELECT sum(credit) AS s FROM shop.customers", &[]),
    // What is computed of a column is called as the column.
    ("SELECT date_trunc('month', placed) AS placed, sum(amount) AS s FROM shop.orders GROUP BY placed", &["fan_out"]),
    ("SELECT upper(status) AS status, sum(amount) AS s FROM shop.orders WHERE status = 'paid' GROUP BY status", &[]),
    ("SELECT date_trunc('month', placed) AS m, sum(amount) AS s FROM shop.orders GROUP BY 1", &[]),
    ("SELECT count(DISTINCT c.id) AS n FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id", &[]),
    ("SELECT count(c.id) AS n FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id", &["fan_out"]),
    (
        "SELECT c.city, sum(c.credit) AS s FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id GROUP BY 1",
        &["fan_out"],
    ),
    (
        "WITH joined AS (SELECT sum(c.credit) AS s FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id) \
         SELECT s FROM joined",
        &["fan_out"],
    ),
    (
        "SELECT c.name, count(o.id) AS n FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id GROUP BY \
         c.name",
        &[],
    ),
    (
        "SELECT c.name, count(c.id) AS n FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id GROUP BY \
         c.name",
        &[],
    ),
    // Groups by other names, queries within, counts that are called by a table, and what an outer join keeps alone.
    (
        "SELECT upper(c.city) AS place, sum(c.credit) AS s FROM shop.customers c JOIN shop.orders o ON o.customer_id = \
         c.id GROUP BY place",
        &["fan_out"],
    ),
    (
        "SELECT o.status, count(o.id) AS n FROM shop.orders o JOIN shop.lines l ON l.order_id = o.id GROUP BY o.status",
        &["fan_out"],
    ),
    (
        "WITH joined AS (SELECT o.id, o.amount FROM shop.orders o JOIN shop.lines l ON l.order_id = o.id) \
         SELECT sum(amount) AS s FROM joined",
        &["fan_out"],
    ),
    (
        "SELECT sum(amount) AS s FROM (SELECT o.amount FROM shop.orders o JOIN shop.lines l ON l.order_id = o.id) AS t",
        &["fan_out"],
    ),
    (
        "SELECT sum(amount) AS s FROM (SELECT DISTINCT o.id, o.amount FROM shop.orders o JOIN shop.lines l \
         ON l.order_id = o.id) AS t",
        &[],
    ),
    (
        "SELECT c.name, count(*) AS num_orders FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id JOIN \
         shop.lines l ON l.order_id = o.id GROUP BY c.name",
        &["fan_out"],
    ),
    (
        "SELECT c.name, count(*) AS num_orders FROM shop.customers c JOIN shop.orders o ON o.customer_id = c.id GROUP \
         BY c.name",
        &[],
    ),
    (
        "SELECT sum(l.price) AS s FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id AND o.amount > \
         6 LEFT JOIN shop.lines l ON l.order_id = o.id AND l.price > 100",
        &[],
    ),
    // Aggregates that leave rows out, or weigh them otherwise.
    ("SELECT sum(price - reduction) AS s FROM shop.lines", &["nulls"]),
    ("SELECT sum(price - coalesce(reduction, 0)) AS s FROM shop.lines", &[]),
    ("SELECT sum(reduction) AS s FROM shop.lines", &[]),
    ("SELECT count(customer_id) AS n FROM shop.orders", &["nulls"]),
    ("SELECT count(customer_id) AS customers FROM shop.orders", &["fan_out"]),
    ("SELECT count(id) AS n FROM shop.orders", &[]),
    ("SELECT avg(a) AS a FROM (SELECT order_id, avg(price) AS a FROM shop.lines GROUP BY order_id) AS t", &["average"]),
    ("SELECT max(a) AS a FROM (SELECT order_id, avg(price) AS a FROM shop.lines GROUP BY order_id) AS t", &[]),
    ("SELECT avg(a) AS a FROM (SELECT order_id, sum(price) AS a FROM shop.lines GROUP BY order_id) AS t", &[]),
    ("SELECT sum(DISTINCT price) AS s FROM shop.lines", &["average"]),
    ("SELECT sum(DISTINCT id) AS s FROM shop.lines", &[]),
    // Numbers as texts, and texts in another case.
    ("SELECT max(weight) AS w FROM shop.lines", &["text"]),
    ("SELECT id FROM shop.lines WHERE weight > '8'", &["text"]),
    ("SELECT id FROM shop.lines ORDER BY weight", &["text"]),
    ("SELECT max(CAST(weight AS DOUBLE)) AS w FROM shop.lines", &[]),
    ("SELECT max(status) AS s FROM shop.orders", &[]),
    ("SELECT count(*) AS n FROM shop.orders WHERE lower(status) = 'Paid' OR amount > 6", &["literal"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE lower(status) = 'paid' OR amount > 6", &[]),
    ("SELECT count(*) AS n FROM shop.orders WHERE lower(status) >= 'A'", &[]),
    ("SELECT count(*) AS n FROM shop.orders WHERE status LIKE 'PA%' OR amount > 6", &["literal"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE status LIKE 'pa%' OR amount > 6", &[]),
    // Days of times, and months of several years.
    (
        "SELECT count(*) AS n FROM shop.visits WHERE CAST(placed AS DATE) BETWEEN '2024-02-01' AND '2024-02-28'",
        &["period"],
    ),
    ("SELECT count(*) AS n FROM shop.visits WHERE CAST(placed AS DATE) BETWEEN '2024-02-01' AND '2024-02-29'", &[]),
    ("SELECT count(*) AS n FROM shop.visits WHERE month(placed) = 1", &["period"]),
    ("SELECT count(*) AS n FROM shop.visits WHERE month(placed) = 1 AND year(placed) = 2024", &[]),
    ("SELECT month(placed) AS m, count(*) AS n FROM shop.visits GROUP BY month(placed)", &["period"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE month(placed) = 3", &[]),
    ("SELECT id, month(placed) AS m FROM shop.visits", &[]),
    // Nulls.
    (
        "SELECT c.name FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id WHERE o.status IN ('paid')",
        &["fan_out", "nulls"],
    ),
    (
        "SELECT c.name FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id WHERE o.placed >= \
         TIMESTAMP '2024-03-01 00:00:00'",
        &["fan_out", "nulls"],
    ),
    (
        "SELECT c.name FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id WHERE o.status LIKE 'p%'",
        &["fan_out", "nulls"],
    ),
    ("SELECT id FROM shop.orders WHERE status NOT IN (SELECT city FROM shop.customers WHERE id = 1)", &["nulls"]),
    ("SELECT name FROM shop.customers WHERE NOT (id IN (SELECT customer_id FROM shop.orders))", &["nulls"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE status NOT LIKE 'p%'", &["nulls"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE NOT status = 'paid'", &["nulls"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE status = NULL", &["nulls"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE status IS DISTINCT FROM 'paid'", &[]),
    (
        "SELECT c.name, count(*) AS n FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id GROUP BY \
         c.name",
        &["nulls"],
    ),
    (
        "SELECT c.name, count(o.id) AS n FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id \
         GROUP BY c.name",
        &[],
    ),
    (
        "SELECT c.name FROM shop.orders o RIGHT JOIN shop.customers c ON o.customer_id = c.id WHERE o.status = 'paid'",
        &["fan_out", "nulls"],
    ),
    ("SELECT id FROM shop.orders ORDER BY status DESC LIMIT 1", &["nulls"]),
    ("SELECT id FROM shop.orders ORDER BY status DESC NULLS LAST LIMIT 2", &[]),
    ("SELECT name FROM shop.customers WHERE id NOT IN (SELECT customer_id FROM shop.orders)", &["nulls"]),
    (
        "SELECT name FROM shop.customers WHERE id NOT IN (SELECT customer_id FROM shop.orders WHERE customer_id IS NOT \
         NULL)",
        &[],
    ),
    (
        "SELECT name FROM shop.customers WHERE id NOT IN (SELECT customer_id FROM shop.orders UNION ALL SELECT 9)",
        &["nulls"],
    ),
    (
        "SELECT name FROM shop.customers WHERE id NOT IN (SELECT customer_id FROM shop.orders GROUP BY customer_id)",
        &["nulls"],
    ),
    ("SELECT count(*) AS n FROM shop.orders WHERE status <> 'paid'", &["nulls"]),
    ("SELECT count(*) AS n FROM shop.customers WHERE name <> 'Ann'", &[]),
    (
        "SELECT c.name FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id WHERE o.status = 'paid'",
        &["fan_out", "nulls"],
    ),
    ("SELECT c.name FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id WHERE o.id IS NULL", &[]),
    // Texts that no row has.
    ("SELECT count(*) AS n FROM shop.orders WHERE status IN ('paid', 'shipped')", &["literal"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE status = 'paid'", &[]),
    // Days and months.
    ("SELECT count(*) AS n FROM shop.orders WHERE placed BETWEEN '2024-03-01' AND '2024-03-31'", &["period"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE placed >= '2024-03-01' AND placed < '2024-04-01'", &[]),
    ("SELECT count(*) AS n FROM shop.orders WHERE day BETWEEN '2024-03-01' AND '2024-04-01'", &["period"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE day BETWEEN '2024-03-01' AND '2024-03-30'", &["period"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE day BETWEEN '2024-03-01' AND '2024-03-31'", &[]),
    ("SELECT count(*) AS n FROM shop.orders WHERE placed = '2024-03-01' OR amount = 7", &["period"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE placed = '2024-03-01 10:00:00'", &[]),
    ("SELECT count(*) AS n FROM shop.orders WHERE placed >= '2024-03-01' AND placed < '2024-03-31'", &["period"]),
    (
        "SELECT count(*) AS n FROM shop.orders WHERE placed BETWEEN '2024-04-02' AND '2024-04-02' OR amount > 6",
        &["period"],
    ),
    // Limits.
    ("WITH few AS (SELECT amount FROM shop.orders LIMIT 2) SELECT sum(amount) AS s FROM few", &["limit"]),
    ("SELECT name FROM shop.customers WHERE id IN (SELECT customer_id FROM shop.orders LIMIT 2)", &["limit"]),
    ("SELECT name FROM shop.customers WHERE EXISTS (SELECT 1 FROM shop.orders LIMIT 1)", &["condition"]),
    ("SELECT id FROM shop.orders LIMIT 2", &["limit"]),
    ("SELECT id FROM shop.orders ORDER BY id LIMIT 2", &[]),
    ("SELECT id FROM shop.orders ORDER BY amount DESC LIMIT 1", &["limit"]),
    ("SELECT sum(amount) AS s FROM (SELECT amount FROM shop.orders LIMIT 2) AS few", &["limit"]),
    ("SELECT id FROM shop.orders LIMIT 100", &[]),
    // Whole numbers.
    ("SELECT count(status) / count(*) AS share FROM shop.orders", &["division"]),
    ("SELECT 1.0 * count(status) / count(*) AS share FROM shop.orders", &[]),
    ("SELECT sum(if(amount > 6, 1, 0)) / count(*) AS share FROM shop.orders", &["division"]),
    ("SELECT sum((amount > 6)::INT) / count(*) AS share FROM shop.orders", &["division"]),
    ("SELECT sum(if(amount > 6, 1.0, 0)) / count(*) AS share FROM shop.orders", &[]),
    ("SELECT count(amount > 6) AS n FROM shop.orders", &["condition"]),
    ("SELECT count(*) FILTER (WHERE amount > 6) AS n FROM shop.orders", &[]),
    ("SELECT customer_id FROM shop.orders GROUP BY customer_id HAVING count(status) / count(*) > 0.4", &["division"]),
    // Joins by other columns than those that refer to each other, and none at all.
    ("SELECT f.name, s.name FROM shop.staff f JOIN shop.stores s ON s.id = f.id", &["join"]),
    ("SELECT f.name, s.name FROM shop.staff f JOIN shop.stores s ON s.id = f.store_id", &[]),
    ("SELECT f.name, s.name FROM shop.staff f JOIN shop.stores s ON s.town = f.town", &[]),
    ("SELECT f.name, s.name FROM shop.staff f JOIN shop.stores s ON s.id = f.store_id AND s.id <> f.id", &[]),
    ("SELECT name FROM shop.stores WHERE id IN (SELECT id FROM shop.staff WHERE pay > 3)", &["join"]),
    ("SELECT name FROM shop.stores WHERE id IN (SELECT store_id FROM shop.staff WHERE pay > 3)", &[]),
    ("SELECT f.name, s.name FROM shop.staff f, shop.stores s WHERE f.pay > 3", &["join"]),
    ("SELECT f.name, s.name FROM shop.staff f, shop.stores s WHERE f.pay > 3 AND f.store_id = s.id", &[]),
    ("SELECT f.name, s.name FROM shop.staff f, shop.stores s WHERE s.name = 'North'", &[]),
    ("SELECT s.name, count(*) AS n FROM shop.staff f CROSS JOIN shop.stores s GROUP BY s.name", &["join"]),
    ("SELECT a.name, b.name FROM shop.stores a CROSS JOIN shop.stores b", &[]),
    // Lists and counts in which rows come up again.
    ("SELECT s.name FROM shop.stores s JOIN shop.staff f ON f.store_id = s.id", &["fan_out"]),
    ("SELECT DISTINCT s.name FROM shop.stores s JOIN shop.staff f ON f.store_id = s.id", &[]),
    ("SELECT f.name FROM shop.stores s JOIN shop.staff f ON f.store_id = s.id", &[]),
    ("SELECT s.name, f.pay FROM shop.stores s JOIN shop.staff f ON f.store_id = s.id", &[]),
    ("SELECT count(*) AS stores FROM shop.staff", &["fan_out"]),
    ("SELECT count(DISTINCT store_id) AS stores FROM shop.staff", &[]),
    ("SELECT count(town) AS different_towns FROM shop.staff", &["fan_out"]),
    ("SELECT count(*) AS staff FROM shop.staff", &[]),
    // Other aggregates that a join weighs, and sums of keys.
    ("SELECT median(s.takings) AS m FROM shop.stores s JOIN shop.staff f ON f.store_id = s.id", &["fan_out"]),
    (
        "SELECT s.town, sum(s.takings) OVER () AS total FROM shop.stores s JOIN shop.staff f ON f.store_id = s.id WHERE \
         f.pay > 2",
        &["fan_out"],
    ),
    (
        "WITH x AS (SELECT f.town, s.takings FROM shop.stores s JOIN shop.staff f ON f.store_id = s.id) SELECT \
         sum(takings) AS s FROM x",
        &["fan_out"],
    ),
    ("SELECT sum(store_id) AS s FROM shop.staff", &["average"]),
    ("SELECT sum(a) AS s FROM (SELECT store_id, avg(pay) AS a FROM shop.staff GROUP BY store_id) AS t", &["average"]),
    // Conditions that bind otherwise than they read.
    ("SELECT name FROM shop.staff WHERE town = 'Rome' OR town = 'Oslo' AND pay > 5", &["condition"]),
    ("SELECT name FROM shop.staff WHERE (town = 'Rome' OR town = 'Oslo') AND pay > 3", &[]),
    ("SELECT name FROM shop.staff WHERE town = 'Rome' AND pay > 5 OR town = 'Oslo' AND pay > 3", &[]),
    ("SELECT name FROM shop.staff WHERE town <> 'Rome' OR town <> 'Oslo'", &["condition"]),
    ("SELECT name FROM shop.staff WHERE town <> 'Rome' AND town <> 'Paris'", &["literal"]),
    ("SELECT name FROM shop.staff WHERE pay BETWEEN 9 AND 2", &["condition"]),
    ("SELECT name FROM shop.staff WHERE pay BETWEEN 2 AND 9", &[]),
    ("SELECT name FROM shop.stores WHERE EXISTS (SELECT 1 FROM shop.staff WHERE pay > 8)", &["condition"]),
    (
        "SELECT name FROM shop.stores s WHERE EXISTS (SELECT 1 FROM shop.staff f WHERE f.store_id = s.id AND pay > 8)",
        &[],
    ),
    (
        "SELECT a.name, b.name AS other FROM shop.staff a JOIN shop.staff b ON a.town = b.town WHERE a.id <> b.id",
        &["join"],
    ),
    ("SELECT a.name, b.name AS other FROM shop.staff a JOIN shop.staff b ON a.town = b.town WHERE a.id < b.id", &[]),
    ("SELECT name, lag(pay) OVER () AS prior FROM shop.staff", &["limit"]),
    ("SELECT name, lag(pay) OVER (ORDER BY id) AS prior FROM shop.staff", &[]),
    ("SELECT to_char(placed, '%d/%m/%Y') AS d, count(*) AS n FROM shop.visits GROUP BY d ORDER BY d", &["text"]),
    ("SELECT to_char(placed, '%Y-%m') AS m, count(*) AS n FROM shop.visits GROUP BY m ORDER BY m", &[]),
    (
        "SELECT avg(p) AS a FROM (SELECT store_id, 1.0 * sum(pay) / count(*) AS p FROM shop.staff GROUP BY store_id) AS t",
        &["average"],
    ),
    // Ties that a rank has, and nulls that are compared with.
    ("SELECT name FROM shop.stores ORDER BY takings DESC FETCH FIRST 1 ROWS ONLY", &["limit"]),
    ("SELECT name FROM shop.stores ORDER BY takings DESC LIMIT 1 OFFSET 1", &["limit"]),
    ("SELECT name FROM shop.stores ORDER BY takings, name LIMIT 1 OFFSET 1", &[]),
    (
        "SELECT name FROM (SELECT name, row_number() OVER (ORDER BY takings DESC) AS r FROM shop.stores) AS t WHERE \
         r = 1",
        &["limit"],
    ),
    ("SELECT name FROM (SELECT name, rank() OVER (ORDER BY takings DESC) AS r FROM shop.stores) AS t WHERE r = 1", &[]),
    ("SELECT name FROM shop.customers WHERE city = (SELECT city FROM shop.customers WHERE id = 3) OR id = 1", &[]),
    ("SELECT name FROM shop.customers WHERE city <> (SELECT city FROM shop.customers WHERE id = 3)", &["nulls"]),
    ("SELECT name FROM shop.customers WHERE id <> ALL (SELECT customer_id FROM shop.orders)", &["nulls"]),
    // Texts of CASE and of IN, quarters of several years, whole numbers of subqueries.
    ("SELECT sum(CASE status WHEN 'shipped' THEN 1 ELSE 0 END) AS n FROM shop.orders", &["literal"]),
    ("SELECT sum(CASE status WHEN 'paid' THEN 1 ELSE 0 END) AS n FROM shop.orders", &[]),
    ("SELECT count(*) AS n FROM shop.orders WHERE upper(status) IN ('Paid') OR amount > 6", &["literal"]),
    ("SELECT extract(quarter FROM placed) AS q, count(*) AS n FROM shop.visits GROUP BY q", &["period"]),
    ("SELECT to_char(placed, '%B') AS m, count(*) AS n FROM shop.visits GROUP BY m", &["period"]),
    ("SELECT to_char(placed, '%Y-%m') AS m, count(*) AS n FROM shop.visits GROUP BY m", &[]),
    ("SELECT (SELECT count(*) FROM shop.orders) / (SELECT count(*) FROM shop.customers) AS share", &["division"]),
    (
        "WITH a AS (SELECT count(*) AS n FROM shop.orders), b AS (SELECT count(*) AS n FROM shop.customers) SELECT \
         a.n / b.n AS share FROM a, b",
        &["division"],
    ),
    // One value in two spellings.
    ("SELECT count(*) AS n FROM shop.parcels WHERE state = 'sent'", &["literal"]),
    ("SELECT count(*) AS n FROM shop.parcels WHERE state IN ('sent', 'SENT')", &[]),
    ("SELECT count(*) AS n FROM shop.parcels WHERE lower(state) = 'sent'", &[]),
    ("SELECT state, count(*) AS n FROM shop.parcels GROUP BY state", &["literal"]),
    ("SELECT lower(trim(state)) AS s, count(*) AS n FROM shop.parcels GROUP BY 1", &[]),
    // Days that are kept as texts.
    ("SELECT max(sent) AS d FROM shop.parcels", &["text"]),
    ("SELECT id FROM shop.parcels ORDER BY sent", &["text"]),
    ("SELECT id FROM shop.parcels WHERE sent > '01/06/2023'", &["text"]),
    ("SELECT id, sent FROM shop.parcels ORDER BY id", &[]),
    // Truth values that are not there, and rows of an outer join that are counted in other words.
    ("SELECT id FROM shop.parcels WHERE NOT is_back", &["nulls"]),
    ("SELECT id FROM shop.parcels WHERE is_back IS NOT TRUE", &[]),
    (
        "SELECT c.name, count(1) AS n FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id GROUP BY \
         c.name",
        &["nulls"],
    ),
    (
        "SELECT c.name, count(c.name) AS n FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id GROUP \
         BY c.name",
        &["nulls"],
    ),
    // Percentages that are taken for shares, and cents for dollars.
    ("SELECT id FROM shop.parcels WHERE rebate_pct > 0.05", &["condition"]),
    ("SELECT id FROM shop.parcels WHERE rebate_pct > 5", &[]),
    ("SELECT sum(fee_cents * (1 - rebate_pct)) AS s FROM shop.parcels", &["condition"]),
    ("SELECT sum(fee_cents * (1 - rebate_pct / 100)) AS s FROM shop.parcels", &[]),
    ("SELECT sum(fee_cents) AS dollars FROM shop.parcels", &["condition"]),
    ("SELECT sum(fee_cents) / 100.0 AS dollars FROM shop.parcels", &[]),
    // States of several days that are added up, and a count that says what it counts in another form.
    ("SELECT sum(on_hand) AS stock FROM shop.stock_snapshots", &["fan_out"]),
    ("SELECT snapshot_date, sum(on_hand) AS stock FROM shop.stock_snapshots GROUP BY snapshot_date", &[]),
    ("SELECT sum(on_hand) AS stock FROM shop.stock_snapshots WHERE snapshot_date = DATE '2024-02-01'", &[]),
    ("SELECT count(referrer_id) AS referred FROM shop.parcel_owners", &[]),
    ("SELECT count(referrer_id) AS n FROM shop.parcel_owners", &["nulls"]),
    // A state of each thing and day, by the name of its column and the rows that there are.
    ("SELECT sum(kg_left) AS kg FROM shop.silos", &["fan_out"]),
    ("SELECT sum(kg_left) AS kg FROM shop.silos WHERE checked_on = DATE '2024-01-02'", &[]),
    ("SELECT sum(kg_taken) AS kg FROM shop.silos", &[]),
    ("SELECT product, avg(kg_left) AS kg FROM shop.silos GROUP BY product", &[]),
    // The id of a table in the place of what refers to it.
    ("SELECT count(*) AS n FROM shop.stores s JOIN shop.repairs r ON r.repair_id = s.id", &["join"]),
    ("SELECT count(*) AS n FROM shop.stores s JOIN shop.repairs r ON r.store_id = s.id", &[]),
    // A group in no order.
    ("SELECT store_id, count(*) AS n FROM shop.staff GROUP BY store_id LIMIT 1", &["limit"]),
    // Rows without a value are no part of a share of those with one.
    ("SELECT 100.0 * sum(CASE WHEN cost > 5 THEN 1 ELSE 0 END) / count(cost) AS pct FROM shop.repairs", &[]),
    ("SELECT count(cost) AS n FROM shop.repairs", &["nulls"]),
    // Equal rows that UNION leaves out of a sum, and an average of averages of a query without a name.
    ("SELECT sum(x) AS s FROM (SELECT amount AS x FROM shop.orders UNION SELECT pay FROM shop.staff)", &["average"]),
    ("SELECT sum(x) AS s FROM (SELECT amount AS x FROM shop.orders UNION ALL SELECT pay FROM shop.staff)", &[]),
    ("SELECT sum(x) AS s FROM (SELECT id, amount AS x FROM shop.orders UNION SELECT id, pay FROM shop.staff)", &[]),
    ("SELECT count(*) AS n FROM (SELECT amount AS x FROM shop.orders UNION SELECT pay FROM shop.staff)", &[]),
    ("SELECT avg(a) FROM (SELECT store_id, avg(pay) AS a FROM shop.staff GROUP BY store_id)", &["average"]),
    // A price that comes up for each quantity, of which only the price is repeated, and what is added to it.
    ("SELECT sum(l.price * o.amount) AS s FROM shop.lines l JOIN shop.orders o ON o.id = l.order_id", &[]),
    ("SELECT sum(l.price + o.amount) AS s FROM shop.lines l JOIN shop.orders o ON o.id = l.order_id", &["fan_out"]),
    (
        "SELECT sum(CASE WHEN o.status = 'paid' THEN l.price ELSE 0 END) AS s FROM shop.lines l JOIN shop.orders o \
         ON o.id = l.order_id",
        &[],
    ),
    (
        "SELECT sum(CASE WHEN l.price > 1 THEN o.amount ELSE 0 END) AS s FROM shop.lines l JOIN shop.orders o \
         ON o.id = l.order_id",
        &["fan_out"],
    ),
    // Whole numbers that a subquery sums.
    ("SELECT sum(amount) * 100 / (SELECT sum(credit) FROM shop.customers) AS s FROM shop.orders", &["division"]),
    ("SELECT sum(amount) * 100.0 / (SELECT sum(credit) FROM shop.customers) AS s FROM shop.orders", &[]),
    // Bounds that no row is within.
    ("SELECT count(*) AS n FROM shop.orders WHERE amount < 2 AND status = 'paid' AND amount > 6", &["condition"]),
    ("SELECT count(*) AS n FROM shop.orders WHERE amount > 2 AND status = 'paid' AND amount < 6", &[]),
    // A table that is joined twice by the same column.
    (
        "SELECT s.name, a.town, b.town AS other FROM shop.staff s JOIN shop.stores a ON a.id = s.store_id JOIN \
         shop.stores b ON b.id = s.store_id",
        &["join"],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn checks_speak_only_of_what_is_wrong() {
    let fixture = AnswersFixture::new().await;
    for statement in SHOP {
        fixture.execute(statement).await;
    }
    let mut failures = Vec::new();
    for (sql, expected) in CASES {
        let result = fixture.result_of("What did the shop's customers order?", sql).await.result;
        let found: Vec<&str> =
            result["checks"].as_array().into_iter().flatten().filter_map(|check| check["kind"].as_str()).collect();
        if found != *expected || result.get("rows").is_none_or(Value::is_null) {
            failures.push(format!("{sql}\n  expected {expected:?}, found {found:?}: {result}"));
        }
    }
    assert!(failures.is_empty(), "{} cases:\n{}", failures.len(), failures.join("\n\n"));
}

//! Numbers of an answer are linked to cells; wrong ones are caught. Five hundred are planted in answers of a scripted
//! model, beside as many that are right.

use querent_agent::{EventKind, ProofLink, ProofOrigin};
use querent_tests::script::run_sql;
use serde_json::{Value, json};

use super::AnswersFixture;

const QUESTION: &str = "How many flights did each airline operate, and with which delay?";
/// Rows of one result: a name, a count, a mean, a day.
const ROWS: [(&str, i64, f64, &str); 6] = [
    ("United Air Lines", 58_665, 12.11, "2013-01-14"),
    ("JetBlue Airways", 54_635, 13.02, "2013-02-21"),
    ("ExpressJet", 54_173, 19.96, "2013-03-05"),
    ("Delta Air Lines", 48_110, 9.26, "2013-04-17"),
    ("American Airlines", 32_729, 8.59, "2013-05-29"),
    ("Envoy Air", 26_397, 10.55, "2013-06-08"),
];

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_planted_numbers_are_caught() {
    let fixture = AnswersFixture::new().await;
    let (mut caught, mut planted, mut alarms, mut right) = (Vec::new(), 0, Vec::new(), 0);
    let mut random = SeededNumbers(4242);
    for run in 0..50 {
        let sentences: Vec<(String, String, bool)> =
            (0..20).map(|index| sentence(&mut random, run, index % 2 == 1)).collect();
        let text: Vec<&str> = sentences.iter().map(|(text, _, _)| text.as_str()).collect();
        let events = fixture.ask(QUESTION, turns(&table(), &text.join("\n"))).await;
        let (said, links) = answer(&events);
        // Sentence by sentence, in order: a corrected sentence has other words.
        let mut lines = Vec::new();
        let mut start = 0;
        for line in said.split('\n') {
            let end = start + line.chars().count();
            lines.push(links.iter().filter(|link| link.start >= start && link.end <= end).collect::<Vec<_>>());
            start = end + 1;
        }
        assert_eq!(lines.len(), sentences.len(), "{said}");
        for ((text, number, is_wrong), links) in sentences.iter().zip(lines) {
            let doubted = links.iter().any(|link| match &link.origin {
                ProofOrigin::Unproven => link.text == *number,
                ProofOrigin::Cell { corrected_from: Some(written), .. } => written == number,
                _ => false,
            });
            let alarm = links.iter().any(|link| {
                matches!(link.origin, ProofOrigin::Unproven | ProofOrigin::Cell { corrected_from: Some(_), .. })
            });
            if *is_wrong {
                planted += 1;
                if !doubted {
                    caught.push(format!("{text} [{number}] {links:?}"));
                }
            } else {
                right += 1;
                if alarm {
                    alarms.push(format!("{text} {links:?}"));
                }
            }
        }
    }
    println!("planted {planted}, missed {}; right {right}, false alarms {}", caught.len(), alarms.len());
    assert_eq!((planted, right), (500, 500));
    assert!(caught.is_empty(), "missed {}:\n{}", caught.len(), caught.join("\n"));
    assert!(alarms.len() * 100 <= right, "false alarms {}:\n{}", alarms.len(), alarms.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_contradicts_its_only_cell_is_corrected() {
    let fixture = AnswersFixture::new().await;
    let sql = "SELECT count(*) AS n FROM voter_1.votes WHERE state = 'CA'";
    let events = fixture.ask("How many votes of CA?", turns(sql, "There are 7 votes.")).await;
    let (text, links) = answer(&events);
    assert_eq!(text, "There are 2 votes.");
    let [link] = links.as_slice() else { panic!("{links:?}") };
    assert_eq!((link.start, link.end, link.text.as_str()), (10, 11, "2"));
    let ProofOrigin::Cell { cell, value, corrected_from } = &link.origin else { panic!("{link:?}") };
    assert_eq!((cell.call_index, cell.row, cell.column.as_str()), (0, 0, "n"));
    assert_eq!((value, corrected_from.as_deref()), (&json!(2), Some("7")));
    // What streams is what stands in the answer.
    let streamed: String = events
        .iter()
        .filter_map(|event| match event {
            EventKind::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(streamed, text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_of_the_question_is_no_proof_of_what_was_found() {
    let fixture = AnswersFixture::new().await;
    for (text, is_wrong) in [
        ("There are 30 rows.", true),
        ("The number of rows is 30.", true),
        ("2 rows are above 30.", false),
        ("There are 2 rows above 30.", false),
        ("With more than 30 there are two.", false),
    ] {
        let (_, links) = answer(&fixture.ask("How many rows are above 30?", turns(ABOVE_30, text)).await);
        let is_doubted = links.iter().any(|link| {
            matches!(link.origin, ProofOrigin::Unproven | ProofOrigin::Cell { corrected_from: Some(_), .. })
        });
        assert_eq!(is_doubted, is_wrong, "{text} {links:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_claim_is_left_as_it_is() {
    let fixture = AnswersFixture::new().await;
    for (sql, text) in [
        (ORDERS, "I looked at 1 table and found 48,213 orders."),
        (ORDERS, "As of version 2.1 of the schema, there are 48,213 orders."),
        (ORDERS, "There are more than 47,000 orders."),
        // As the model reads a result.
        (DELAY, "avg_delay_minutes\n37.4582\n(1 row)"),
        (REVENUE, "Revenue grew 30 % between 2021 and 2022."),
        (REVENUE, "Revenue grew 31 % in 2022."),
    ] {
        let (said, _) = answer(&fixture.ask(QUESTION, turns(sql, text)).await);
        assert_eq!(said, text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_number_is_proven_by_is_said() {
    let fixture = AnswersFixture::new().await;
    for (text, number, origin) in [
        ("United Air Lines operated 58,665 flights.", "58,665", "cell"),
        ("About 58.7 thousand flights were United Air Lines.", "58.7", "cell"),
        ("In total there were 274,709 flights.", "274,709", "expression"),
        ("United Air Lines had 4,030 more flights than JetBlue Airways.", "4,030", "expression"),
        ("United Air Lines has a share of 21.4 %.", "21.4", "expression"),
        ("There are 6 airlines.", "6", "row_count"),
        ("United Air Lines began on January 14, 2013.", "January 14, 2013", "cell"),
        ("United Air Lines was delayed by 12 minutes on average.", "12", "cell"),
        ("Some 999 flights were lost.", "999", "unproven"),
    ] {
        let (_, links) = answer(&fixture.ask(QUESTION, turns(&table(), text)).await);
        let found = links.iter().find(|link| link.text == number).map(|link| json!(link.origin)["origin"].clone());
        assert_eq!(found, Some(json!(origin)), "{text} {links:?}");
    }
}

const ABOVE_30: &str = "SELECT count(*) AS n FROM (VALUES (1), (40), (50)) AS t(x) WHERE x > 30";

/// Regions with orders, revenue, a share as a fraction, and a day.
const REGIONS: &str = "SELECT * FROM (VALUES ('North', 1284, 45210.75, 0.125, DATE '2024-02-03'), \
                       ('South', 642, 30112.5, 0.25, DATE '2024-01-17'), ('East', 321, 12999.99, 0.0625, \
                       DATE '2024-03-30'), ('West', 963, 41000.0, 0.081, DATE '2024-05-01'), \
                       ('Central', 5, 812.4, 0.4, DATE '2024-04-11')) \
                       AS t(region, orders, revenue, return_rate, first_order)";
const ON_TIME: &str = "SELECT 0.87 AS pct_on_time";
const YEARS: &str = "SELECT * FROM (VALUES (2021, 60), (2022, 120), (2023, 120), (2024, 90)) AS t(year, sales)";

/// Cities: people, area, a share as a fraction, and a day.
const CITIES: &str = "SELECT * FROM (VALUES ('Berlin', 3645000, 891.7, 0.0531, DATE '1920-10-01'), \
                      ('Hamburg', 1841000, 755.2, 0.0412, DATE '1937-04-01'), \
                      ('Munich', 1472000, 310.7, 0.0287, DATE '1158-06-14'), \
                      ('Cologne', 1086000, 405.0, 0.0698, DATE '1815-04-05'), \
                      ('Frankfurt', 753000, 248.3, 0.0333, DATE '1866-10-08')) \
                      AS t(city, population, area_km2, unemployment_rate, founded)";
const ORDERS: &str = "SELECT 48213 AS orders";
const DELAY: &str = "SELECT 37.4582 AS avg_delay_minutes";
const FLIGHTS: &str = "SELECT 336776 AS flights, 8255 AS cancelled, TIMESTAMP '2013-07-01 17:30:00' AS busiest_hour";
const REVENUE: &str = "SELECT * FROM (VALUES (2019, 1250000.0), (2020, 980000.0), (2021, 1470000.0), \
                       (2022, 1911000.0)) AS t(year, revenue)";
const STAFF: &str = "SELECT * FROM (VALUES ('Sales', 42, 61250.5), ('Engineering', 118, 88420.0), \
                     ('Support', 25, 43800.25), ('Legal', 6, 102300.0)) AS t(department, employees, avg_salary)";
const MEANS: &str = "SELECT * FROM (VALUES ('Card', 620, 0.62), ('Cash', 310, 0.31), ('Voucher', 70, 0.07)) \
                     AS t(method, payments, share)";
const PROFITS: &str = "SELECT * FROM (VALUES ('Acme', 1234567.89, -45210.1), ('Globex', 987654.32, 120450.75), \
                       ('Initech', 456789.01, -3100.0)) AS t(company, revenue, profit)";
const WINTER: &str = "SELECT * FROM (VALUES ('January', -4.2), ('February', -1.8), ('July', 23.9)) AS t(month, mean)";
const BIRTHS: &str = "SELECT 2013 AS year, 4 AS month, 517 AS births";
const AGES: &str =
    "SELECT * FROM (VALUES ('Alice Moreau', 34), ('Bob Tanaka', 51), ('Carla Ruiz', 29)) AS t(name, age)";

const QUARTERS: &str = "SELECT * FROM (VALUES (2025, 4, 1200), (2026, 1, 1080), (2026, 2, 1350)) AS \
                        t(year, quarter, revenue_keur)";
const RACE: &str = "SELECT * FROM (VALUES (1, 'Vos', 11812, 'Visma'), (2, 'Kopecky', 11815, 'Wiebes'), (3, 'Longo', 11829, \
                    'Telekom')) AS t(position, rider, time_s, team)";

/// A query, a sentence that its rows prove, and one that they do not: bounds and rounded numbers, months and years, counts
/// of rows, places in tables, forms of numbers, and numbers that are no claim.
const WORDINGS: &[(&str, &str, &str)] = &[
    (ORDERS, "There are more than 48,000 orders.", "There are more than 49,000 orders."),
    (ORDERS, "There are over 48,000 orders in all.", "There are under 48,000 orders in all."),
    (ORDERS, "Nearly 50,000 orders were placed.", "Nearly 60,000 orders were placed."),
    (ORDERS, "- Orders: 48 213", "- Orders: 48 312"),
    (ORDERS, "I looked at 1 table and found 48,213 orders.", "I looked at 1 table and found 48,123 orders."),
    (ORDERS, "As of version 2.1 there are 48,213 orders.", "As of version 2.1 there are 84,213 orders."),
    (DELAY, "The average delay is less than 40 minutes: 37.5.", "The average delay is less than 40 minutes: 35.7."),
    (DELAY, "Flights were delayed by about 40 minutes.", "Flights were delayed by about 38 minutes."),
    (DELAY, "Der Mittelwert ist 37,46 Minuten.", "Der Mittelwert ist 37,64 Minuten."),
    (FLIGHTS, "The busiest hour was 5:30 PM on 1 July 2013.", "The busiest hour was 3:30 PM on 1 July 2013."),
    (FLIGHTS, "That leaves 328,521 flights that were not cancelled.", "That leaves 328,251 flights."),
    (FLIGHTS, "One in 41 flights was cancelled.", "One in 14 flights was cancelled."),
    (CITIES, "Munich (1,472,000) is larger than Cologne (1,086,000).", "Munich (1,086,000) beats Cologne (1,472,000)."),
    (CITIES, "Munich dates from 1158.", "Munich dates from 1185."),
    (CITIES, "Hamburg was founded in April 1937.", "Hamburg was founded in May 1937."),
    (CITIES, "Frankfurt has the smallest area, 248.3 km2.", "Frankfurt has the smallest area, 284.3 km2."),
    (
        CITIES,
        "Four of the five cities have more than a million inhabitants by population.",
        "Three of the five cities have more than a million inhabitants by population.",
    ),
    (CITIES, "Two cities have more than 700 km² of area.", "Three cities have more than 700 km² of area."),
    (CITIES, "| 1 | Berlin | 891.7 |\n| 2 | Hamburg | 755.2 |", "| 1 | Berlin | 891.7 |\n| 2 | Hamburg | 775.2 |"),
    (
        CITIES,
        "Here are the top 3 cities, from Berlin with 3,645,000.",
        "Here are the top 3, from Berlin with 3,465,000.",
    ),
    (
        CITIES,
        "The rate of Cologne is 1.67 percentage points above Berlin's.",
        "The rate of Cologne is 2.67 percentage points above Berlin's.",
    ),
    (
        CITIES,
        "Both Berlin and Hamburg have more than 1.5 million.",
        "Both Berlin and Munich have more than 1.5 million.",
    ),
    (
        CITIES,
        "None of the cities has more than 4 million people.",
        "None of the cities has more than 3 million people.",
    ),
    (
        CITIES,
        "Cologne and Frankfurt have no more than 1.1 million people.",
        "Berlin and Hamburg have no more than 1.1 million people.",
    ),
    (CITIES, "The total population is more than 8 million.", "The total population is less than 1 million."),
    (CITIES, "Every city has more than 700,000 people.", "Every city has more than 800,000 people."),
    (REVENUE, "In 2020 revenue was about 1,000,000.", "In 2021 revenue was about 1,000,000."),
    (REVENUE, "Revenue grew 30 % between 2021 and 2022.", "Revenue grew 23 % between 2021 and 2022."),
    (REVENUE, "2022's revenue is 53% higher than that of 2019.", "2022's revenue is 35% higher than that of 2019."),
    (STAFF, "Sales makes up 22 % of the staff.", "Sales makes up 42 % of the staff."),
    (STAFF, "Step 1: count. Engineering comes first with 118.", "Step 1: count. Engineering comes first with 181."),
    (MEANS, "Vouchers account for just 7% of payments.", "Vouchers account for just 70% of payments."),
    (MEANS, "Cash was used about three hundred times.", "Card was used six hundred times."),
    (MEANS, "Of 1,000 payments, 310 were in cash.", "Of 1,000 payments, 130 were in cash."),
    (MEANS, "The 3 methods are card, cash and voucher.", "The 4 methods are card, cash and voucher."),
    (PROFITS, "Acme made $1.2 million but lost $45,210.10.", "Acme made $1.2 million but lost $54,210.10."),
    (PROFITS, "Initech lost about 3.1 thousand.", "Initech lost about 31 thousand."),
    (WINTER, "It was minus 4.2 degrees in January.", "It was minus 4.8 degrees in January."),
    (WINTER, "July was 28.1 degrees warmer than January.", "July was 19.7 degrees warmer than January."),
    (BIRTHS, "In April 2013 there were 517 births.", "In May 2013 there were 517 births."),
    (AGES, "Alice Moreau turned thirty-four.", "Alice Moreau turned forty-three."),
    (AGES, "Bob is 17 years older than Alice.", "Bob is 71 years older than Alice."),
];

/// A query, a sentence that its rows prove, and one that they do not.
const PAIRS: &[(&str, &str, &str)] = &[
    (REGIONS, "North and South had 1284 and 642 orders, respectively.", "North and South had 642 and 1284 orders."),
    (REGIONS, "Central and North had 5 and 1284 orders.", "Central and North had 1284 and 5 orders, respectively."),
    (REGIONS, "North has a return rate of 12.5 %.", "North has a return rate of 0.125 %."),
    (REGIONS, "In East, 6.25% of orders came back.", "In East, 7.25% of orders came back."),
    (REGIONS, "North ranks first by orders.", "North ranks second by orders."),
    (REGIONS, "West came in 2nd place by orders.", "West came in 3rd place by orders."),
    (REGIONS, "South is number 3 by orders.", "South is number 4 by orders."),
    (REGIONS, "East had 642 fewer orders than West.", "East had 644 fewer orders than West."),
    (REGIONS, "West has a share of 30.0 % of all orders.", "West has a share of 31.7 % of all orders."),
    (REGIONS, "Central has a share of 0.2 % of all orders.", "Central has a share of 1.9 % of all orders."),
    (REGIONS, "North had four times as many orders as East.", "North had three times as many orders as South."),
    (REGIONS, "South had half as many orders as North.", "East had half as many orders as North."),
    (REGIONS, "North had twice as many orders as South.", "North had twice as many orders as West."),
    (REGIONS, "Central had only five orders.", "Central had a dozen orders."),
    (REGIONS, "East started on 03/30/2024.", "East started on 05/01/2024."),
    (REGIONS, "The first order of West came on May 1, 2024.", "The first order of West came on May 2, 2024."),
    (ON_TIME, "87% of the flights were on time.", "78% of the flights were on time."),
    (YEARS, "Sales doubled from 2021 to 2022.", "Sales tripled from 2021 to 2022."),
    (YEARS, "From 2021 to 2022 sales doubled.", "From 2022 to 2023 sales doubled."),
    (YEARS, "Sales fell by 25 % from 2023 to 2024.", "Sales fell by 30 % from 2023 to 2024."),
    (YEARS, "Sales grew by 100 % in 2022.", "Sales grew by 50 % in 2022."),
    (YEARS, "Over the four years there were 390 sales.", "Over the four years there were 380 sales."),
    (YEARS, "The change from 2023 to 2024 was -30.", "The change from 2023 to 2024 was -20."),
    ("SELECT 17 AS cases, 42.6 AS mean_minutes", "17 cases of 42.6 minutes.", "17 cases of 42.6 hours."),
    (
        "SELECT 17 AS cases, 42.6 AS mean_minutes",
        "All cases together took about 724 minutes.",
        "All cases together took about 924 minutes.",
    ),
    ("SELECT 11812 AS winner_s", "The winner took 3 h 16 min 52 s.", "The winner took 3 h 26 min 52 s."),
    ("SELECT 214 AS left_us, 5350 AS clients", "5,136 clients stayed.", "5,163 clients stayed."),
    ("SELECT 1.0842 AS rate", "Der Kurs ist 1,0842.", "Der Kurs ist 1,0824."),
    (QUARTERS, "Revenue fell by 10 % in Q1 2026.", "Revenue fell by 12 % in Q1 2026."),
    (QUARTERS, "In Q2 2026 we made 1.35 million euros.", "In Q2 2026 we made 1.35 billion euros."),
    (RACE, "Kopecky finished 3 seconds behind the winner.", "Kopecky finished 5 seconds behind the winner."),
    (RACE, "Vos came first and Kopecky second.", "Kopecky won and Vos came second."),
    (RACE, "The second, Kopecky, rides for Wiebes.", "The second, Kopecky, rides for Visma."),
    ("SELECT 1.97 AS avg_items", "An order has about two items.", "An order has two items."),
    ("SELECT 36.9 AS avg_minutes", "A call takes thirty-seven minutes.", "A call takes thirty-six minutes."),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_rows_is_counted_again() {
    let fixture = AnswersFixture::new().await;
    let mut failures = Vec::new();
    for (sql, proven, wrong) in PAIRS.iter().chain(WORDINGS) {
        for (text, is_wrong) in [(proven, false), (wrong, true)] {
            let (_, links) = answer(&fixture.ask("How did the regions sell?", turns(sql, text)).await);
            let is_doubted = links.iter().any(|link| {
                matches!(link.origin, ProofOrigin::Unproven | ProofOrigin::Cell { corrected_from: Some(_), .. })
            });
            if is_doubted != is_wrong {
                failures.push(format!("{text} {links:?}"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        (PAIRS.len() + WORDINGS.len()) * 2,
        failures.join("\n")
    );
}

fn table() -> String {
    let rows: Vec<String> =
        ROWS.iter().map(|(name, count, mean, day)| format!("('{name}', {count}, {mean}, DATE '{day}')")).collect();
    format!("SELECT * FROM (VALUES {}) AS t(airline, flights, delay, first_day)", rows.join(", "))
}

fn turns(sql: &str, text: &str) -> Value {
    json!([{ "events": [run_sql(sql)] }, { "events": [{ "text": text }] }])
}

fn answer(events: &[EventKind]) -> (String, Vec<ProofLink>) {
    let found = events.iter().find_map(|event| match event {
        EventKind::AnswerFinal(answer) => Some((answer.text.clone(), answer.proof.clone())),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no answer: {events:?}"))
}

/// Returns a sentence, the number of it that counts, and whether that is wrong.
fn sentence(random: &mut SeededNumbers, run: usize, is_wrong: bool) -> (String, String, bool) {
    let row = random.below(ROWS.len());
    let (name, count, mean, day) = ROWS[row];
    let other = (row + 1 + random.below(ROWS.len() - 1)) % ROWS.len();
    let total: i64 = ROWS.iter().map(|row| row.1).sum();
    // Wrong ones: another row's, a digit changed, a figure made up.
    let wrong_count = match random.below(3) {
        0 => ROWS[other].1,
        1 => count + 10i64.pow(u32::try_from(random.below(4)).unwrap()),
        _ => 1_000 + i64::try_from(random.below(20_000)).unwrap(),
    };
    let wrong_mean = if random.below(2) == 0 { ROWS[other].2 } else { mean + 0.5 };
    let count = if is_wrong { wrong_count } else { count };
    let (number, text) = match (run + random.below(8)) % 8 {
        0 => (grouped(count), format!("{name} operated {} flights.", grouped(count))),
        1 => (count.to_string(), format!("- {name}: {count}")),
        2 => (grouped(count), format!("With {} flights, {name} is in the list.", grouped(count))),
        3 => {
            let mean = if is_wrong { wrong_mean } else { mean };
            (format!("{mean:.2}"), format!("The mean delay of {name} was {mean:.2} minutes."))
        }
        4 => {
            let total = if is_wrong { total + 1_000 + i64::try_from(random.below(9_000)).unwrap() } else { total };
            (grouped(total), format!("In total there were {} flights.", grouped(total)))
        }
        5 => {
            let (most, least) = (ROWS[0].1, ROWS[5].1);
            let gap = most - least + if is_wrong { 77 } else { 0 };
            (grouped(gap), format!("The gap between the first and the last is {} flights.", grouped(gap)))
        }
        6 => {
            let day = if is_wrong { ROWS[other].3 } else { day };
            (day.to_owned(), format!("The first day of {name} was {day}."))
        }
        _ => (grouped(count), format!("{name} had {} flights and is known for them.", grouped(count))),
    };
    (text, number, is_wrong)
}

/// Writes a number with commas.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A generator of numbers, the same in every run.
struct SeededNumbers(u64);

impl SeededNumbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

//! Words for what the data calls otherwise: synonyms, units for what they measure, and names that say nothing.

use super::tests::{TestSchema, vocabulary};
use super::{GapKind, QuestionGaps, Vocabulary, gaps_of, is_opaque_name, unfiltered_words};

#[test]
fn other_words_for_the_same_thing_are_explained() {
    const GYM: TestSchema = TestSchema {
        tables: &[
            ("members", "member_id full_name joined plan city"),
            ("visits", "visit_id member_id checked_in checked_out branch"),
            ("trainers", "trainer_id full_name hourly_rate specialty"),
        ],
        values: "Gold Basic Downtown Harbour Yoga Boxing",
    };
    const FARM: TestSchema = TestSchema {
        tables: &[
            ("fields", "field_id name hectares soil"),
            ("harvests", "harvest_id field_id crop tonnes harvested_on"),
            ("tractors", "tractor_id maker model engine_hours purchased price"),
        ],
        values: "Hill Top River Side clay loam wheat maize John Deere Fendt",
    };
    const CINEMA: TestSchema = TestSchema {
        tables: &[
            ("films", "film_id title director released runtime_min genre"),
            ("screenings", "screening_id film_id hall shown_at tickets_sold ticket_price"),
        ],
        values: "Alien Up Horror Animation Red Blue",
    };
    const STORE: TestSchema = TestSchema {
        tables: &[("buyers", "id name city signup"), ("orders", "id buyer_id ordered_at status total discount")],
        values: "shipped cancelled Berlin Paris",
    };
    const HARBOR: TestSchema = TestSchema {
        tables: &[
            ("port_calls", "call_id imo berth_id arrived_at departed_at dues_eur"),
            ("berths", "berth_id code depth_m"),
            ("cargo", "cargo_id call_id commodity tons operation"),
        ],
        values: "unload grain",
    };
    const FOREST: TestSchema = TestSchema {
        tables: &[
            ("parcels", "parcel_id name dominant_species hectares owner"),
            ("fires", "fire_id parcel_id ignited_on burned_hectares cause"),
            ("crews", "crew_id crew_name members"),
        ],
        values: "pine lightning Hotshots",
    };
    const STAGE: TestSchema = TestSchema {
        tables: &[
            ("concerts", "concert_id title held_on hall tickets_sold"),
            ("pieces", "piece_id title composer minutes"),
            ("pours", "pour_id beer_id poured_at liters"),
        ],
        values: "Bolero Ravel",
    };
    let asked = |schema: &TestSchema, question: &str| {
        gaps_of(question, &vocabulary(schema)).asked.into_iter().map(|gap| gap.phrase).collect::<Vec<_>>()
    };
    for (schema, question) in [
        (&HARBOR, "What is the average fee per call?"),
        (&HARBOR, "How much money did the harbor make?"),
        (&HARBOR, "Which docks are deeper than 10 meters?"),
        (&HARBOR, "Which goods were unloaded?"),
        (&HARBOR, "How much freight was handled in total?"),
        (&FOREST, "What is the average size of a fire?"),
        (&FOREST, "Which wildfires burned more than 100 hectares?"),
        (&FOREST, "What trees grow in Sunset?"),
        (&FOREST, "Which team is the largest?"),
        (&STAGE, "Which venue hosted the most concerts?"),
        (&STAGE, "What is the total duration of all pieces?"),
        (&STAGE, "What volume did we pour in March?"),
        (&STAGE, "How many drinks were served?"),
        (&GYM, "Which coach charges the most per hour?"),
        (&GYM, "Which instructors teach boxing?"),
        (&GYM, "How many clients live in Lisbon?"),
        (&GYM, "Which location is visited most often?"),
        (&FARM, "How many vehicles did we buy from Fendt?"),
        (&FARM, "How many acres of clay ground are there?"),
        (&CINEMA, "Which movies run longer than 100 minutes?"),
        (&CINEMA, "Which room sold the most seats?"),
        (&STORE, "What was the revenue per month in 2024?"),
        (&STORE, "How many sales were there in February 2024?"),
    ] {
        assert_eq!(asked(schema, question), [""; 0], "{question}");
    }
    assert_eq!(asked(&GYM, "How many calories did the members burn?"), ["calories"]);
    assert_eq!(asked(&FARM, "How many cows do we own?"), ["cows"]);
    assert_eq!(asked(&CINEMA, "How much popcorn was sold?"), ["popcorn"]);
    assert_eq!(asked(&STORE, "How many reviews did we get?"), ["reviews"]);
    assert_eq!(asked(&HARBOR, "Which trucks waited longest?"), ["trucks"]);
    assert_eq!(asked(&FOREST, "How many wolves live in Elk Ridge?"), ["wolves"]);
    assert_eq!(asked(&STAGE, "How many ushers were there?"), ["ushers"]);
}

#[test]
fn measures_and_verbs_are_told_from_things() {
    const BUSES: TestSchema = TestSchema {
        tables: &[
            ("driver", "driver_id name party home_city mgr_id"),
            ("bus", "bus_id seats price active"),
            ("school", "school_id school location type"),
        ],
        values: "Rome Primary",
    };
    let asked = |question: &str| {
        gaps_of(question, &vocabulary(&BUSES)).asked.into_iter().map(|gap| gap.phrase).collect::<Vec<_>>()
    };
    assert_eq!(asked("How old is each driver?"), ["old"]);
    assert_eq!(asked("How much did each driver earn?"), ["earn"]);
    assert_eq!(asked("How much is the annual toll?"), ["toll"]);
    assert_eq!(asked("Who is the mayor of each city?"), ["mayor"]);
    for question in [
        "How much does each bus cost?",
        "How expensive is the bus?",
        "Which driver dominates the party?",
        "Which buses are inactive?",
        "Who is the boss of each driver?",
        "What is the shiniest bus?",
        "Which towns do the drivers come from?",
        "Which schools open on Mondays?",
    ] {
        assert_eq!(asked(question), [""; 0], "{question}");
    }
}

#[test]
fn actions_and_adverbs_are_no_things() {
    const FIELDS: TestSchema = TestSchema {
        tables: &[("fields", "field_id soil crop"), ("stations", "station_id built")],
        values: "clay barley",
    };
    let asked = |question: &str| {
        gaps_of(question, &vocabulary(&FIELDS)).asked.into_iter().map(|gap| gap.phrase).collect::<Vec<_>>()
    };
    for question in [
        "What grows on the clay soil?",
        "What goes bad before Christmas?",
        "What sells best?",
        "How many people actually came?",
        "How many nights were there?",
    ] {
        assert_eq!(asked(question), [""; 0], "{question}");
    }
    assert_eq!(asked("Who maintains the station?"), ["maintains"]);
    assert_eq!(asked("When was station 3 born?"), ["born"]);
    assert_eq!(asked("What orders are there?"), ["orders"]);
    assert_eq!(asked("How many families are there?"), ["families"]);
}

#[test]
fn what_is_asked_for_is_found_wherever_the_question_says_it() {
    const CLINIC: TestSchema = TestSchema {
        tables: &[
            ("patients", "patient_id full_name dob sex"),
            ("appointments", "appointment_id patient_id starts_at mins outcome"),
            ("rooms", "room_id floor card_reader price"),
        ],
        values: "attended cancelled Ana Ruiz",
    };
    let asked = |question: &str| {
        gaps_of(question, &vocabulary(&CLINIC)).asked.into_iter().map(|gap| gap.phrase).collect::<Vec<_>>()
    };
    for (question, missing) in [
        ("How many patients have health insurance?", "health insurance"),
        ("What was the average waiting time before an appointment?", "waiting"),
        ("Which patients are allergic to penicillin?", "allergic to penicillin"),
        ("How many guided tours were given?", "tours"),
        ("What did each appointment weigh?", "weigh"),
        ("What is the insured value of a room?", "insured"),
        ("Which record label signed most patients?", "label"),
        ("What were the gift shop's patients?", "gift shop patients"),
        ("How many cars are there?", "cars"),
    ] {
        assert_eq!(asked(question), [missing], "{question}");
    }
    for question in [
        "How many patients have an appointment?",
        "How many appointments do we have right now?",
        "What is the average length of a consultation?",
        "How many cancelled appointments were there?",
        "Which patients missed remaining appointments?",
        "What did each room cost?",
        "Which doctor's patients attended most appointments?",
    ] {
        assert_eq!(asked(question), [""; 0], "{question}");
    }
}

#[test]
fn questions_in_other_languages_are_not_judged() {
    const CLINIC: TestSchema = TestSchema { tables: &[("patients", "patient_id dob")], values: "Ana" };
    for question in [
        "Zeige alle Termine in März 2025",
        "Muestra todas las citas de Ana",
        "Elenca tutti i medici",
        "Toon alle afspraken per arts",
        "Quels médecins ont le plus de consultations ?",
        "Mostre todos os médicos",
    ] {
        assert_eq!(gaps_of(question, &vocabulary(&CLINIC)), QuestionGaps::default(), "{question}");
    }
}

#[test]
fn a_judgement_is_no_matter_of_data_without_ratings() {
    const FILMS: TestSchema = TestSchema { tables: &[("film", "film_id title length")], values: "Alien" };
    const RATED: TestSchema = TestSchema { tables: &[("film", "film_id title rating")], values: "Alien" };
    let judgement = |schema: &TestSchema, question: &str| gaps_of(question, &vocabulary(schema)).judgement;
    assert_eq!(judgement(&FILMS, "Which is the funniest film?").as_deref(), Some("funniest"));
    assert_eq!(judgement(&FILMS, "Which film should I watch?").as_deref(), Some("should i"));
    assert_eq!(judgement(&FILMS, "What did people think of Alien?").as_deref(), Some("think of"));
    assert_eq!(judgement(&RATED, "What did people think of Alien?"), None);
    assert_eq!(judgement(&RATED, "Which is the funniest film?"), None);
    assert_eq!(judgement(&FILMS, "Which is the longest film?"), None);
}

#[test]
fn names_without_vowels_are_words() {
    const VETS: TestSchema = TestSchema {
        tables: &[("anml", "anml_id nm brd wgt ownr_id"), ("ownr", "ownr_id full_nm"), ("itm", "itm_cd snow")],
        values: "Rex",
    };
    let asked = |question: &str| {
        gaps_of(question, &vocabulary(&VETS)).asked.into_iter().map(|gap| gap.phrase).collect::<Vec<_>>()
    };
    for question in [
        "How many animals are there?",
        "How many owners do we have?",
        "Which items are there?",
        "Which breed is the heaviest?",
        "Who owns Rex?",
    ] {
        assert_eq!(asked(question), [""; 0], "{question}");
    }
    assert_eq!(asked("How many snowboards are there?"), ["snowboards"]);
    assert_eq!(asked("Which vaccines were given?"), ["vaccines"]);
}

#[test]
fn names_with_some_vowels_are_words_in_short() {
    const INN: TestSchema = TestSchema {
        tables: &[
            ("resv", "resv_id natl canx_cd tot_amt"),
            ("mnu_itm", "itm_desc prc"),
            ("wo", "prts_cost cvrs"),
            ("members", "cancelled_on lv_typ"),
        ],
        values: "",
    };
    let asked = |question: &str| {
        gaps_of(question, &vocabulary(&INN)).asked.into_iter().map(|gap| gap.phrase).collect::<Vec<_>>()
    };
    for question in [
        "How many bookings were made?",
        "What countries do they come from?",
        "Which dishes are there?",
        "What did spare parts cost?",
        "How many guests did we serve?",
        "How many people quit in October?",
        "What did each dish cost?",
        "How much were the guests charged?",
        "How many absences were there?",
    ] {
        assert_eq!(asked(question), [""; 0], "{question}");
    }
    assert_eq!(asked("How many bicycles are there?"), ["bicycles"]);
    assert_eq!(asked("Which mines are there?"), ["mines"]);
    assert_eq!(asked("How much do the guests weigh?"), ["weigh"]);
}

#[test]
fn a_query_of_all_rows_leaves_out_what_is_said_of_them() {
    const PORT: TestSchema = TestSchema { tables: &[("containers", "container_no gross_weight")], values: "" };
    let said = |question: &str| unfiltered_words(question, &vocabulary(&PORT)).map(|gap| gap.phrase);
    assert_eq!(said("How many containers were damaged?").as_deref(), Some("damaged"));
    assert_eq!(said("Which containers smoke?").as_deref(), Some("smoke"));
    assert_eq!(said("How many containers are there?"), None);
    assert_eq!(said("How many containers were handled altogether?"), None);
    assert_eq!(said("What is the gross weight of the damaged ones?"), None);
}

#[test]
fn a_name_in_short_is_found_by_another_word() {
    const STAFF: TestSchema = TestSchema { tables: &[("emp_mst", "emp_no fst_nm sal_amt hire_dt")], values: "" };
    let asked = |question: &str| gaps_of(question, &vocabulary(&STAFF)).asked;
    assert_eq!(asked("How many staff joined this year?"), []);
    assert_eq!(asked("What is the average salary?"), []);
    let computed = gaps_of("What is the heart rate?", &vocabulary(&STAFF)).computed;
    assert_eq!(computed.iter().map(|gap| gap.phrase.as_str()).collect::<Vec<_>>(), ["heart rate"]);
    let gaps = asked("What is the average performance rating?");
    assert_eq!(gaps.iter().map(|gap| gap.kind).collect::<Vec<_>>(), [GapKind::Thing]);
}

#[test]
fn a_value_is_no_word_for_a_figure() {
    let mut vocabulary = Vocabulary::default();
    "members full_name plan joined_on club".split(' ').for_each(|name| vocabulary.add_name(name));
    vocabulary.add_value("Old Town");
    vocabulary.add_value("Doctor");
    let asked = |question: &str| {
        gaps_of(question, &vocabulary).asked.into_iter().map(|gap| (gap.phrase, gap.kind)).collect::<Vec<_>>()
    };
    assert_eq!(asked("What is the average age of the members?"), [("age".to_owned(), GapKind::Thing)]);
    assert_eq!(asked("How far is the club?"), [("far".to_owned(), GapKind::Thing)]);
    assert_eq!(asked("Which members have a locker?"), [("locker".to_owned(), GapKind::Said)]);
    assert_eq!(asked("Which physicians are in the Old Town?"), []);
}

#[test]
fn a_short_code_may_mean_anything() {
    for (name, is_opaque) in [
        ("abv", true),
        ("ibu", true),
        ("IMO", true),
        ("age", false),
        ("id", false),
        ("price", false),
        ("abv_id", false),
        ("hum_pct", false),
        ("sal_amt", false),
        ("sts", false),
    ] {
        assert_eq!(is_opaque_name(name), is_opaque, "{name}");
    }
}

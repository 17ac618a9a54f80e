//! Questions held against the names and values of schemas in the style of question sets.

use super::*;

/// A schema: tables with their columns, and values of text columns.
pub(super) struct TestSchema {
    pub(super) tables: &'static [(&'static str, &'static str)],
    pub(super) values: &'static str,
}

const FLIGHTS: TestSchema = TestSchema {
    tables: &[
        (
            "flights",
            "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay carrier flight tailnum \
             origin dest air_time distance hour minute time_hour",
        ),
        ("airports", "faa name lat lon alt tz dst tzone"),
        ("planes", "tailnum year type manufacturer model engines seats speed engine"),
        ("airlines", "carrier name"),
        (
            "weather",
            "origin year month day hour temp dewp humid wind_dir wind_speed wind_gust precip pressure visib time_hour",
        ),
    ],
    values: "EWR JFK LGA United Air Lines Inc. JetBlue Airways Delta Air Lines Inc. Southwest Airlines Co. Fixed wing \
             multi engine BOEING AIRBUS EMBRAER Turbo-fan",
};

const LOGS: TestSchema = TestSchema {
    tables: &[("otel_logs", "timestamp severity_number severity_text body service_name")],
    values: "ERROR WARN INFO request failed: timeout request failed: refused request served web payments auth search",
};

const CONCERTS: TestSchema = TestSchema {
    tables: &[
        ("stadium", "Stadium_ID Location Name Capacity Highest Lowest Average"),
        ("singer", "Singer_ID Name Country Song_Name Song_release_year Age Is_male"),
        ("concert", "concert_ID concert_Name Theme Stadium_ID Year"),
        ("singer_in_concert", "concert_ID Singer_ID"),
    ],
    values: "Joe Sharp Netherlands United States France Free choice Bleeding Love Wide Awake Party All Night",
};

const SCHOOL: TestSchema = TestSchema {
    tables: &[
        ("Student", "StuID LName Fname Age Sex Major Advisor city_code"),
        ("Has_Pet", "StuID PetID"),
        ("Pets", "PetID PetType pet_age weight"),
        ("Highschooler", "ID name grade"),
        ("Friend", "student_id friend_id"),
        ("course", "Course_ID Staring_Date Course"),
        ("teacher", "Teacher_ID Name Age Hometown"),
        ("course_arrange", "Course_ID Teacher_ID Grade"),
    ],
    values: "cat dog F M Kyle Smith language arts math science Blackrod Urban District",
};

const WORLD: TestSchema = TestSchema {
    tables: &[
        (
            "country",
            "Code Name Continent Region SurfaceArea IndepYear Population LifeExpectancy GNP GovernmentForm HeadOfState",
        ),
        ("city", "ID Name CountryCode District Population"),
        ("countrylanguage", "CountryCode Language IsOfficial Percentage"),
        ("car_makers", "Id Maker FullName Country"),
        ("cars_data", "Id MPG Cylinders Edispl Horsepower Weight Accelerate Year"),
        ("model_list", "ModelId Maker Model"),
    ],
    values: "Asia Europe Africa North America Dutch English Aruba Brazil Republic Constitutional Monarchy volvo toyota",
};

pub(super) fn vocabulary(schema: &TestSchema) -> Vocabulary {
    let mut vocabulary = Vocabulary::default();
    for (table, columns) in schema.tables {
        vocabulary.add_name(table);
        columns.split_whitespace().for_each(|column| vocabulary.add_name(column));
    }
    vocabulary.add_text(schema.values);
    vocabulary
}

/// Questions that the schemas answer.
const ANSWERABLE: &[(&TestSchema, &[&str])] = &[
    (
        &FLIGHTS,
        &[
            "How many flights left JFK in January 2013?",
            "Which carrier operated the most flights? Give its full name and the number.",
            "What is the average departure delay of flights from each origin airport?",
            "How many planes have four engines?",
            "Which five destinations had the most flights?",
            "How many flights did United Air Lines Inc. operate?",
            "What is the longest distance flown, in miles?",
            "How many flights were there in each month?",
            "How many different manufacturers of planes are there?",
            "What is the name of the airport with the code LAX?",
            "How many flights have no departure time?",
            "Which manufacturer built the most planes?",
            "What is the average arrival delay of JetBlue Airways?",
            "How many airports are higher than 5000 feet?",
            "How many flights went from EWR to SFO?",
            "What was the highest temperature measured at LGA?",
            "In which month was the average departure delay the largest?",
            "How many flights did Boeing planes fly?",
            "How many seats does the largest plane have?",
            "List the names of the airlines in alphabetical order.",
            "How old is the oldest plane?",
            "When did the first flight of Delta leave JFK?",
            "Which airlines have the worst delays?",
            "How far is it from JFK to LAX?",
            "What aircraft flew most often?",
            "Show me the five longest flights",
            "How strong was the wind on average at EWR?",
            "who flies most?",
            "flights?",
        ],
    ),
    (
        &LOGS,
        &[
            "In KQL: how many log lines of severity ERROR are in otel_logs?",
            "In KQL: how many log lines does each service have in otel_logs?",
            "In KQL: which service has the most errors in otel_logs?",
            "In KQL: how many log lines contain the word timeout?",
            "In KQL: how many errors of payments were there in each hour?",
            "In KQL: when was the last log line of web?",
            "In KQL: how many different services wrote logs?",
            "In KQL: show the distinct severities in otel_logs.",
            "In KQL: how many lines did auth log that are no errors?",
            "In KQL: what share of the lines of each service are errors?",
            "which service errored most in the last hour?",
            "How many requests failed?",
        ],
    ),
    (
        &CONCERTS,
        &[
            "How many singers do we have?",
            "Show the country and the age of all singers, the oldest first.",
            "What is the average, minimum and maximum age of all singers from France?",
            "Which stadium held the most concerts in 2014 or later?",
            "What are the names of the stadiums without any concerts?",
            "How many concerts took place in the stadium with the highest capacity?",
            "What songs did the youngest singer release?",
            "Which song names contain 'Love'?",
            "Where are the stadiums?",
            "Which musicians performed in a concert in 2014?",
        ],
    ),
    (
        &SCHOOL,
        &[
            "How many pets weigh more than 10?",
            "What is the first name of every student who has a cat or a dog?",
            "How many high schoolers are there in each grade?",
            "How many friends does Kyle have?",
            "Which teachers do not teach any course?",
            "What are the hometowns of the teachers older than 30?",
            "How many female students own a dog?",
            "Find the weight of the youngest dog.",
            "What type of pet is the heaviest?",
            "Who teaches math?",
            "How many dogs are there?",
            "Which courses does the teacher from Blackrod Urban District teach?",
        ],
    ),
    (
        &WORLD,
        &[
            "How many people live in Asia?",
            "What is the life expectancy in Africa?",
            "Which languages are official in Aruba?",
            "How many countries have a republic as their form of government?",
            "What is the head of state of Brazil?",
            "What is the surface area of North America?",
            "Which model has the most horsepower?",
            "How many car makers are there in each continent?",
            "What are the miles per gallon of the cars with 8 cylinders?",
            "Which cities have more than 8 million inhabitants?",
            "What is the total population of each region?",
            "Give the name of the nation with the greatest number of languages.",
            "What is the most populace city that speaks English?",
        ],
    ),
];

/// Questions that they do not answer; what is asked for is not there.
const UNANSWERABLE: &[(&TestSchema, &[&str])] = &[
    (
        &FLIGHTS,
        &[
            "How many passengers were on board of each flight?",
            "What did a ticket from JFK to LAX cost on average?",
            "Which pilot flew the most hours?",
            "How many bags were lost in July?",
            "What is the phone number of Delta Air Lines?",
            "How much fuel did the flights of United burn?",
            "Which customers complained about late flights?",
            "What was the share price of JetBlue at the end of 2013?",
            "How many flights left Paris Charles de Gaulle for Tokyo?",
            "Which flight attendants worked on Christmas?",
            "What meals were served on flights to Honolulu?",
            "How expensive was a seat in the first class?",
            "What is the salary of the captains?",
            "How many gates does each airport have?",
            "Which hangar is each plane parked in?",
            "Who designed the planes with four engines?",
        ],
    ),
    (&LOGS, &["Which developer deployed the payments service?", "What is the CPU usage of each service?"]),
    (
        &CONCERTS,
        &[
            "How many tickets were sold for each concert?",
            "Which sponsor paid for the concerts of 2014?",
            "What instruments does each singer play?",
            "How many parking lots does each stadium have?",
        ],
    ),
    (
        &SCHOOL,
        &[
            "What is the blood group of each student?",
            "Which veterinarian treats the most dogs?",
            "How much rent do the students pay?",
            "What grade of scholarship did Kyle receive?",
        ],
    ),
    (
        &WORLD,
        &[
            "How many earthquakes hit each country?",
            "What is the unemployment of the countries in Europe?",
            "Which dealership sells the most cars?",
            "How many hospitals are there in each city?",
            "What is the insurance of a car with 8 cylinders?",
        ],
    ),
];

/// Other schemas, their values, and questions that they answer in words of their own.
const PARAPHRASED: &[(&str, &str, &[&str])] = &[
    (
        "patients patient_id name birth_date sex insurance_id admissions admission_id admitted_at discharged_at \
         ward diagnosis_code doctors doctor_id specialty prescriptions drug dose days appointments scheduled_at \
         cancelled",
        "cardiology oncology M F aspirin",
        &[
            "How many patients were admitted last month?",
            "Which ward has the longest stays?",
            "How many appointments were missed?",
            "Which physicians prescribe the most medicines?",
            "What is the average age of patients by ward?",
            "How many people with insurance were discharged in May?",
            "What is the most common diagnosis?",
            "How many beds does each ward have?",
            "Which specialists see the most patients?",
            "What dose of aspirin do women get on average?",
            "How long do patients stay in cardiology?",
            "When was the last admission?",
        ],
    ),
    (
        "devices device_id model firmware_version installed_on site_id sites site_name latitude longitude readings \
         ts cpu_pct mem_mb disk_free_gb temperature_c battery_v alerts severity message acknowledged_by",
        "critical warning info berlin-1 edge",
        &[
            "Which devices run the oldest firmware?",
            "How many alerts are open?",
            "What was the peak temperature at each site?",
            "Which machine used the most memory yesterday?",
            "How much free space is left on the devices of berlin-1?",
            "What is the average battery voltage per model?",
            "Which users acknowledged the most critical alerts?",
            "How many sensors are installed at each location?",
            "What is the 95th percentile of the processor load?",
            "Which sites are offline?",
            "How often did devices reboot?",
            "Show the trend of CPU usage for the last week",
        ],
    ),
    (
        "trips trip_id vendor_id pickup_datetime dropoff_datetime passenger_count trip_distance pickup_zone \
         dropoff_zone fare_amount tip_amount tolls_amount total_amount payment_type",
        "cash card Manhattan Queens JFK Airport",
        &[
            "How many rides were there on Fridays?",
            "What was the average tip?",
            "Which zones have the most pickups?",
            "How many passengers did the average trip carry?",
            "What do people pay most often with?",
            "Which borough is the most expensive?",
            "What percentage of trips is paid in cash?",
            "How fast are trips on average?",
            "What was the total of the tolls in June?",
            "Which route is the most popular?",
            "How many taxis are on the road at noon?",
        ],
    ),
    (
        "accounts account_id owner_name opened_on branch_id balance currency transactions txn_id amount booked_at \
         merchant category loans principal interest_rate status branches branch_name city",
        "EUR USD groceries rent travel",
        &[
            "What is the total balance of all accounts?",
            "Which customers hold more than one account?",
            "How much did we lend in 2023?",
            "What are the five biggest merchants?",
            "Which branch opened the most accounts?",
            "How much money was spent on groceries?",
            "What is the average interest of loans?",
            "How many deposits were made in March?",
            "Who owes the most?",
            "What expenses grew the most?",
            "Which currencies are used?",
        ],
    ),
    (
        "TV_Channel id series_name Country Language Content Pixel_aspect_ratio_PAR Hight_definition_TV \
         Pay_per_view_PPV Package_Option TV_series Episode Air_Date Rating Share 18_49_Rating_Share Viewers_m \
         Weekly_Rank Channel Cartoon Title Directed_by Written_by Original_air_date Production_code",
        "MTV Dude Sky Italy English",
        &[
            "What is the title of all the cartoons in alphabetical order?",
            "Who wrote the most cartoons?",
            "Which directors made more than two cartoons?",
            "What is the content of the series Sky Radio?",
            "How many TV channels use the English language?",
            "When did the episode 'A Love of a Lifetime' air?",
            "What is the weekly rank of the episode?",
            "How many viewers did the best rated episode have?",
            "Which channels do not show cartoons directed by Ben Jones?",
            "What package options do the channels offer?",
            "Name the countries with high definition channels",
        ],
    ),
    (
        "conductor Conductor_ID Name Age Nationality Year_of_Work orchestra Orchestra Record_Company Year_Founded \
         Major_Record_Format performance Performance_ID Type Date Official_ratings_(millions) Weekday_rating Share \
         show Show_ID If_first_show Result Attendance",
        "USA DVD Auto Antal",
        &[
            "How many conductors are there?",
            "Which record companies worked with orchestras founded before 2003?",
            "What is the average attendance of shows?",
            "What are the maximal and minimal ratings of performances that are not live finals?",
            "Which nationality is the most common among conductors?",
            "What are the formats used by the most orchestras?",
            "How many orchestras does each record company manage?",
            "How experienced is each conductor?",
            "Whose conductor has the most years of work?",
        ],
    ),
    (
        "Breeds breed_code breed_name Charges charge_id charge_type charge_amount Sizes size_code size_description \
         Treatment_Types Owners owner_id first_name last_name street city state zip_code email_address home_phone \
         cell_number Dogs dog_id owner_id abandoned_yn breed_code size_code name age date_of_birth gender weight \
         date_arrived date_adopted date_departed Professionals professional_id role_code Treatments treatment_id \
         date_of_treatment cost_of_treatment",
        "Walking Vaccination ESK HUS LGE F M Virginia",
        &[
            "Which states have both owners and professionals living there?",
            "What is the average age of the dogs that went through treatments?",
            "How many dogs have not gone through any treatment?",
            "Which owner paid the largest amount for treatments?",
            "What is the cost of the most recent treatment?",
            "How much does each charge type cost?",
            "What are the emails of professionals in Virginia?",
            "Which breed has been bred most?",
            "How many dogs were abandoned?",
            "List the arrival dates of all dogs.",
            "Who owns the heaviest dog?",
            "What kinds of treatment are cheaper than 500?",
            "How many puppies are younger than one?",
            "What are the home phones of the owners?",
            "On what date did the dog leave?",
        ],
    ),
    (
        "players player_id first_name last_name hand birth_date country_code matches best_of draw_size loser_age \
         loser_ht loser_name minutes winner_name winner_rank winner_rank_points tourney_name tourney_date surface \
         round score year rankings ranking_date ranking ranking_points tours",
        "L R USA US Open Wimbledon Hard Clay",
        &[
            "Which player won the most matches?",
            "What was the average age of the losers?",
            "How many tournaments did each winner play?",
            "Which players are left handed?",
            "How many tours did each player take part in?",
            "What is the country of the youngest winner?",
            "How many different winners were there at Wimbledon?",
            "What is the birthday of the player with the most ranking points?",
            "How long was the longest match?",
            "How many players are from each country?",
            "On which surface were the most matches played?",
        ],
    ),
    (
        "Addresses address_id line_1 line_2 city zip_postcode state_province_county country Courses course_id \
         course_name course_description Departments department_name Degree_Programs degree_program_id \
         degree_summary_name Sections section_name Semesters semester_name Students current_address_id \
         permanent_address_id first_name middle_name cell_mobile_number email_address ssn date_first_registered \
         date_left other_student_details Student_Enrolment Transcripts transcript_date Transcript_Contents",
        "math Bachelor Master PHD engineer North Carolina",
        &[
            "How many departments offer any degree?",
            "Which department offers the most degrees?",
            "What is the phone number of the student with the first name Timmothy?",
            "Who is the first student to register?",
            "Where do the students live permanently?",
            "When was the first transcript released?",
            "How many times does a course show up in transcripts?",
            "Which semester did both Master and Bachelor students enroll in?",
            "What is the zip code of Port Chelsea?",
            "Which students are still enrolled?",
            "How many sections does the algorithms course have?",
        ],
    ),
    (
        "orders order_id customer_id order_date status customers customer_id name email signup_date city products \
         product_id title category price stock order_items quantity unit_price",
        "shipped pending returned Berlin London",
        &[
            "What is our revenue per month?",
            "Which products sold best last quarter?",
            "How many clients signed up this year?",
            "What is the average basket value?",
            "Who are our top ten buyers?",
            "How many returns did we have?",
            "What share of orders is pending?",
            "Which items are out of stock?",
            "How much did each customer spend?",
            "What turnover did Berlin make?",
            "How many units were shipped?",
            "Which category grew the most?",
            "What is the conversion rate?",
            "What is the median order value by city?",
        ],
    ),
];

fn judged(sets: &[(&TestSchema, &'static [&'static str])]) -> (Vec<(&'static str, QuestionGaps)>, usize) {
    let mut found = Vec::new();
    let mut count = 0;
    for (schema, questions) in sets {
        let vocabulary = vocabulary(schema);
        count += questions.len();
        found.extend(questions.iter().map(|question| (*question, gaps_of(question, &vocabulary))));
    }
    found.retain(|(_, gaps)| gaps.is_any());
    (found, count)
}

#[test]
fn what_the_data_speaks_of_is_not_missing() {
    let (alarms, count) = judged(ANSWERABLE);
    // LAX and SFO are names of the data's rows, which are looked for before anything is said.
    let false_alarms: Vec<_> = alarms.iter().filter(|(_, gaps)| !gaps.asked.is_empty()).collect();
    assert!(false_alarms.len() * 20 <= count, "{} of {count}: {false_alarms:#?}", false_alarms.len());
}

#[test]
fn what_is_there_in_other_words_is_not_missing() {
    let mut count = 0;
    let mut false_alarms = Vec::new();
    for (names, values, questions) in PARAPHRASED {
        let mut vocabulary = Vocabulary::default();
        names.split_whitespace().for_each(|name| vocabulary.add_name(name));
        vocabulary.add_text(values);
        count += questions.len();
        let gaps = questions.iter().map(|question| (question, gaps_of(question, &vocabulary).asked));
        false_alarms.extend(gaps.filter(|(_, asked)| !asked.is_empty()));
    }
    assert!(false_alarms.len() * 20 <= count, "{} of {count}: {false_alarms:#?}", false_alarms.len());
}

#[test]
fn what_the_data_does_not_speak_of_is_missing() {
    let (hits, count) = judged(UNANSWERABLE);
    let missed: Vec<&str> = UNANSWERABLE
        .iter()
        .flat_map(|(_, questions)| questions.iter().copied())
        .filter(|question| !hits.iter().any(|(hit, _)| hit == question))
        .collect();
    assert!(hits.len() * 10 >= count * 8, "{} of {count}; missed: {missed:#?}", hits.len());
}

#[test]
fn what_is_missing_is_named_as_the_question_says_it() {
    let vocabulary = vocabulary(&FLIGHTS);
    let asked =
        |question: &str| gaps_of(question, &vocabulary).asked.into_iter().map(|gap| gap.phrase).collect::<Vec<_>>();
    assert_eq!(asked("How many passengers were on board of each flight?"), ["passengers"]);
    assert_eq!(asked("What is the number of passengers per flight?"), ["passengers"]);
    assert_eq!(asked("Which flight attendants worked on Christmas?"), ["flight attendants"]);
    let names = gaps_of("How many flights left Paris Charles de Gaulle for Tokyo?", &vocabulary).names;
    assert_eq!(names, ["Paris Charles de Gaulle", "Tokyo"]);
}

#[test]
fn what_is_no_english_question_is_not_judged() {
    let vocabulary = vocabulary(&FLIGHTS);
    for question in [
        "Wie viele Passagiere hatte jeder Flug?",
        "Combien de passagers y avait-il sur chaque vol?",
        "¿Cuántos pasajeros hubo en cada vuelo?",
        "乗客は何人でしたか",
        "how many?",
        "Which?",
        "and now?",
        "are you there?",
        "",
        "'",
    ] {
        assert_eq!(gaps_of(question, &vocabulary).asked, [], "{question}");
    }
}

//! English words that name the same thing, or that ask for it: synonyms, the units of a measure, the noun of an action,
//! and who does it. They are general: a group has what people call a thing in any field, not what one schema calls it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::{action_stem, plain_form, stem, without_double_l, without_last_e};

/// Groups, each ended by a semicolon. Words of one group stand for each other; things that are only alike (a doctor and a
/// nurse) are in no common group.
const SAME_MEANING: &str = "\
    person people individual human resident inhabitant population citizen; \
    customer client buyer purchaser shopper consumer subscriber account; \
    cost price fee fare charge amount expense payment expensive cheap costly; \
    salary wage pay income earning compensation; revenue sale income turnover earning price amount total; \
    worth value valuation price; \
    company firm business corporation organization organisation enterprise; \
    maker manufacturer brand vendor producer make; car vehicle automobile auto; plane aircraft airplane jet; \
    airline carrier airway aviation; picture image photo photograph; nationality citizenship nation country; \
    address street residence; location place venue site position; \
    teacher instructor professor lecturer faculty tutor; student pupil learner schooler highschooler; \
    phone telephone mobile cell; email mail; birthday birth born dob birthdate age old year founded; \
    height tall elevation altitude; speed velocity pace; distance far mile kilometer; size area capacity; \
    gender sex male female man woman boy girl; rank ranking position; score point result grade mark rating review; \
    error failure exception fault severity; log line message event body; lose loser loss; purchase order sale; \
    sell sale seller sold; product item article good; category type kind class genre style; origin source departure; \
    destination arrival target; quantity amount count qty stock; comment description note; fuel gasoline gas mpg; \
    power horsepower; pet animal; dog puppy; cat kitten; singer musician artist vocalist performer; band group; \
    tournament tourney competition championship; player athlete; team club squad; course class subject lesson; \
    manager boss head lead supervisor; building property; job occupation profession role; title name headline; \
    code abbreviation faa iata icao; region zone district area borough neighborhood; visit visitor; television tv; \
    death dead die killed casualty; ship boat vessel; delay late delayed; service application app component system; \
    host machine server node device; user account login member; flight fly flown; hometown home; \
    trip ride journey route tour; cpu processor; deposit withdrawal transaction; taxi cab trip; bed ward; \
    sensor device meter; money amount price cost fund budget; degree program; wife husband spouse partner; \
    customer client member guest visitor patron subscriber; member user participant; \
    viewer audience spectator attendance ticket visitor; coach trainer instructor teacher; \
    lesson class training workshop; plan subscription membership package tariff; \
    location place site venue branch store outlet office; hall room auditorium screen; \
    machine equipment device vehicle tractor truck; vehicle truck bus van motorcycle bike; bike bicycle cycle; \
    film movie picture; director filmmaker; takings revenue sale ticket; plot field parcel land lot; \
    ground soil earth; yield harvest output production; crop plant cereal; meal dish menu; restaurant cafe diner; \
    surgery operation procedure; invoice bill receipt; loan credit debt; contract agreement; stop station terminal; \
    street road highway avenue; mountain peak summit; medal award prize trophy; race run event; \
    warehouse depot storage; shipment delivery parcel consignment; website site page; click hit view; \
    apartment flat unit; magazine journal periodical; publisher press; nickname alias; skill ability; \
    volume capacity liter litre gallon milliliter barrel pint; duration length minute hour second runtime; \
    size area surface extent hectare acre sqft; weight mass kilogram kg gram ton tonne tonnage pound lb; \
    length height depth width meter metre feet; \
    money cash amount price cost fee due balance budget revenue payment eur usd gbp dollar; \
    fee due charge toll fare tariff levy; venue hall theater theatre arena stadium auditorium location; \
    show concert performance gig event screening; piece work composition opus song; \
    player musician instrumentalist performer; bar pub taproom tavern inn; beer brew ale lager drink beverage; \
    drink beverage pour serving; dock berth pier quay wharf mooring; \
    goods cargo freight commodity merchandise product; unload discharge; tree species forest wood timber plant; \
    team crew squad brigade unit; guest seat capacity; country nation flag; \
    worker labourer operator technician employee; patient pt case admission; nurse carer staff; \
    dose dosage drug tablet pill; symptom diagnosis complaint; lesson session lecture module course; \
    tutor mentor advisor; exam quiz assessment; author novelist poet; painting artwork canvas; \
    sculpture statue artwork; ingredient component; chef cook; issue ticket case bug defect; commit revision; \
    repository repo project; developer programmer coder engineer; package parcel shipment; courier carrier driver; \
    well borehole; turbine generator; plant station facility site; meter gauge sensor; animal creature specimen; \
    habitat enclosure cage; keeper caretaker zookeeper; fisherman angler; jockey rider; tenant occupant lodger; \
    trade transaction deal; broker dealer; voter elector; party faction; candidate contender nominee; \
    suspect offender accused; judge magistrate; trial hearing case; referee umpire; channel network broadcaster; \
    traveler traveller passenger rider commuter; voyage trip journey; bridge crossing overpass; \
    accident crash collision incident; hill mountain peak; trail path hike; climber mountaineer; creek river stream; \
    storm hurricane typhoon cyclone; quake earthquake tremor; farmer grower; cattle herd livestock; \
    vineyard winery estate; grape variety; volunteer helper; charity ngo organisation; booking stay reservation; \
    message post mail; comment reply remark; follower subscriber fan; document file attachment; folder directory; \
    session visit login; campaign promotion ad advertisement; lead prospect; shift duty; part component spare; \
    failure breakdown outage fault; stock inventory; discount rebate reduction; \
    company manufacturer supplier airline constructor publisher insurer producer brand; \
    rental rent hire booking lease; kid child dependent pupil student; office room building address; \
    star actor actress performer; pilot driver captain racer; place restaurant hotel town city venue location; \
    circuit track raceway; spectator seat seating attendance; payout settlement payment reimbursement; \
    paper document letter; money spend spent; expense spend spent spending outlay; choice option; \
    client patron subscriber passenger; staff crew team; income revenue profit earning; wound injury injured; \
    graduate graduation degree alumnus; opening opened inauguration launch; hospital clinic ward; medal rank place; \
    debt loan balance owed outstanding; harbour harbor port; painter artist sculptor; nationality country origin; \
    clinician doctor physician practitioner medic consultant gp; \
    appointment consultation visit checkup booking slot session; prescription script medication medicine drug; \
    disease illness condition diagnosis ailment; admission hospitalization hospitalisation stay; \
    vaccine vaccination immunization immunisation jab shot; blood haemoglobin; book volume novel publication title; \
    copy volume item exemplar; reader borrower patron cardholder member; loan borrowing checkout lending; \
    fine penalty fee charge; hold reservation; garage carpark parking lot; space slot bay spot stall place berth; \
    plate registration licence license number vehicle car; permit pass licence license authorization authorisation; \
    violation citation infringement infraction offence offense penalty fine; \
    outage blackout cut interruption disruption failure breakdown; household home house premises dwelling residence; \
    reading consumption usage use; consumption usage use kwh energy electricity power; tariff rate plan price; \
    case lawsuit suit litigation matter proceeding claim; hearing session trial sitting; trial case proceeding; \
    counsel lawyer attorney solicitor barrister advocate firm; ruling verdict judgment judgement decision outcome; \
    damages compensation award payout settlement; party litigant; plaintiff claimant complainant; \
    defendant accused respondent; court tribunal; adjourn postpone delay defer reschedule; \
    close end finish resolve settle complete conclude; open pending unresolved ongoing active; \
    filed lodged submitted opened brought; dismiss reject; squad roster lineup team player; \
    fixture match game encounter; league division competition; striker forward attacker; goalkeeper keeper; \
    jersey shirt number; crowd attendance spectator audience fan visitor turnout; ground stadium arena venue; \
    kickoff start; recipe dish meal food; portion serving helping; calorie kcal energy; vegetarian veggie meatless; \
    rating review star score feedback; reviewer critic rater; individual person ancestor relative human; \
    marriage wedding wed marry married; parish church; death die died dead deceased passed; \
    parent father mother dad mum mom; child son daughter kid children offspring; sibling brother sister; \
    surname lastname family; forename firstname given; source document record certificate; archive repository; \
    device sensor unit probe node gadget appliance; alert alarm warning notification; reboot restart; \
    firmware software version; signal rssi strength reception; battery batt charge power; humidity hum moisture; \
    voltage volt mv; reading measurement sample observation value; absence leave holiday vacation absent away; \
    payslip wage salary pay paycheck payroll; net takehome; \
    staff employee worker colleague personnel headcount workforce; leave quit resign depart exit; \
    hire recruit join start employ; start begin commence launch; boss head manager chief director lead leader; \
    artwork work piece painting sculpture object exhibit art; exhibition show exhibit display; \
    medium material technique; admission visitor ticket entry entrance attendance; acquire buy purchase obtain; \
    purchase buy bought order; consignment shipment cargo load freight delivery goods; \
    voyage sailing trip crossing passage; consignee recipient receiver addressee; \
    shipper sender consignor customer client; container box; hazardous dangerous; eta expected due; \
    arrival arrive arrived enter entered entry come came ata; departure depart departed exit exited leave left etd; \
    charge cost fee invoice bill; invoice bill billing billed; policyholder customer client insured insuree; \
    policy contract cover coverage insurance; claim loss accident damage incident; \
    accident loss claim collision crash; premium price cost; deductible excess; adjuster handler assessor; \
    peril cause hazard risk; lapse lapsed cancel cancelled expire expired terminate; \
    expire expiry expiration lapse end run; reported notified notification notice; \
    pupil student learner schoolchild schooler kid child; form class grade year; lesson class period course; \
    attendance presence present absence absent; term semester trimester; lunch meal; classroom room; \
    song track tune work piece title; songwriter composer author lyricist writer; lyric lyricist text; \
    stream play listen playback; platform service channel provider; royalty payout earning payment income; \
    payout payment pay paid; owe due outstanding unpaid; share split percentage percent stake pct; \
    territory country region market; basket cart order; sku product item article; refund return reimbursement; \
    coupon voucher promo; transaction payment transfer purchase; listing property house home apartment flat estate; \
    landlord owner lessor; square sqm sqft area; guest visitor lodger customer client; \
    incident ticket issue case problem; deploy deployment release rollout; downtime outage stoppage; \
    defect fault flaw scrap reject; batch lot run; enrollment enrolment registration signup; \
    signup register registered joined joining; attendee participant delegate guest; speaker presenter; \
    session talk presentation; donation gift contribution; donor giver supporter contributor; impression view; \
    conversion signup; sighting observation; crime offence offense incident; arrest detention; ballot vote; \
    contractor builder; owner proprietor holder; holder owner bearer; length duration min minute hour second time; \
    duration min minute mins sec second hr hrs hour; temp temperature warm cold hot heat; \
    speed kmh mph knot velocity; weight wt mass kg heavy tonne ton; volume vol cubic; distance dist km mile; \
    amount sum total value; address street location; contact phone email; occupation job profession living; \
    wage salary pay gross; department dept team division unit; \
    company firm business organisation organization enterprise employer; supplier vendor provider seller; \
    merchant retailer shop store seller; shop store outlet branch; cashier clerk; waiter server; menu dish item; \
    driver chauffeur; lorry truck; motorcycle motorbike bike; train locomotive; carriage wagon coach; platform track; \
    route line path itinerary; fare ticket price; boarding embarkation; captain skipper pilot; runway strip; \
    airport airfield; luggage bag baggage suitcase; cancelation cancellation cancel cancelled; delay late lateness; \
    weather climate; storm gale; flood flooding; river stream watercourse; lake pond reservoir; forest wood woodland; \
    farm holding; crop harvest yield; cow cattle livestock; pig swine hog; hen chicken poultry; milk dairy; \
    fish catch; vet veterinarian; owner keeper; species kind breed; plant vegetation flora; mine pit quarry; \
    ore mineral; oil crude petroleum; pipeline pipe; plant factory facility works; factory plant mill; \
    machine equipment apparatus; tool instrument; repair maintenance service servicing fix fixed; \
    inspection check audit examination survey; inspector auditor examiner; test exam examination assessment; \
    diploma degree qualification; scholarship grant bursary; tuition fee; campus site; dormitory hall; \
    professor lecturer academic; faculty department; lab laboratory; experiment trial study; \
    paper article publication; citation reference; researcher scientist; editor publisher; cinema theatre theater; \
    screening showing show; episode instalment installment; series show programme program; actor performer cast; \
    music song; album record release; festival event; ticket admission; seat place; winner champion victor; \
    tournament cup championship; race heat run; runner athlete racer; lap round; goal point; season year; \
    training practice; gym studio; visit checkin; hotel accommodation; room suite; night stay; \
    tourist visitor traveller traveler; tour trip excursion; guide leader; sight attraction landmark; map chart; \
    city town municipality settlement; village hamlet; county district; state province; border frontier; \
    mayor governor; minister secretary; election poll vote; seat mandate; law act statute; bill proposal; \
    budget spending; tax levy duty; expense cost expenditure spending outlay; profit margin earning gain; \
    loss deficit; debt liability; asset holding; dividend payout; bond security; interest rate; mortgage loan; \
    deposit saving; withdrawal payout; bank lender; fraud scam; vacancy job opening position; applicant candidate; \
    interview meeting; overtime extra; meeting appointment; project initiative; task job ticket todo; \
    milestone deadline; release version; commit change; request call hit response; response reply answer; \
    latency delay lag duration; password credential; visitor user; post message entry; like reaction; friend contact; \
    message text mail; call phonecall; tower mast antenna; network provider operator; depot warehouse hub; \
    pallet load; delivery shipment dropoff; complaint grievance; satisfaction rating; survey questionnaire poll; \
    respondent participant; prisoner inmate; prison jail; sentence term; victim casualty; witness bystander; \
    soldier troop; weapon gun; fire blaze; firefighter fireman; ambulance paramedic; emergency incident; \
    planet world; star sun; telescope instrument; satellite spacecraft; rocket launcher; launch liftoff; \
    astronaut crew; adult teenager teen minor senior elderly infant baby toddler kid dob birthdate birthday age; \
    storey story floor level; viewing showing visit tour; baby newborn infant birth born; call phone telephone dial; \
    text sms message mms; calf cow cattle; lamb ewe sheep; foal horse mare; piglet pig; chick chicken hen; \
    cub lion bear; job project contract assignment gig task; churn leave cancel quit; \
    abroad foreign international overseas; fundraising donation gift campaign; raise raised collect donation gift; \
    appeal campaign drive; met reached achieved; target goal quota objective; reason cause why motive grounds; \
    source channel origin referrer referral; medium channel; storeroom storage warehouse; bedroom room bed; \
    bathroom bath toilet; kitchen cooking; garden yard lawn; roof attic; basement cellar; asking ask listed list; \
    realtor agent broker salesperson seller; salesperson salesman rep representative agent seller; \
    market sale listing; offer bid proposal quote quotation; bidder buyer; auction lot sale; \
    tradesman worker trade craftsman; plumber electrician carpenter; foreman supervisor; site location yard; \
    labour labor work worker hour wage; overrun exceed over; behind late delayed overdue; ahead early; \
    schedule plan timetable calendar rota; deadline due planned end; accident injury incident; \
    suspect arrest arrested; cop officer policeman police badge; stolen theft robbed robbery; \
    recovered found returned; beat district area; sponsor sponsorship backer; final last championship; frag kill; \
    sniper shooter; created founded established formed started; established founded opened formed created; \
    built constructed construction completed; construction building build; demolished destroyed; \
    renovated refurbished renovation; designed architect; invented inventor invention; \
    discovered discovery found finder; painted painter artist; composed composer composition; \
    wrote written writer author; directed director; produced producer production; \
    published publisher publication release; released release published; recorded recording; \
    performed performer performance; starred star cast actor; sang singer vocals; played player play; coached coach; \
    refereed referee; scored scorer score goal; won winner win victory champion; lost loser loss defeat; \
    drew draw tie; beat defeat win won; sick ill illness sickness; treated treatment therapy; \
    operated operation surgery; vaccinated vaccine vaccination; prescribed prescription prescriber; \
    diagnosed diagnosis; admitted admission; discharged discharge release; examined examination exam; \
    insured insurance insurer; employed employee employment; hired hire start; \
    fired dismissed terminated termination; retired retirement pension; promoted promotion; trained training trainer; \
    earned salary wage pay income; owed debt due balance; borrowed borrower loan; lent lender loan; \
    invested investment investor; deposited deposit; withdrew withdrawal; spent expense cost spending amount; \
    bought purchase buyer order; shipped shipment shipping delivery; delivered delivery; returned return; \
    refunded refund; booked booking reservation; reserved reservation booking; rented rental rent; leased lease; \
    occupied occupancy; inspected inspection; repaired repair; broke broken failure fault; crashed crash failure; \
    complained complaint; reviewed review; rated rating star; commented comment; liked like; shared share; \
    followed follower; viewed view; clicked click; visited visit; logged log login; \
    subscribed subscription subscriber; signed signature contract; voted vote; elected election winner; \
    appointed appointment; taught teacher lesson; studied study student major; enrolled enrolment enrollment; \
    graduated graduation graduate; attended attendance attendee; travelled travel trip; flew flight; \
    drove drive driver; rode ride rider; walked walk; ran run runner; swam swim swimmer; climbed climb climber; \
    sailed sail voyage; landed landing; boarded boarding; parked parking; fuelled refuel fuel; \
    charged charge charging; consumed consumption; generated generation output; produced production output; \
    harvested harvest; planted planting plant; watered watering irrigation; fed feeding feed food; \
    milked milking milk; slaughtered slaughter; caught catch; hunted hunt; burned fire burn; flooded flood; \
    rained rain rainfall precipitation precip; snowed snow snowfall; froze frost freeze temperature; windy wind gust; \
    sunny sun sunshine; cloudy cloud; humid humidity rh; weather observation obs; \
    reading observation obs measurement; temperature temp thermometer celsius fahrenheit; wind gust breeze; \
    pressure barometer hpa mbar; visibility visib; altitude elevation elev height; latitude lat; \
    longitude lon lng long; coordinate lat lon; gps position location; region area zone province; \
    neighbourhood neighborhood district area suburb; postcode zip zipcode postal; street road address; bridge road; \
    motorway highway road; junction intersection crossing; lane road; speeding speed; \
    fuel petrol diesel gasoline gas; mileage distance odometer km mile; tyre tire wheel; \
    brand make maker manufacturer label; model type version; colour color; size dimension; material fabric; \
    texture finish; male man men boy; female woman women girl; marital married spouse; religion faith denomination; \
    language tongue; ethnicity race; education degree qualification schooling; school college university institution; \
    headteacher principal head; janitor caretaker; secretary assistant; assistant aide helper; intern trainee; \
    apprentice trainee; freelancer contractor; consultant adviser advisor; accountant bookkeeper; auditor audit; \
    banker bank; cashier till; till register; receipt ticket invoice; taxpayer tax; vat tax; customs duty; \
    export exported; trade export import; stock share equity; portfolio holding; fund asset; trader trade; \
    exchange market; currency money; coin currency; crypto coin; wallet balance; card credit debit; allowance quota; \
    budget allocation; forecast prediction; actual real; variance difference; overhead expense; markup margin; \
    sale promotion discount; gift voucher; loyalty point reward; reward point bonus; tier level grade; \
    membership member; renewal renew; trial test; upgrade update; patch fix update; vulnerability weakness cve; \
    attack breach intrusion; firewall security; backup copy; disk storage drive; memory ram mem; \
    load usage utilisation utilization; bandwidth traffic throughput byte bytes; throughput rate; packet traffic; \
    subject participant volunteer patient enrollee; \
    router gateway; domain site host; url link page address; browser agent; os system platform; feature function; \
    epic story; sprint iteration; build pipeline; test check; trace span; query request; table dataset; \
    column field attribute; video clip film; audio sound recording; podcast episode; chapter section part; \
    page sheet; word term; letter mail; envelope letter; stamp postage; postman courier; sender from; \
    recipient to receiver; inbox mailbox; chat conversation message; conversation chat thread; agent operator; \
    queue line; callback call; satisfaction csat score; nps score; survey response; question item; \
    ward constituency district; mp member; councillor member; mayor head; family household relative; \
    tenant occupant renter; housing home house; villa house; farmhouse farm; barn stable; stable horse; seed crop; \
    fertilizer fertiliser; pesticide spray; orchard tree fruit; fruit apple; vegetable crop; wine bottle vintage; \
    grape wine; brewery brewer beer; bakery baker bread; butcher meat; grocery food; supermarket store shop; \
    aisle shelf section; checkout till; queue wait; tourist visitor guest; hostel hotel; camp site; campsite pitch; \
    pitch field ground; flight route; gate terminal; cabin class; passport document; visa permit; border crossing; \
    embassy consulate; museum gallery; gallery room; curator keeper; collection set; loan borrow; archive record; \
    manuscript document; map plan; library lending; bookshop store; plot story; character role; scene shot; \
    studio company; channel station; broadcast airing; audience viewer listener; radio station; stage scene; \
    orchestra band; dancer performer; choreographer director; ballet dance; opera show; usher staff; \
    failed failure error; pass result mark; footfall visitor; limit cap ceiling; \
    company firm contractor; test sample survey check; parasite mite; jar glass bottle; hive colony; water lake river; \
    workplace desk seat; screen monitor display; wash cycle; guest diner cover pax; \
    passenger traveller pax; \
    child children father mother parent";
/// Words for many things, each with some of those: data with cows has animals, and data with animals has no cows.
const KINDS: &str = "\
    animal: cow cattle dog cat horse sheep goat pig lion tiger bear zebra elephant bird fish herd livestock breed \
    species pet; \
    place: station site city town venue shop store branch location region room building restaurant hotel country \
    district zone airport port stadium museum garage warehouse address; \
    vehicle: car truck van bus lorry bike bicycle motorcycle plane ship boat train tram taxi plate; \
    document: invoice contract letter paper report source certificate record passport statement; \
    food: meal dish ingredient fruit vegetable meat feed snack menu recipe; \
    drink: beer wine coffee tea juice cocktail beverage milk; \
    event: concert match game exhibition meeting conference race festival show hearing wedding appointment \
    screening session incident; \
    building: house home apartment garage hotel hospital school museum library office stadium warehouse property; \
    machine: tractor turbine pump engine printer robot device server press; furniture: chair table desk sofa bed; \
    clothes: shirt dress shoe jacket trousers; \
    worker: employee staff nurse driver teacher plumber electrician engineer operator technician clerk; \
    artwork: painting sculpture drawing print photograph; crime: burglary robbery theft assault murder fraud; \
    instrument: violin piano guitar drum trumpet flute; sport: football tennis basketball hockey golf swimming; \
    weapon: knife gun rifle pistol";

static GROUPS: LazyLock<Vec<Vec<&str>>> =
    LazyLock::new(|| SAME_MEANING.split(';').map(|group| group.split_whitespace().collect()).collect());
/// The groups of things in the singular, and of actions without their endings. A plane is no plan: only actions lose more
/// than a plural.
static THINGS: LazyLock<HashMap<String, Vec<usize>>> = LazyLock::new(|| grouped(plain_form));
static ACTIONS: LazyLock<HashMap<String, Vec<usize>>> =
    LazyLock::new(|| grouped(|word| without_double_l(without_last_e(plain_form(word)))));
/// The stems of the things that a stem is the kind of.
static KINDS_OF: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let kinds = KINDS.split(';').filter_map(|line| line.split_once(':'));
    kinds.map(|(kind, things)| (stem(kind.trim()), things.split_whitespace().map(stem).collect())).collect()
});

fn grouped(form: impl Fn(&str) -> String) -> HashMap<String, Vec<usize>> {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, group) in GROUPS.iter().enumerate() {
        for &word in group {
            groups.entry(form(word)).or_default().push(index);
        }
    }
    groups
}

/// Returns the groups of a lowercase word, by their numbers.
pub(super) fn groups_of(word: &str) -> Vec<usize> {
    let things = THINGS.get(&plain_form(word)).into_iter();
    let actions = action_stem(word).and_then(|action| ACTIONS.get(&action));
    things.chain(actions).flatten().copied().collect()
}

/// Returns the words for the same things as a lowercase word.
pub(super) fn synonyms(word: &str) -> Vec<&'static str> {
    groups_of(word).into_iter().filter_map(|group| GROUPS.get(group)).flatten().copied().collect()
}

/// Whether any word of the groups is so.
pub(super) fn any_word(is_so: impl Fn(&str) -> bool) -> bool {
    GROUPS.iter().flatten().any(|word| is_so(word))
}

/// Returns stems of things of which a stem is the kind.
pub(super) fn things_of_kind(stem: &str) -> &'static [String] {
    KINDS_OF.get(stem).map(Vec::as_slice).unwrap_or_default()
}

//! The English words that are nobody's name: they connect others, go with any data, or open sentences.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Function words: they end a phrase.
const FUNCTION_WORDS: &str = "\
    a an the this that these those its their his her our your my it they them he she we you i me us him one ones \
    is are was were be been being am do does did done doing has have had having can could may might must shall \
    should will would not no nor and or but if than then as at by for from in into of off on onto out over to \
    toward towards under up upon with within without about above across after against along among around before \
    behind below beneath beside besides between beyond during except inside near outside past per since through \
    throughout until till via versus vs there here where when who whom whose which what why how while because so \
    such too very also only just even still yet ever never always often please let lets each every all any both \
    either neither some many much more most less least few fewer several other others another own same again \
    further once twice thrice whether though although however whatever whichever whoever however respectively s t \
    dont doesnt didnt isnt arent wasnt werent hasnt havent cannot cant wont id ids eg ie etc rather instead \
    according due like than";

/// Words of analysis, of time, of measure and of databases, and adjectives that go with anything.
const GENERIC_WORDS: &str = "\
    number numbers count counts total totals sum sums average averages avg mean median mode maximum minimum max \
    min maximal minimal variance deviation percentile quantile distribution trend top bottom first last next \
    previous second third final different distinct unique various list show give find tell display return get \
    compute calculate determine name names named called value values detail details information info data database \
    databases dataset table tables row rows column columns field fields record records query queries question \
    questions answer answers result results report reports entry entries schema schemas sql kql chart plot graph \
    percentage percentages percent share shares ratio ratios rate rates proportion fraction difference differences \
    change changes increase decrease growth sorted alphabetical alphabetically ascending descending lexicographic \
    chronological grouped group groups rank ranked combination combinations pair pairs kind kinds type types sort \
    way ways example examples case cases part parts half quarter quarters time times date dates day days week \
    weeks month months year years hour hours minute minutes seconds today yesterday tomorrow tonight decade \
    decades century weekday weekdays weekend weekends daily weekly monthly yearly annual annually hourly morning \
    afternoon evening night noon midnight mornings afternoons evenings nights period periods season seasons \
    monday tuesday wednesday thursday friday \
    saturday sunday january february march april june july august september october november december jan feb mar \
    apr jun jul aug sep sept oct nov dec christmas easter thanksgiving mile miles kilometer kilometers kilometre \
    kilometres km meter meters metre metres foot feet inch inches yard pound pounds kg kilogram kilograms gram \
    grams ton tons tonne tonnes acre acres hectare hectares liter liters litre litres dollar dollars usd euro euros \
    cent cents degree degrees celsius fahrenheit byte bytes kb mb gb \
    unit units new newest old oldest older young youngest younger big bigger biggest small smaller smallest large \
    larger largest high higher highest low lower lowest long longer longest short shorter shortest great greater \
    greatest good best better bad worst worse common popular frequent frequently rare available certain possible \
    exact exactly approximate approximately roughly overall whole entire full complete main major minor single \
    double similar equal equals late later latest early earlier earliest busy busiest heavy heavier heaviest light \
    lighter lightest tall taller tallest fast faster fastest slow slower slowest expensive cheap cheaper cheapest \
    costliest hot hottest cold coldest warm warmest far farther farthest recent recently current currently actual \
    given specific particular individual respective corresponding following associated related existing known \
    unknown missing empty null duplicate true false yes people person persons two three four five six seven eight \
    nine ten eleven twelve hundred thousand million billion dozen zero thing things anything something everything \
    nothing word words text number's overview summary reason reasons meaning id identifier identifiers item items piece pieces \
    list lists set sets amount amounts quantity level levels status history sample samples statistic statistics \
    metric metrics usage utilization load figure figures highest-ranked kilobyte kilobytes megabyte megabytes gigabyte \
    gigabytes terabyte terabytes tb watt watts kilowatt kilowatts volt volts milligram milligrams mg millilitre \
    millilitres milliliter milliliters ml centimeter centimeters centimetre centimetres cm mm cover coverage reading \
    readings measurement measurements strength intensity size sizes state states";

/// Words with which people open sentences and headings about data.
const OPENERS: &[&str] = &[
    "key",
    "findings",
    "finding",
    "note",
    "insight",
    "insights",
    "conclusion",
    "analysis",
    "breakdown",
    "based",
    "according",
    "however",
    "additionally",
    "meanwhile",
    "notably",
    "finally",
    "therefore",
    "interestingly",
    "similarly",
    "conversely",
    "combined",
    "altogether",
    "together",
    "nearly",
    "almost",
    "only",
    "both",
    "yes",
    "sure",
    "great",
    "none",
    "congratulations",
    "step",
    "ranking",
    "top",
    "gross",
    "net",
    "grand",
];

static FUNCTION: LazyLock<HashSet<&str>> = LazyLock::new(|| FUNCTION_WORDS.split_whitespace().collect());
static GENERIC: LazyLock<HashSet<&str>> = LazyLock::new(|| GENERIC_WORDS.split_whitespace().collect());

/// Whether a lowercase word only connects others.
pub fn is_function_word(word: &str) -> bool {
    FUNCTION.contains(word)
}

/// Returns the words that go with any data, in no order.
pub fn generic_words() -> impl Iterator<Item = &'static str> {
    GENERIC.iter().copied()
}

/// Whether a lowercase word goes with any data.
pub fn is_generic(word: &str) -> bool {
    // `Taught on Mondays`.
    let is_weekday = |one: &str| one.ends_with("day") && GENERIC.contains(one);
    GENERIC.contains(word) || word.strip_suffix('s').is_some_and(is_weekday)
}

/// Whether a lowercase word is no name: it connects others, goes with any data, or opens sentences.
pub fn is_common_word(word: &str) -> bool {
    is_function_word(word) || is_generic(word) || OPENERS.contains(&word)
}

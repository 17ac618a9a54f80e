//! The English words that say nothing about which data is meant, and those that are actions. A word that is missing here is
//! at worst taken for one that the data must explain.

use std::collections::HashSet;
use std::sync::LazyLock;

use querent_proof::common_words::generic_words;
pub(super) use querent_proof::common_words::{is_function_word, is_generic};

use super::synonyms::{any_word, groups_of};
use super::vocabulary::is_word_in_short;
use super::words::{stem, without_plural};

/// Actions, in the form of a dictionary.
const VERBS: &str = "\
    accept achieve act add adopt allow appear apply approve arrive ask assign attend award base bear become begin \
    belong book borrow break bring build burn buy call cancel carry catch cause change charge check choose close \
    collect come complain complete connect consist contain cost create cross cut deal deliver depart describe \
    design die direct drink drive drop earn eat employ end enrol enroll enter exceed exist fail fall feature fill \
    find finish fly follow gain generate give go govern grow happen hear help hire hit hold host include increase involve \
    join keep kill know land last launch lay lead learn leave lend live locate log lose love make manage measure \
    meet merge miss move need number occur offer open operate order own park participate pass pay perform pick \
    play post prefer print produce propose provide publish purchase raise reach read receive record refer register \
    release remain rent repeat report request require reside return ride rise run save say see sell send serve set \
    share ship show sign sing sit sleep smoke speak specialize spend sponsor stand start stay step stop store \
    study submit suffer supply support take talk teach tell think throw train transfer travel treat try turn \
    undergo use visit vote wait walk want watch wear weigh win work write";

/// Past forms of actions that end in no `ed`, and are no things.
const PAST_FORMS: &str = "\
    began begun born bought broke broken brought built burnt came caught chose chosen drove driven ate eaten fell \
    fallen flew flown found gave given went gone grew grown heard held hit kept knew known laid led left lent lost \
    made met paid put ran rode ridden rose risen said saw seen sold sent set sang sung sat slept spoke spoken \
    spent stood took taken taught told thought threw thrown underwent undergone used wore worn won wrote written";

/// Words that tell rows apart by what goes with any data, and how something is said.
const EMPTY_WORDS: &str = "\
    right now altogether together outstanding pending currently overall remaining upcoming ongoing eldest far near away \
    back ago alone almost already soon maybe perhaps quite else often sometimes usually mostly mainly really hello hi \
    thanks thank starting closing opening operating leading incoming outgoing running";

/// Actions that say no more of rows than that they are there: orders were placed, tickets are sold.
const LIGHT_VERBS: &str = "\
    be place make do give take hold have get send receive record register list store keep occur happen exist run handle \
    process serve work book order buy sell offer know see find use issue create perform contain include belong own come \
    go appear took taken gave given got went gone came ran kept knew known found start begin began begun end";

/// Words of other languages: a question with more of them than of English ones is not looked at.
const FOREIGN_WORDS: &str = "\
    der die das den dem des ein eine einen einer und oder wie viele viel welche welcher welches ist sind war waren \
    wer wo wann hat haben gibt mit von nach zu aus bei im zum zur am pro nicht le la les des du un une et ou est \
    sont combien quel quelle quels quelles qui que quoi dans avec sur par pour au aux el los las una y o es son \
    cual cuales quien que cuantos cuantas cuanto cuanta donde con por para del en hay il lo gli uno e sono quanti \
    quante quale quali chi che dove di da nel nella con per os um uma quantos quantas qual quais quem onde com em \
    no na dos das het een van hoeveel welke zijn naar met ile kac hangi jak ile kto gdzie jest \
    alle zeige nenne jede jeder jedes jeden unsere unser ohne nur auch letzte letzten diese dieser keine kein mehr \
    montre donne toutes tous chaque ont sans leur notre nos cette ces elle avait muestra todos todas cada fue fueron han \
    nuestro nuestra mostre foi foram mais mostra elenca tutti tutte ogni senza toon geef elke ieder heeft hebben meest \
    zonder onze deze wat waar";

/// Words that are in the list above and English too.
const SHARED_WORDS: &str = "die war was in on am pro per no do me so as an at is to la le des par pour en e o y a i du \
    um os na di da il lo el con del con del que es son den un los las van";

/// Short words that are no abbreviations.
const WHOLE_SHORT_WORDS: &str = "\
    age art bag bar bed bus car cat cup day dog ear egg end era eye fan fee gas hat ice ink job key kid law leg \
    lot map man men net oil pay pen pet pie pin pot row sea set sex sky son sum sun tag tax tea tie tip toy war \
    way web win year and for not the per";

fn set(words: &'static str) -> HashSet<&'static str> {
    words.split_whitespace().collect()
}

static FOREIGN: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let shared = set(SHARED_WORDS);
    set(FOREIGN_WORDS).into_iter().filter(|word| !shared.contains(word)).collect()
});
static EMPTY: LazyLock<HashSet<&str>> = LazyLock::new(|| set(EMPTY_WORDS));
static PAST: LazyLock<HashSet<&str>> = LazyLock::new(|| set(PAST_FORMS));
static ACTION_STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| VERBS.split_whitespace().map(stem).collect());
static LIGHT_STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| LIGHT_VERBS.split_whitespace().map(stem).collect());
static SHORT: LazyLock<HashSet<&str>> = LazyLock::new(|| set(WHOLE_SHORT_WORDS));

/// Whether a lowercase word says nothing of which data is meant: `right now`, `remaining`, `really`.
pub(super) fn is_empty_word(word: &str) -> bool {
    const THINGS: [&str; 9] =
        ["family", "supply", "reply", "assembly", "anomaly", "jelly", "butterfly", "monopoly", "rally"];
    EMPTY.contains(word) || (word.len() > 4 && word.ends_with("ly") && !THINGS.contains(&word))
}

/// Whether a lowercase word is the superlative of an adjective: it says which of the things, and is none itself.
pub(super) fn is_superlative(word: &str) -> bool {
    const THINGS: [&str; 17] = [
        "interest",
        "request",
        "forest",
        "harvest",
        "contest",
        "arrest",
        "invest",
        "protest",
        "conquest",
        "digest",
        "suggest",
        "manifest",
        "rainforest",
        "inquest",
        "unrest",
        "behest",
        "houseguest",
    ];
    word.len() > 5 && word.ends_with("est") && !THINGS.contains(&word)
}

/// Whether a lowercase word is a matter of taste.
pub(super) fn is_of_taste(word: &str) -> bool {
    const TASTES: [&str; 22] = [
        "beautiful",
        "pretty",
        "prettiest",
        "nice",
        "nicest",
        "ugly",
        "ugliest",
        "funny",
        "funniest",
        "cute",
        "cutest",
        "boring",
        "delicious",
        "tastiest",
        "charming",
        "handsome",
        "lovely",
        "loveliest",
        "romantic",
        "scariest",
        "coolest",
        "annoying",
    ];
    TASTES.contains(&word)
}

/// Whether a lowercase word is of another language than English, and not of English too.
pub(super) fn is_foreign(word: &str) -> bool {
    FOREIGN.contains(word)
}

/// Whether a lowercase word is an action where it begins a phrase: no form of it is a thing.
pub(super) fn is_past_action(word: &str) -> bool {
    let is_regular = word.len() > 4 && word.ends_with("ed") && !word.ends_with("eed");
    is_regular || PAST.contains(word)
}

/// Whether a lowercase word is an action where it follows a thing.
pub(super) fn is_action(word: &str) -> bool {
    is_past_action(word)
        || ACTION_STEMS.contains(&stem(word))
        || (word.len() > 5 && word.ends_with("ing") && !word.ends_with("thing"))
}

/// Whether a lowercase word is an action of somebody or something else than who asks: `goes`.
pub(super) fn is_third_person(word: &str) -> bool {
    word.ends_with('s') && !word.ends_with("ss") && ACTION_STEMS.contains(&stem(word))
}

/// Whether a lowercase word is an action that tells no rows apart.
pub(super) fn is_light_verb(word: &str) -> bool {
    LIGHT_STEMS.contains(&stem(word))
}

/// Whether a lowercase word is an English one of these lists.
pub(super) fn is_english(word: &str) -> bool {
    let singular = without_plural(word);
    is_whole_word(word)
        || is_function_word(word)
        || is_generic(word)
        || is_generic(&singular)
        || !groups_of(word).is_empty()
        || ACTION_STEMS.contains(&stem(word))
}

/// Whether a short lowercase word is itself one, and no abbreviation of a longer one.
pub(super) fn is_whole_word(word: &str) -> bool {
    SHORT.contains(word)
}

/// Whether a lowercase word of a column's name says nothing of what it holds: `abv` and `ibu`.
pub(super) fn is_opaque(word: &str) -> bool {
    const LONGEST: usize = 3;
    const UNITS: [&str; 25] = [
        "pct", "kwh", "kw", "mw", "usd", "eur", "gbp", "cm", "mm", "km", "kg", "lb", "oz", "mv", "db", "hz", "ms",
        "ts", "dt", "yr", "no", "num", "qty", "lat", "lon",
    ];
    if UNITS.contains(&word) {
        return false;
    }
    let is_whole = is_whole_word(word) || is_generic(word) || is_function_word(word) || !groups_of(word).is_empty();
    // `Sal` and `sts` are read as a salary and a status; of `ibu` nobody can tell.
    let is_short =
        any_word(|whole| is_word_in_short(word, whole)) || generic_words().any(|whole| is_word_in_short(word, whole));
    let is_code = (2..=LONGEST).contains(&word.len()) && word.chars().all(char::is_alphabetic) && word != "id";
    is_code && !is_whole && !is_short
}

/// Returns whether a text says itself that there is no answer.
pub(crate) fn declines(text: &str) -> bool {
    const WORDS: [&str; 16] = [
        "cannot",
        "can't",
        "can not",
        "could not",
        "unable to",
        "not available",
        "not possible",
        "no information",
        "no table",
        "no column",
        "does not contain",
        "doesn't contain",
        "do not contain",
        "does not have",
        "is not in the data",
        "not recorded",
    ];
    let text = text.to_lowercase().replace('\u{2019}', "'");
    WORDS.iter().any(|word| text.contains(word))
}

//! What the words of a sentence say of its numbers: a total, a mean, a difference, a ratio, a share or a change.

use super::bounds::PERIODS;
use super::tokens::find_word;

/// What words announce.
#[derive(Clone, Copy)]
pub(super) struct AnnouncedOperation {
    pub(super) total: bool,
    pub(super) average: bool,
    /// A loss, which is said without its sign.
    pub(super) loss: bool,
    pub(super) median: bool,
    pub(super) difference: bool,
    pub(super) ratio: bool,
    pub(super) share: bool,
    /// A change, of which a percentage is no share.
    pub(super) growth: bool,
    /// It is one upwards, or downwards, by all words.
    pub(super) direction: Option<ChangeDirection>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeDirection {
    Up,
    Down,
}

/// Words of a change from one number to another, which is a difference of the two: upwards, downwards, and of no direction
/// that is known here.
const RISES: [&str; 25] = [
    "soar",
    "surged",
    "climb",
    "jumped",
    "swell",
    "expanded",
    "grew",
    "rose",
    "increase",
    "growth",
    "up by",
    " up on ",
    " up from ",
    "mehr als",
    "más que",
    "plus que",
    "mais que",
    "mais do que",
    "meer dan",
    "gestiegen",
    " stieg",
    "aument",
    "augment",
    " subió",
    "gestegen",
];
const FALLS: [&str; 28] = [
    "slipp",
    "slid ",
    "slump",
    "plung",
    "plummet",
    "tumbl",
    "dipped",
    "contracted",
    "fell",
    "shrank",
    "shrunk",
    "decrease",
    "drop",
    "declin",
    "down by",
    " down on ",
    " down from ",
    "weniger als",
    "menos que",
    "moins que",
    "menos do que",
    "minder dan",
    "gesunken",
    " sank",
    "disminuy",
    "diminu",
    " cayó",
    "gedaald",
];
const OTHER_CHANGES: [&str; 2] = [" caiu", " subiu"];
/// Words that compare, and say a direction as well.
const MORE: [&str; 5] = [" gain", "higher", "more", "larger", "greater"];
const LESS: [&str; 4] = ["lower", "fewer", "less", "smaller"];
/// Words by which a number without its sign is a loss.
const LOSSES: [&str; 53] = [
    "spent",
    "spend",
    "outgoing",
    "outgoings",
    "debit",
    "debits",
    "paid",
    "payment",
    "payments",
    "charge",
    "charged",
    "expense",
    "expenses",
    "withdrawn",
    "withdrawal",
    "purchase",
    "purchases",
    "bill",
    "lost",
    "loss",
    "losses",
    "deficit",
    "negative",
    "shortfall",
    "fell",
    "dropped",
    "declined",
    "decreased",
    "shrank",
    "early",
    "down",
    "below",
    "red",
    "minus",
    "under",
    "shortfalls",
    "overdrawn",
    "owes",
    "owed",
    "debt",
    "verlust",
    "verlor",
    "verloren",
    "perte",
    "perdu",
    "moins",
    "pérdida",
    "perdió",
    "perda",
    "perdeu",
    "perdita",
    "verlies",
    "verloor",
];
/// Ends of a comparison: `older than`, `warmer than`.
const COMPARES: &str = "er than ";

impl AnnouncedOperation {
    pub(super) fn in_text(text: &str) -> Self {
        let text = without_bounds(&text.to_lowercase());
        let has = |words: &[&str]| has_any(&text, words);
        let is_change = has_plus(&text) || has(&RISES) || has(&FALLS) || has(&OTHER_CHANGES);
        let is_over_time = has(&["over "]) && PERIODS.iter().any(|period| find_word(&text, period).is_some());
        Self {
            // `Of 1,000 payments 310 were in cash`.
            total: is_over_time
                || text.trim_start().starts_with("of ")
                || has(&[
                    "total",
                    "sum",
                    "together",
                    "add up",
                    "adds up",
                    "added up",
                    "combined",
                    "altogether",
                    "in all",
                    "overall",
                    "over the",
                    "across",
                    "insgesamt",
                    "gesamt",
                    "zusammen",
                    "en tout",
                    "in tutto",
                    "en conjunto",
                    "em conjunto",
                    "totaal",
                    "ensemble",
                    "junto",
                    "junta",
                    "ao todo",
                    "samen",
                    "insieme",
                ]),
            loss: says_loss(&text),
            median: has(&["median", "mediane", "mediana", "médiane"]),
            average: has(&[
                "average",
                "typical",
                "mean",
                "on avg",
                "durchschnitt",
                "im schnitt",
                "moyen",
                "promedio",
                "la media ",
                "in media ",
                "média",
                "gemiddeld",
                "de media",
            ]),
            difference: is_by_number(&text)
                || is_up_or_down(&text)
                || is_change
                // A margin in percent is a share, and no difference.
                || (has(&["margin"]) && !has(&["%", "percent"]))
                || has(&[
                    "more",
                    "less",
                    "fewer",
                    "difference",
                    "gap",
                    "ahead",
                    "behind",
                    "higher",
                    "lower",
                    "between",
                    "range",
                    "change",
                    " gain",
                    "above",
                    "below",
                    "that leaves",
                    "leaving",
                    "remain",
                    "the rest",
                    "were not ",
                    "was not ",
                    "are not ",
                    "is not ",
                    "spread",
                    "outsold",
                    "outnumber",
                    "beat",
                    "exceed",
                    "surpass",
                    "trail",
                    "span",
                    "apart",
                    "separate",
                    "differ",
                    "short of",
                    "lead of",
                    "clear of",
                    "years before",
                    "years after",
                    "years older",
                    "years younger",
                    "years newer",
                    "months before",
                    "months after",
                    "lead over",
                    "plus que",
                    "moins que",
                    "leads by",
                    "vorsprung",
                    "rückstand",
                    "unterschied",
                    "ventaja",
                    "diferencia",
                    "vantagem",
                    "diferença",
                    "avance",
                    "différence",
                    "écart",
                    "voorsprong",
                    "achterstand",
                    "verschil",
                    "de plus",
                    "de moins",
                    COMPARES,
                ]),
            direction: direction_of(&text),
            growth: is_change,
            ratio: has_times_mark(&text)
                || has(&[
                    " to one",
                    " to 1",
                    "times",
                    "ratio",
                    "twice",
                    "per ",
                    "factor",
                    "one in ",
                    "1 in ",
                    "density",
                    "for every ",
                    "for each ",
                    " fois ",
                    "mal so ",
                    " veces ",
                    " vezes ",
                    " keer ",
                    " volte ",
                ]),
            share: has(&[
                "%",
                "percent",
                "prozent",
                "pour cent",
                "share",
                "proportion",
                "fraction",
                "out of every ",
                "out of 100",
                "half of",
                "half the",
                "half all",
                "half our",
                "half its",
                "half their",
                "half these",
                "by half",
                "by a half",
                "sixth of",
                "sixths of",
                "seventh of",
                "eighth of",
                "eighths of",
                "ninth of",
                "twelfth of",
                "twentieth of",
                "quarter of",
                "quarters of",
                "third of",
                "thirds of",
                "fifth of",
                "fifths of",
                "tenth of",
                "tenths of",
                "by a third",
                "by a quarter",
                "by a fifth",
                "by a tenth",
                "by one third",
                "by one quarter",
                "drittel",
                "viertel",
                "hälfte",
                " tiers",
                " quart ",
                " quarts ",
                "moitié",
                "tercio",
                "cuarta parte",
                "cuartas partes",
                "mitad",
                "terço",
                " quarto ",
                "metade",
                "een derde",
                "kwart",
                "helft",
                "un terzo",
                "metà",
            ]),
        }
    }
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Whether a text says that a number without its sign is a loss.
pub(super) fn says_loss(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    LOSSES.iter().any(|word| lower.contains(word) && find_word(&lower, word).is_some())
}

/// Returns the direction of the change that a text says.
pub(super) fn direction_in(text: &str) -> Option<ChangeDirection> {
    direction_of(&without_bounds(&text.to_lowercase()))
}

fn direction_of(lower: &str) -> Option<ChangeDirection> {
    let has = |words: &[&str]| has_any(lower, words);
    match (has(&RISES) || has(&MORE), has(&FALLS) || has(&LESS)) {
        (true, false) => Some(ChangeDirection::Up),
        (false, true) => Some(ChangeDirection::Down),
        _ => None,
    }
}

/// Whether a sentence says more of a number than that it was found: then nobody knows which number is meant.
pub(super) fn announces_more(sentence: &str) -> bool {
    const OF_REST: [&str; 9] =
        ["not", "remaining", "rest", "without", "outside", "other", "others", "except", "excluding"];
    let announced = AnnouncedOperation::in_text(sentence);
    let is_rest = OF_REST.iter().any(|word| find_word(sentence, word).is_some());
    let is_of_several = announced.total || announced.average || announced.median;
    announced.difference || announced.ratio || announced.growth || announced.share || is_of_several || is_rest
}

/// Returns a lowercase text without the words that bound a number, `more than 5`, which announce no difference; those of
/// `3 more than 5` do.
fn without_bounds(text: &str) -> String {
    const BOUNDS: [&str; 6] =
        ["more than ", "less than ", "fewer than ", "higher than ", "lower than ", "greater than "];
    let mut plain = text.to_owned();
    for phrase in BOUNDS {
        let mut from = 0;
        while let Some(at) = plain.get(from..).and_then(|rest| rest.find(phrase)).map(|at| from + at) {
            let behind = plain[at + phrase.len()..].trim_start_matches(|c: char| "$€£¥(".contains(c));
            let is_bound = behind.starts_with(|c: char| c.is_ascii_digit());
            let before = plain[..at].split_whitespace().next_back().unwrap_or_default();
            let is_difference = before.contains(|c: char| c.is_ascii_digit()) || before.ends_with('%');
            if is_bound && !is_difference {
                plain.replace_range(at..at + phrase.len(), "");
                from = at;
            } else {
                from = at + phrase.len();
            }
        }
    }
    plain
}

/// Whether a text says by how much: `won by 532 votes`.
fn is_by_number(text: &str) -> bool {
    text.match_indices(" by ").any(|(at, by)| {
        let behind = text[at + by.len()..].trim_start_matches(|c: char| "$€£¥(".contains(c));
        behind.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a text says a change by its sign: `+1,260 orders`.
fn has_plus(text: &str) -> bool {
    text.match_indices('+').any(|(at, mark)| {
        let is_begin = text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
        let behind = text[at + mark.len()..].trim_start_matches(|c: char| "$€£¥ ".contains(c));
        is_begin && behind.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a text says by how much something is up or down: `up 180 from the year before`.
fn is_up_or_down(text: &str) -> bool {
    [" up ", " down "].iter().any(|word| {
        text.match_indices(word).any(|(at, found)| {
            let behind = text[at + found.len()..].trim_start_matches(|c: char| "$€£¥(".contains(c));
            behind.starts_with(|c: char| c.is_ascii_digit())
        })
    })
}

/// Whether a text says so many times as much: `4x`.
fn has_times_mark(text: &str) -> bool {
    text.match_indices(['x', '×']).any(|(at, mark)| {
        let is_behind_digit = text[..at].ends_with(|c: char| c.is_ascii_digit());
        let is_end = text[at + mark.len()..].chars().next().is_none_or(|c| !c.is_alphanumeric());
        is_behind_digit && is_end
    })
}

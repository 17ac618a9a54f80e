//! Numbers in words of German, French, Spanish, Portuguese, Italian and Dutch: `zweiundzwanzig`, `quatre-vingt-douze`,
//! `treinta y cinco`, `ventiquattro`, `dois mil`, and parts and factors: `ein Drittel`, `le double`. Words that English has as
//! well begin none.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::bounds::{NumberBound, bound_before};
use super::parts::part_of_percent;
use super::tokens::{TextTokenKind, last_words};

/// Words that begin a number.
const SMALL: &[(u32, &str)] = &[
    (2, "zwei deux dois duas twee"),
    (3, "drei trois tres três drie"),
    (4, "vier quatre cuatro quatro quattro"),
    (5, "fünf cinq cinco cinque vijf"),
    (6, "sechs seis zes"),
    (7, "sieben siete sete sette zeven"),
    (8, "acht huit ocho oito"),
    (9, "neun neuf nueve nove negen"),
    (10, "zehn diez dieci"),
    (11, "onze undici"),
    (12, "zwölf douze doce doze dodici twaalf"),
    (13, "dreizehn treize trece treze tredici dertien"),
    (14, "vierzehn quatorze catorce catorze quattordici veertien"),
    (15, "fünfzehn quinze quince quindici vijftien"),
    (16, "sechzehn dieciséis dezesseis dezasseis sedici zestien"),
    (17, "siebzehn diecisiete dezessete dezassete diciassette zeventien"),
    (18, "achtzehn dieciocho dezoito diciotto achttien"),
    (19, "neunzehn diecinueve dezenove dezanove diciannove negentien"),
    (20, "zwanzig vingt veinte vinte twintig"),
    (21, "veintiuno veintiún"),
    (22, "veintidós"),
    (23, "veintitrés"),
    (24, "veinticuatro"),
    (25, "veinticinco"),
    (26, "veintiséis"),
    (27, "veintisiete"),
    (28, "veintiocho"),
    (29, "veintinueve"),
    (30, "dreißig dreissig trente treinta trinta trenta dertig"),
    (40, "vierzig quarante cuarenta quarenta quaranta veertig"),
    (50, "fünfzig cinquante cincuenta cinquenta cinquanta vijftig"),
    (60, "sechzig soixante sesenta sessenta sessanta zestig"),
    (70, "siebzig septante setenta settanta zeventig"),
    (80, "achtzig ochenta oitenta ottanta tachtig"),
    (90, "neunzig nonante noventa novanta negentig"),
    (100, "cien"),
    (200, "doscientos doscientas duzentos duzentas"),
    (300, "trescientos trescientas trezentos trezentas"),
    (400, "cuatrocientos cuatrocientas quatrocentos quatrocentas"),
    (500, "quinientos quinientas quinhentos quinhentas"),
    (600, "seiscientos seiscientas seiscentos seiscentas"),
    (700, "setecientos setecientas setecentos setecentas"),
    (800, "ochocientos ochocientas oitocentos oitocentas"),
    (900, "novecientos novecientas novecentos novecentas"),
];
/// Words that only go on with a number: alone they mean something else, or are English.
const LATER: &[(u32, &str)] = &[
    (1, "un une uno una um uma ein eins een"),
    (2, "due dos twee"),
    (3, "tre tré"),
    (6, "six sei"),
    (7, "sept"),
    (8, "otto"),
    (10, "dix dez tien"),
    (11, "elf once"),
    (16, "seize"),
    (20, "venti vingts"),
];
const HUNDREDS: [&str; 7] = ["hundert", "cent", "cents", "ciento", "cientos", "cento", "honderd"];
/// Larger words, and what they stand for.
const LARGE: &[(f64, &str)] = &[
    (1e3, "tausend mille mil mila duizend"),
    (1e6, "million millionen millions millón millones milhão milhões milione milioni miljoen"),
    (1e9, "milliarde milliarden milliard milliards bilhão bilhões miliardo miliardi miljard"),
];
/// Words between the parts of a number.
const LINKS: [&str; 3] = ["et", "y", "e"];
/// Parts of words that are a number in one word, each with what it stands for.
const PARTS: [(&str, u32); 6] =
    [("tausend", 1000), ("duizend", 1000), ("mila", 1000), ("hundert", 100), ("honderd", 100), ("cento", 100)];
/// What stands between units and tens in one word.
const UNIT_LINKS: [&str; 3] = ["und", "ën", "en"];

static SMALL_WORDS: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| words_of(SMALL).collect());
static LATER_WORDS: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| words_of(LATER).collect());
/// Units and tens by their first letter: each word of an answer is asked whether it begins with one.
static BY_INITIAL: LazyLock<HashMap<char, Vec<(&'static str, u32)>>> = LazyLock::new(|| {
    let mut by_initial: HashMap<_, Vec<_>> = HashMap::new();
    let parts = words_of(SMALL).chain(words_of(LATER)).filter(|(_, value)| *value < 10 || value.is_multiple_of(10));
    for (word, value) in parts {
        by_initial.entry(word.chars().next().unwrap_or_default()).or_default().push((word, value));
    }
    by_initial
});

/// A number in words: its value, how far it rounds, and where it ends.
pub(super) type ForeignNumber = (f64, f64, usize);

/// Words before a rounded number, of languages that write points between thousands.
const BEFORE_THOUSANDS: [&str; 24] = [
    "etwa",
    "rund",
    "fast",
    "knapp",
    "gut",
    "über",
    "unter",
    "ungefähr",
    "beinahe",
    "environ",
    "presque",
    "quasi",
    "casi",
    "unos",
    "unas",
    "bijna",
    "ongeveer",
    "ruim",
    "quase",
    "oltre",
    "los",
    "d'environ",
    "d’environ",
    "als",
];

/// Whether three digits behind a point are of thousands, by what stands beside the number: `fast 3.500`, and `3.500 €`,
/// since money has no three decimals. Prices of fuel have, and are read both ways.
pub(super) fn has_grouped_thousands(before: &str, behind: &str) -> bool {
    let behind = behind.trim_start_matches([' ', '\u{a0}', '\u{202f}']);
    let next = behind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    let is_money = behind.starts_with('€')
        || before.trim_end().ends_with('€')
        || ["euro", "euros", "eur", "chf", "franken", "francs"].contains(&next.as_str());
    is_money || BEFORE_THOUSANDS.contains(&last_words(before, 1).as_str())
}

/// Reads the number in words that begins at a place of a text.
pub(super) fn foreign_number(text: &str, start: usize) -> Option<ForeignNumber> {
    let word_at = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        let word = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        (word.to_lowercase(), at + word.len())
    };
    let (first, mut end) = word_at(start);
    let (mut total, mut tolerance) = (0.0, 0.5);
    let mut current = match SMALL_WORDS.get(first.as_str()).copied().or_else(|| one_word(&first)) {
        Some(value) => f64::from(value),
        // `Cent vingt`, but `10 por cento` and `a cent`.
        None if HUNDREDS.contains(&first.as_str()) || first == "mil" || first == "mille" => {
            let is_percent = ["por", "per", "pour"].contains(&last_words(&text[..start], 1).as_str());
            let (mut next, mut next_end) = word_at(end + 1);
            if LINKS.contains(&next.as_str()) {
                (next, next_end) = word_at(next_end + 1);
            }
            let goes_on =
                next_end <= text.len() && (SMALL_WORDS.contains_key(next.as_str()) || one_word(&next).is_some());
            if is_percent || !goes_on {
                return None;
            }
            if HUNDREDS.contains(&first.as_str()) {
                100.0
            } else {
                total = 1000.0;
                0.0
            }
        }
        None => return None,
    };
    let mut largest_scale = if total > 0.0 { total } else { f64::INFINITY };
    while text.get(end..).is_some_and(|rest| rest.starts_with([' ', '-'])) {
        let (mut word, mut word_end) = word_at(end + 1);
        let is_linked = LINKS.contains(&word.as_str()) && text[word_end..].starts_with([' ', '-']);
        if is_linked {
            (word, word_end) = word_at(word_end + 1);
        }
        let small = unit(&word).or_else(|| one_word(&word)).map(f64::from);
        let rest: f64 = current % 100.0;
        let scale =
            LARGE.iter().find(|(_, words)| words.split(' ').any(|known| known == word)).map(|(scale, _)| *scale);
        match (small, scale) {
            // `Quatre-vingts`.
            (Some(value), _) if value == 20.0 && rest == 4.0 && !is_linked => current += 76.0,
            // `Un` alone is no number.
            (Some(value), _) if value < 20.0 && rest >= 20.0 && rest % 10.0 == 0.0 => current += value,
            (Some(value), _) if (2.0..100.0).contains(&value) && rest == 0.0 => current += value,
            (Some(value), _) if value >= 100.0 && current == 0.0 => current = value,
            (None, _) if HUNDREDS.contains(&word.as_str()) && !is_linked && (1.0..10.0).contains(&current) => {
                current *= 100.0;
            }
            (None, Some(scale)) if !is_linked && current > 0.0 && scale < largest_scale => {
                total += current * scale;
                (current, largest_scale, tolerance) = (0.0, scale, 0.5 * scale);
                end = word_end;
                continue;
            }
            _ => break,
        }
        tolerance = 0.5;
        end = word_end;
    }
    Some((total + current, tolerance, end))
}

/// Returns the words of a list, each with its number.
fn words_of(list: &'static [(u32, &'static str)]) -> impl Iterator<Item = (&'static str, u32)> {
    list.iter().flat_map(|(value, words)| words.split(' ').map(move |word| (word, *value)))
}

/// Returns the number that one lowercase word is made of: `dreihundertzwölf`, `vierentwintig`, `quarantotto`.
fn one_word(word: &str) -> Option<u32> {
    for (part, factor) in PARTS {
        if let Some((head, tail)) = word.split_once(part).filter(|(head, _)| !head.is_empty()) {
            let head = unit(head).or_else(|| one_word(head))?;
            let tail = tail.strip_prefix("und").unwrap_or(tail);
            let tail = if tail.is_empty() { 0 } else { unit(tail).or_else(|| one_word(tail))? };
            return (head < 1000 && tail < factor).then_some(head * factor + tail);
        }
    }
    let parts = BY_INITIAL.get(&word.chars().next()?)?;
    let germanic = parts.iter().filter(|(_, value)| *value < 10).find_map(|(one, value)| {
        let rest = word.strip_prefix(one)?;
        let rest = UNIT_LINKS.iter().find_map(|link| rest.strip_prefix(link))?;
        unit(rest).filter(|ten| *ten >= 20 && ten.is_multiple_of(10)).map(|ten| ten + value)
    });
    // `Ventuno` has no second vowel.
    let italian = || {
        parts.iter().filter(|(_, value)| *value >= 20).find_map(|(ten, value)| {
            let short = &ten[..ten.len() - ten.chars().next_back().map_or(0, char::len_utf8)];
            let rest =
                word.strip_prefix(ten).or_else(|| word.strip_prefix(short).filter(|rest| is_vowel_first(rest)))?;
            unit(rest).filter(|one| *one < 10).map(|one| value + one)
        })
    };
    germanic.or_else(italian)
}

/// Returns the number that a lowercase word is by itself.
fn unit(part: &str) -> Option<u32> {
    SMALL_WORDS.get(part).or_else(|| LATER_WORDS.get(part)).copied()
}

fn is_vowel_first(text: &str) -> bool {
    text.starts_with(['u', 'o'])
}

/// Parts of a whole, in percent: `ein Drittel`, `la moitié`.
const SHARES: &[(f64, &str)] = &[
    (50.0, "die hälfte|der hälfte|la moitié|la mitad|metade|de helft|la metà"),
    (100.0 / 3.0, "ein drittel|einem drittel|un tiers|un tercio|una tercera parte|um terço|een derde deel|un terzo"),
    (200.0 / 3.0, "zwei drittel|deux tiers|dos tercios|dos terceras partes|dois terços|twee derde|tweederde|due terzi"),
    (25.0, "ein viertel|einem viertel|una cuarta parte|un cuarto|um quarto|un quart|een kwart|un quarto"),
    (75.0, "drei viertel|dreiviertel|trois quarts|tres cuartas partes|três quartos|driekwart|tre quarti"),
    (20.0, "ein fünftel|einem fünftel|un cinquième|una quinta parte|um quinto|een vijfde deel|un quinto"),
    (10.0, "ein zehntel|einem zehntel|un dixième|una décima parte|um décimo|een tiende deel|un decimo"),
];
/// Those of them that mean something else where no `of` follows.
const SHARES_OF: [&str; 9] = [
    "metade",
    "un cuarto",
    "um quarto",
    "un quart",
    "un quarto",
    "trois quarts",
    "três quartos",
    "um quinto",
    "un quinto",
];
const OF: [&str; 12] = ["de", "des", "du", "d", "del", "dei", "da", "do", "das", "dos", "della", "delle"];
/// So many times as much: `doppelt so viel`, `le double`.
const FACTORS: &[(f64, &str)] = &[
    (0.5, "halb so|half zo|deux fois moins|halbiert|gehalveerd"),
    (1.5, "anderthalbmal so|une fois et demie|una vez y media|uma vez e meia|anderhalf keer"),
    (
        2.0,
        "doppelt so|das doppelte|zweimal so|deux fois plus|le double|el doble|o dobro|il doppio|dubbel zo|verdoppelt|verdubbeld",
    ),
    (
        3.0,
        "dreimal so|das dreifache|het drievoudige|trois fois plus|le triple|el triple|o triplo|il triplo|drie keer zo|verdreifacht",
    ),
    (4.0, "viermal so|das vierfache|le quadruple|el cuádruple|il quadruplo|quatre fois plus|vier keer zo"),
    (5.0, "fünfmal so|das fünffache|cinq fois plus|vijf keer zo"),
    (10.0, "zehnmal so|das zehnfache|dix fois plus|dix fois moins|tien keer zo"),
    (20.0, "zwanzigmal so|vingt fois plus|vingt fois moins|twintig keer zo"),
];

/// The words with which these begin.
static FIRST_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let phrases = SHARES.iter().chain(FACTORS).flat_map(|(_, phrases)| phrases.split('|'));
    phrases.filter_map(|phrase| phrase.split(' ').next()).collect()
});
/// Characters of the longest of these, and more.
const LONGEST_PHRASE: usize = 24;
/// What words behind a number add to it.
const ADDED_PARTS: [(&str, f64); 8] = [
    ("and a half", 0.5),
    ("and a quarter", 0.25),
    ("and three quarter", 0.75),
    ("et demi", 0.5),
    ("y medi", 0.5),
    ("e mei", 0.5),
    ("e mezz", 0.5),
    ("en een half", 0.5),
];

/// Returns the part that the begin of a text adds to a number before it, ` and a half`; `and a quarter of the orders` adds
/// none.
pub(super) fn added_part(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let lower = text.chars().take(LONGEST_PHRASE).collect::<String>().to_lowercase();
    let adds = |words: &str| {
        let behind = lower.strip_prefix(words).map(|behind| behind.trim_start_matches(char::is_alphabetic));
        behind.is_some_and(|behind| !behind.trim_start().starts_with("of"))
    };
    ADDED_PARTS.iter().find(|(words, _)| adds(words)).map(|(_, part)| *part)
}

/// Returns what stands behind the part that a text adds to the number before it: `hours` of `and a half hours`.
pub(super) fn without_added_part(behind: &str) -> &str {
    let text = behind.trim_start();
    let lower = text.chars().take(LONGEST_PHRASE).collect::<String>().to_lowercase();
    let known = ADDED_PARTS.iter().find(|(words, _)| lower.starts_with(words)).filter(|_| added_part(text).is_some());
    let rest = known.and_then(|(words, _)| text.get(words.len()..));
    rest.map_or(text, |rest| rest.trim_start_matches(char::is_alphabetic))
}

/// Returns where a number ends whose part has a number of its own: `six and three quarter hours`.
pub(super) fn end_of_quarters(text: &str, end: usize) -> usize {
    let behind = text.get(end..).unwrap_or_default();
    match added_part(behind) {
        Some(part) if part != 0.5 => text.len() - without_added_part(behind).len(),
        _ => end,
    }
}

/// Returns the part that what stands behind a number adds to it: `two and a half hours`, `two hours and a half`.
pub(super) fn part_behind(behind: &str) -> Option<f64> {
    let behind = behind.trim_start();
    let after_unit = || {
        let (unit, rest) = behind.split_once(' ')?;
        added_part(rest).filter(|_| unit.chars().all(char::is_alphabetic))
    };
    added_part(behind).or_else(after_unit)
}

/// Returns the part of a whole, or the factor, that begins at a place of a text in another language, and where it ends. One
/// that is only a bound, `mehr als die Hälfte`, is compared as a factor is.
pub(super) fn foreign_part(text: &str, start: usize) -> Option<(TextTokenKind, usize)> {
    let rest = text.get(start..)?;
    let first = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if !FIRST_WORDS.contains(first.to_lowercase().as_str()) {
        return None;
    }
    let lower = rest.chars().take(LONGEST_PHRASE).collect::<String>().to_lowercase();
    let stands = |phrase: &str| {
        let behind = rest.get(phrase.len()..).filter(|_| lower.starts_with(phrase))?;
        (!behind.starts_with(char::is_alphanumeric)).then_some(behind)
    };
    let find = |list: &'static [(f64, &'static str)]| {
        let mut all = list.iter().flat_map(|(value, phrases)| phrases.split('|').map(move |phrase| (*value, phrase)));
        all.find_map(|(value, phrase)| Some((value, phrase, stands(phrase)?)))
    };
    if let Some((times, phrase, _)) = find(FACTORS) {
        return Some((TextTokenKind::Factor(times), start + phrase.len()));
    }
    let (value, phrase, behind) = find(SHARES)?;
    let mut words = behind.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let is_of = words.next().is_some_and(|word| OF.contains(&word.to_lowercase().as_str()));
    let is_time = words.next().is_some_and(|word| ["heure", "hora", "ora"].contains(&word));
    let before = last_words(&text[..start], 1);
    let is_half_of_several = ["primeira", "segunda", "outra"].contains(&before.as_str());
    if is_half_of_several || is_time || (SHARES_OF.contains(&phrase) && !is_of) {
        return None;
    }
    let is_bound = bound_before(text, start).is_some_and(NumberBound::is_strict)
        || ["plus d'", "moins d'", "plus d\u{2019}", "moins d\u{2019}"]
            .iter()
            .any(|words| text[..start].ends_with(words));
    let kind = match is_bound {
        true => TextTokenKind::Factor(value / 100.0),
        false => TextTokenKind::Number(part_of_percent(value)),
    };
    Some((kind, start + phrase.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words_of_six_languages() {
        for (text, expected) in [
            ("douze clients", 12.0),
            ("vingt et un vols", 21.0),
            ("quatre-vingts", 80.0),
            ("quatre-vingt-douze", 92.0),
            ("soixante-dix-sept", 77.0),
            ("trois cent quarante", 340.0),
            ("deux mille cinq cents", 2500.0),
            ("zweiundzwanzig Kunden", 22.0),
            ("dreihundertzwölf", 312.0),
            ("viertausendfünfhundert", 4500.0),
            ("zwei Millionen", 2e6),
            ("treinta y cinco pedidos", 35.0),
            ("veintidós", 22.0),
            ("cinco mil", 5000.0),
            ("trinta e cinco", 35.0),
            ("ventiquattro", 24.0),
            ("quarantotto ordini", 48.0),
            ("trecentoventi", 320.0),
            ("vierentwintig", 24.0),
            ("tweeëndertig", 32.0),
            ("vijfhonderd", 500.0),
            ("cent vingt-cinq", 125.0),
            ("cento e vinte e cinco", 125.0),
            ("mil doscientos", 1200.0),
            ("quinientos treinta", 530.0),
        ] {
            let found = foreign_number(text, 0).map(|(value, _, _)| value);
            assert_eq!(found, Some(expected), "{text}");
        }
        for text in ["Mila won", "cent", "Otto", "elf", "once", "seize", "mille", "Camila", "der Tausend", "Undine"] {
            assert_eq!(foreign_number(text, 0), None, "{text}");
        }
        assert_eq!(foreign_number("vier Kunden", 0), Some((4.0, 0.5, 4)));
        assert_eq!(foreign_number("deux et trois", 0), Some((2.0, 0.5, 4)), "two numbers");
    }

    #[test]
    fn parts_and_factors_of_six_languages() {
        let percent = |text: &str| match foreign_part(text, 0) {
            Some((TextTokenKind::Number(number), _)) if number.is_percent => Some(number.value.round()),
            _ => None,
        };
        let factor = |text: &str| match foreign_part(text, 0) {
            Some((TextTokenKind::Factor(times), _)) => Some(times),
            _ => None,
        };
        for (text, expected) in [
            ("Die Hälfte der Besucher", 50.0),
            ("zwei Drittel", 67.0),
            ("un tiers des prêts", 33.0),
            ("trois quarts des votes", 75.0),
            ("una cuarta parte", 25.0),
            ("metade da geração", 50.0),
            ("um terço", 33.0),
            ("driekwart", 75.0),
            ("un quarto delle vendite", 25.0),
        ] {
            assert_eq!(percent(text), Some(expected), "{text}");
        }
        for (text, expected) in [("doppelt so viel", 2.0), ("El doble que", 2.0), ("dix fois moins", 10.0)] {
            assert_eq!(factor(text), Some(expected), "{text}");
        }
        for text in ["un quart d'heure", "metade", "um quarto", "la mitades", "ein Haus"] {
            assert_eq!(foreign_part(text, 0), None, "{text}");
        }
    }
}

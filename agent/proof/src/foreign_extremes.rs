//! Superlatives of German, Dutch, French, Spanish, Portuguese and Italian: `die höchste`, `le plus cher`, `el más largo`; and
//! those of English that no list has, `the dearest`.

use super::extremes::Extreme;
use super::tokens::{last_words, says};

/// Stems of German and Dutch superlatives that say the greatest value, and the least.
const GREATEST_STEMS: [&str; 14] = [
    "höchst", "größt", "grösst", "längst", "teuerst", "meist", "schwerst", "stärkst", "hoogst", "grootst", "langst",
    "duurst", "meest", "zwaarst",
];
const LEAST_STEMS: [&str; 15] = [
    "niedrigst",
    "kleinst",
    "kürzest",
    "billigst",
    "günstigst",
    "wenigst",
    "geringst",
    "leichtest",
    "schwächst",
    "laagst",
    "kortst",
    "goedkoopst",
    "minst",
    "lichtst",
    "zwakst",
];
/// Those of which nobody knows whether the value is the greatest or the least.
const EITHER_STEMS: [&str; 9] =
    ["ältest", "jüngst", "schnellst", "langsamst", "schlechtest", "oudst", "jongst", "snelst", "traagst"];
/// What such a stem ends with: `am wenigsten`, but not `wenigstens`.
const ENDINGS: [&str; 5] = ["e", "en", "er", "es", "em"];
/// Begins of adjectives of Romance languages behind `plus`, `más`, `mais` and `più`.
const HIGH: [&str; 22] = [
    "élev",
    "haut",
    "grand",
    "cher",
    "chèr",
    "long",
    "lourd",
    "vend",
    "fréquent",
    "important",
    "gros",
    "peupl",
    "alt",
    "car",
    "larg",
    "pesa",
    "frecuent",
    "frequent",
    "pobla",
    "costos",
    "lung",
    "popolos",
];
const LOW: [&str; 17] = [
    "bas",
    "petit",
    "court",
    "faible",
    "léger",
    "baj",
    "barat",
    "cort",
    "pequeñ",
    "liger",
    "baix",
    "curt",
    "pequen",
    "piccol",
    "legger",
    "económic",
    "economic",
];
/// Words of these languages by which a row is not the first, or one of several.
const OTHERWISE: [&str; 57] = [
    "nicht",
    "kein",
    "keine",
    "außer",
    "nach",
    "hinter",
    "fast",
    "beinahe",
    "zweite",
    "zweiten",
    "dritte",
    "dritten",
    "einer der",
    "eine der",
    "eines der",
    "zu den",
    "gehört",
    "gehören",
    "niet",
    "geen",
    "tweede",
    "derde",
    "behalve",
    "bijna",
    "op één na",
    "een van de",
    "ten",
    "pas",
    "deuxième",
    "troisième",
    "second",
    "seconde",
    "sauf",
    "après",
    "parmi",
    "presque",
    "l'un des",
    "l'une des",
    "segundo",
    "segunda",
    "tercer",
    "tercero",
    "tercera",
    "salvo",
    "excepto",
    "después",
    "tras",
    "entre",
    "casi",
    "no",
    "não",
    "depois",
    "quase",
    "non",
    "dopo",
    "quasi",
    "tra",
];
/// Words that end as a superlative does, and are none.
const NO_SUPERLATIVES: [&str; 32] = [
    "interest",
    "request",
    "forest",
    "harvest",
    "guest",
    "honest",
    "protest",
    "contest",
    "modest",
    "quest",
    "arrest",
    "priest",
    "southwest",
    "northwest",
    "midwest",
    "invest",
    "suggest",
    "manifest",
    "conquest",
    "digest",
    "tempest",
    "latest",
    "ingest",
    "unrest",
    "bequest",
    "inquest",
    "backtest",
    "retest",
    "pretest",
    "headrest",
    "armrest",
    "behest",
];

/// Returns what a clause calls extreme in other languages, or by an English superlative behind `the`, `is` or `are`.
pub(super) fn foreign_extreme(clause: &str) -> Option<Extreme> {
    if says(clause, &OTHERWISE) {
        return None;
    }
    let lower = clause.to_lowercase();
    let mut found: Vec<Extreme> = Vec::new();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let at = |index: usize| words.get(index).copied().unwrap_or_default();
    for (index, word) in words.iter().enumerate() {
        let previous = index.checked_sub(1).map(at).unwrap_or_default();
        let before = words.get(index.saturating_sub(3)..index).unwrap_or_default();
        let next = at(index + 1);
        found.extend(germanic(word).or_else(|| match *word {
            "plus" if ["le", "la", "les"].contains(&previous) => romance(next, at(index + 2)),
            "moins" if ["le", "la", "les"].contains(&previous) => romance(next, at(index + 2)).map(opposite),
            "más" | "mais" | "più" if has_article(before) => romance(next, at(index + 2)),
            "menos" | "meno" if has_article(before) => romance(next, at(index + 2)).map(opposite),
            "mayor" | "maior" | "maggiore" if has_article(&[previous]) && !is_part(next) => Some(Extreme::Greatest),
            "menor" | "minore" if has_article(&[previous]) && !is_part(next) => Some(Extreme::Least),
            _ => None,
        }));
    }
    found.dedup();
    match found.as_slice() {
        [only] => Some(*only),
        [] => english(clause),
        _ => None,
    }
}

fn germanic(word: &str) -> Option<Extreme> {
    let is_of = |stems: &[&str]| {
        let mut endings = stems.iter().filter_map(|stem| word.strip_prefix(*stem));
        endings.any(|ending| ENDINGS.contains(&ending))
    };
    match word {
        _ if is_of(&GREATEST_STEMS) => Some(Extreme::Greatest),
        _ if is_of(&LEAST_STEMS) => Some(Extreme::Least),
        _ if is_of(&EITHER_STEMS) => Some(Extreme::Either),
        _ => None,
    }
}

/// Returns what an adjective behind `plus` or `más` says; nothing of one that compares, `la más alta que`.
fn romance(adjective: &str, behind: &str) -> Option<Extreme> {
    let begins = |stems: &[&str]| stems.iter().any(|stem| adjective.starts_with(stem));
    match adjective {
        _ if ["que", "qu", "do", "che"].contains(&behind) => None,
        _ if begins(&LOW) => Some(Extreme::Least),
        _ if begins(&HIGH) => Some(Extreme::Greatest),
        _ => None,
    }
}

fn opposite(extreme: Extreme) -> Extreme {
    match extreme {
        Extreme::Greatest => Extreme::Least,
        Extreme::Least => Extreme::Greatest,
        Extreme::Either => Extreme::Either,
    }
}

/// Whether there is an article in the singular of Spanish, Portuguese or Italian: `uno de los más altos` is one of several.
fn has_article(words: &[&str]) -> bool {
    words.iter().any(|word| ["el", "la", "o", "a", "il", "lo", "l"].contains(word))
}

/// Whether a word makes `la mayor` a part or a comparison: `la mayor parte`, `mayor que`.
fn is_part(next: &str) -> bool {
    ["parte", "que", "do", "di", "che"].contains(&next)
}

/// Finds `the dearest` and `are happiest`: nobody knows which end of a column that is. `It is Budapest` names a town.
fn english(text: &str) -> Option<Extreme> {
    const SHORTEST: usize = 6;
    let is_superlative = |(at, word): (usize, &str)| {
        let is_word = word.len() >= SHORTEST && word.ends_with("est") && word.chars().all(char::is_lowercase);
        let before = last_words(&text[..at], 1);
        is_word && !NO_SUPERLATIVES.contains(&word) && ["the", "is", "are", "was", "were"].contains(&before.as_str())
    };
    let mut words = text.split(|c: char| !c.is_alphanumeric()).map(|word| (place_in(text, word), word));
    words.any(is_superlative).then_some(Extreme::Either)
}

/// Returns where a part of a text begins in it.
fn place_in(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superlatives_of_seven_languages() {
        use Extreme::{Either, Greatest, Least};
        for (text, expected) in [
            ("Berlin hat den höchsten Umsatz", Some(Greatest)),
            ("am wenigsten verkaufte Kiel", Some(Least)),
            ("Bonn hatte wenigstens 12", None),
            ("Bonn hat den zweiten Platz und die höchste Quote", None),
            ("Utrecht is de goedkoopste", Some(Least)),
            ("Lyon est la ville la plus chère", Some(Greatest)),
            ("Lyon est la ville la moins chère", Some(Least)),
            ("Lyon est plus chère que Nice", None),
            ("El río más largo es el Ebro", Some(Greatest)),
            ("El Ebro es más largo que el Tajo", None),
            ("la mayor parte viene de Faro", None),
            ("O Porto tem o menor preço", Some(Least)),
            ("La pizza più cara è la Diavola", Some(Greatest)),
            ("the dearest is Faro", Some(Either)),
            ("the harvest of Faro", None),
            ("In Hungary it is Budapest with 42 visitors", None),
        ] {
            assert_eq!(foreign_extreme(text), expected, "{text}");
        }
    }
}

//! The table of all settings: the key in `querent.toml`, the environment variables, and how their strings are parsed.
//!
//! The environment, the flags, unknown-key errors and `querent config check` all use this table, so they cannot disagree. It is
//! put together of groups, a file each.

mod agent;
mod doors;
mod query;
mod server;

/// A setting's names and how it is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingKey {
    /// The dotted path in `querent.toml`, which is also the flag's name.
    pub path: &'static str,
    /// Environment variables, the first found wins; the rest are aliases.
    pub environment: &'static [&'static str],
    /// How a string becomes a value.
    pub kind: SettingKind,
    /// Whether `config check` shows `***` instead of the value.
    pub secret: bool,
    /// A description of one line.
    pub about: &'static str,
}

/// How the string of a variable or flag becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// As it is.
    Text,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Bool,
    /// Strings separated by commas.
    List,
    /// `token:role[:subject],...`.
    Tokens,
    /// Tables of the settings file, which a string cannot express.
    Tables,
}

impl SettingKind {
    /// Whether the value is no text, so that a text stands for another value.
    pub(super) fn is_read_from_text(self) -> bool {
        match self {
            SettingKind::Number | SettingKind::Bool | SettingKind::List | SettingKind::Tokens => true,
            SettingKind::Text | SettingKind::Tables => false,
        }
    }
}

const fn key(
    path: &'static str,
    environment: &'static [&'static str],
    kind: SettingKind,
    about: &'static str,
) -> SettingKey {
    SettingKey { path, environment, kind, secret: false, about }
}

/// The groups, in the order of the table.
const GROUPS: [&[SettingKey]; 4] = [server::KEYS, agent::KEYS, query::KEYS, doors::KEYS];
const COUNT: usize = server::KEYS.len() + agent::KEYS.len() + query::KEYS.len() + doors::KEYS.len();

/// All settings, in the order in which `config check` prints them.
pub const KEYS: &[SettingKey] = &put_together();

const fn put_together() -> [SettingKey; COUNT] {
    let mut all = [server::KEYS[0]; COUNT];
    let (mut group, mut count) = (0, 0);
    while group < GROUPS.len() {
        let mut index = 0;
        while index < GROUPS[group].len() {
            all[count] = GROUPS[group][index];
            index += 1;
            count += 1;
        }
        group += 1;
    }
    all
}

/// Returns the setting of that path.
pub fn find(path: &str) -> Option<&'static SettingKey> {
    KEYS.iter().find(|key| key.path == path)
}

/// Returns the known name that is nearest to an unknown one, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    known
        .into_iter()
        .map(|candidate| {
            // The right name in the wrong section is nearer than a similar name.
            let moved = if last(candidate) == last(name) { 1 } else { usize::MAX };
            (strsim::damerau_levenshtein(name, candidate).min(moved), candidate)
        })
        .min()
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.len() / 3))
        .map(|(_, candidate)| candidate)
}

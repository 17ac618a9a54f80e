//! Completion in the shell: commands, and what may stand in a statement.

use querent_engine::{CompletionLanguage, KnownNames};

use super::commands::{COMMANDS, path_of};

/// Suggestions at most.
const MOST: usize = 200;
/// The commands behind which a path stands.
const FILE_COMMANDS: [&str; 4] = [".read", "\\i", ".output", "\\o"];

/// Returns where the word begins that stands at the end of `before`, and what it may become; `is_kql`: where statements
/// are in KQL unless they say otherwise.
pub(super) fn completions(before: &str, names: &KnownNames, is_kql: bool) -> (usize, Vec<String>) {
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.get(line_start..).unwrap_or_default();
    if line.starts_with(['\\', '.']) {
        return command_completions(line_start, line, names);
    }
    let says_kql = before.trim_start().get(..4).is_some_and(|start| start.eq_ignore_ascii_case("kql "));
    let language = if is_kql || says_kql { CompletionLanguage::Kql } else { CompletionLanguage::Either };
    let found = querent_engine::completions(before, before, language, names, MOST);
    (found.start, found.suggestions.into_iter().map(|suggestion| suggestion.text).collect())
}

fn command_completions(start: usize, line: &str, names: &KnownNames) -> (usize, Vec<String>) {
    let Some((command, argument)) = line.split_once(char::is_whitespace) else {
        let words = COMMANDS.iter().flat_map(|command| command.names).map(|name| (*name).to_owned());
        return (start, matching(line, words));
    };
    if FILE_COMMANDS.contains(&command) {
        let path = argument.trim_start();
        return (start + line.len() - path.len(), paths(path));
    }
    let word_at = argument.rfind(char::is_whitespace).map_or(0, |end| end + 1);
    let at = start + command.len() + 1 + word_at;
    let word = argument.get(word_at..).unwrap_or_default();
    let known = COMMANDS.iter().find(|known| known.names.contains(&command));
    let words: Vec<String> =
        known.map(|known| known.words.iter().map(|word| (*word).to_owned()).collect()).unwrap_or_default();
    if !words.is_empty() {
        return (at, matching(word, words));
    }
    (at, matching(word, names.tables.keys().cloned().chain(names.databases.iter().cloned())))
}

/// The files and folders that a path may become; hidden ones where a `.` says so.
fn paths(path: &str) -> Vec<String> {
    let plain = path.trim_start_matches(['"', '\'']);
    let (folder, start) = plain.split_at(plain.rfind('/').map_or(0, |end| end + 1));
    // A folder that cannot be read offers nothing.
    let folder_path = path_of(if folder.is_empty() { "." } else { folder });
    let entries = std::fs::read_dir(folder_path).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_meant = name.starts_with(start) && (start.starts_with('.') || !name.starts_with('.'));
            let end = if entry.path().is_dir() { "/" } else { "" };
            is_meant.then(|| format!("{folder}{name}{end}"))
        })
        .collect();
    found.sort();
    found.truncate(MOST);
    let quoted = |path: String| match path.contains(char::is_whitespace) {
        // What is in a folder follows.
        true if path.ends_with('/') => format!("\"{path}"),
        true => format!("\"{path}\""),
        false => path,
    };
    found.into_iter().map(quoted).collect()
}

/// The words that begin with `start` in any case, each once, quoted where they must be.
fn matching(start: &str, words: impl IntoIterator<Item = String>) -> Vec<String> {
    let lower = start.to_lowercase();
    let mut found: Vec<String> = Vec::new();
    for word in words {
        if word.to_lowercase().starts_with(&lower) && !found.contains(&word) {
            found.push(word);
        }
        if found.len() >= MOST {
            break;
        }
    }
    found.into_iter().map(quoted).collect()
}

fn quoted(word: String) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '_' | '(' | '.' | '\\' | '-');
    if word.chars().all(is_plain) { word } else { format!("\"{}\"", word.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> KnownNames {
        let own = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
        KnownNames {
            tables: [("flights".to_owned(), Vec::new()), ("air lines".to_owned(), Vec::new())].into(),
            functions: own(vec!["count"]),
            ..KnownNames::default()
        }
    }

    #[test]
    fn what_stands_before_decides() {
        for (before, at, first) in [
            ("select * from fl", 14, "flights"),
            ("sel", 0, "select"),
            (".mo", 0, ".mode"),
            ("\\d fl", 3, "flights"),
            (".mode cs", 6, "csv"),
            ("flights | summ", 10, "summarize"),
        ] {
            let (start, words) = completions(before, &names(), false);
            assert_eq!((start, words.first().map(String::as_str)), (at, Some(first)), "{before}: {words:?}");
        }
        // A name with a space is in double quotes in SQL, which would be a text in KQL.
        for (before, at, is_kql, first) in [
            ("select * from air", 14, false, "\"air lines\""),
            ("air", 0, true, "['air lines']"),
            ("kql air", 4, false, "['air lines']"),
        ] {
            let (start, words) = completions(before, &names(), is_kql);
            assert_eq!((start, words.first().map(String::as_str)), (at, Some(first)), "{before}: {words:?}");
        }
    }

    #[test]
    fn files_stand_behind_commands_that_take_them() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().display().to_string();
        for file in ["queries.sql", "two words.sql", ".hidden.sql"] {
            std::fs::File::create_new(folder.path().join(file)).unwrap();
        }
        std::fs::create_dir(folder.path().join("reports")).unwrap();
        for (typed, expected) in [
            ("", vec!["queries.sql", "reports/", "two words.sql"]),
            ("q", vec!["queries.sql"]),
            (".", vec![".hidden.sql"]),
            ("none", vec![]),
        ] {
            let before = format!("select 1;\n.read {name}/{typed}");
            let (at, found) = completions(&before, &names(), false);
            let expected: Vec<String> = expected.iter().map(|file| format!("{name}/{file}")).collect();
            let plain: Vec<String> = found.iter().map(|path| path.trim_matches('"').to_owned()).collect();
            assert_eq!((at, plain), (16, expected), "{typed}");
        }
        assert_eq!(completions("\\o \"/nowhere/x", &names(), false), (3, vec![]));
        assert_eq!(completions(".timer o", &names(), false), (7, vec!["on".to_owned(), "off".to_owned()]));
    }
}

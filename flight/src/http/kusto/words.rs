//! The words of a management command: names may be quoted, options stand behind `with`, operators behind the first `|`.

/// `Name = true` behind `with`.
pub(super) struct CommandOption {
    /// In lower case.
    pub(super) name: String,
    pub(super) is_on: bool,
}

/// Takes the options at the end of a command from its words.
pub(super) fn split_options(mut words: Vec<Word>) -> (Vec<Word>, Vec<CommandOption>) {
    let opens = |words: &[Word], at: usize| {
        words.get(at).is_some_and(|word| word.lower() == "with")
            && words.get(at + 1).is_some_and(|word| word.text == "(")
    };
    let Some(at) = (0..words.len()).rev().find(|at| opens(&words, *at)) else {
        return (words, Vec::new());
    };
    if words.last().is_none_or(|word| word.text != ")") {
        return (words, Vec::new());
    }
    let within: Vec<String> = words.split_off(at).into_iter().skip(2).map(|word| word.text).collect();
    let within = within.concat();
    let options = within.trim_end_matches(')').split(',').filter(|option| !option.is_empty());
    let options = options.map(|option| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        CommandOption { name: name.trim().to_lowercase(), is_on: value.trim().eq_ignore_ascii_case("true") }
    });
    (words, options.collect())
}

/// A word of a command, or a quoted name.
pub(super) struct Word {
    pub(super) text: String,
    pub(super) is_quoted: bool,
}

impl Word {
    /// Returns the word for comparison with keywords, which a quoted name never equals.
    pub(super) fn lower(&self) -> String {
        if self.is_quoted { "\0name".to_owned() } else { self.text.to_ascii_lowercase() }
    }
}

/// Splits a text into the words up to the first `|` and what begins with it.
pub(super) fn split(text: &str) -> (Vec<Word>, Option<String>) {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut rest = text.trim().trim_end_matches(';');
    let end = |word: &mut String, words: &mut Vec<Word>| {
        if !word.is_empty() {
            words.push(Word { text: std::mem::take(word), is_quoted: false });
        }
    };
    while let Some(char) = rest.chars().next() {
        let after = &rest[char.len_utf8()..];
        match char {
            '|' => {
                end(&mut word, &mut words);
                return (words, Some(rest.to_owned()));
            }
            '\'' | '"' => {
                end(&mut word, &mut words);
                let (name, after) = after.split_once(char).unwrap_or((after, ""));
                words.push(Word { text: name.to_owned(), is_quoted: true });
                rest = after;
                continue;
            }
            // Brackets only enclose a quoted name.
            '[' | ']' => end(&mut word, &mut words),
            '(' | ')' | ',' => {
                end(&mut word, &mut words);
                words.push(Word { text: char.to_string(), is_quoted: false });
            }
            char if char.is_whitespace() => end(&mut word, &mut words),
            char => word.push(char),
        }
        rest = after;
    }
    end(&mut word, &mut words);
    (words, None)
}

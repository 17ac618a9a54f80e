//! Whatever a text is, KQL's lexer and parser end, give errors whose places are inside it, and can show them.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// KQL's syntax as the engine has it, without the engine: the folder beside this file is a link to its source.
#[allow(dead_code, unused_imports)]
mod kql {
    pub mod ast;
    pub mod error;
    pub mod keywords;
    pub mod lexer;
    pub mod parse;
    pub mod span;

    /// What a text is parsed to.
    pub fn parsed(text: &str) -> parse::Parsed {
        parse::parse(text)
    }
}

fuzz_target!(|text: &str| {
    let parsed = kql::parsed(text);
    for error in &parsed.errors {
        let range = error.span.start as usize..error.span.end as usize;
        assert!(text.get(range.clone()).is_some(), "{range:?} is no place of the text");
        assert!(!error.render(text).is_empty());
    }
    let _ = parsed.into_result();
});

//! Whatever a text is, KQL's lexer and parser end, give errors whose places are inside it, and can show them.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// KQL's syntax as the engine has it, without the engine.
#[allow(dead_code, unused_imports)]
mod kql {
    #[path = "../../../engine/src/kql/ast.rs"]
    pub mod ast;
    #[path = "../../../engine/src/kql/error.rs"]
    pub mod error;
    #[path = "../../../engine/src/kql/keywords.rs"]
    pub mod keywords;
    #[path = "../../../engine/src/kql/lexer.rs"]
    pub mod lexer;
    #[path = "../../../engine/src/kql/parse.rs"]
    pub mod parse;
    #[path = "../../../engine/src/kql/span.rs"]
    pub mod span;

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

//! Whatever a text is, KQL's lexer and parser end, give errors whose places are inside it, and can show them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let parsed = querent_kql::parse(text);
    for error in &parsed.errors {
        let range = error.span.start as usize..error.span.end as usize;
        assert!(text.get(range.clone()).is_some(), "{range:?} is no place of the text");
        assert!(!error.render(text).is_empty());
    }
    let _ = parsed.into_result();
});

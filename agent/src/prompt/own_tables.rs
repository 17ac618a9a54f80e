//! The tables in which a server shows itself, for questions about it. Every server has them, so the schema search, which
//! tells tables apart, does not know them.

use crate::tokens::estimate_tokens;

/// What a model needs to query them.
const OWN_TABLES: &str = "\
This server's own tables, for questions about itself:
system.queries(id, subject, default_database, statement, started_at, memory_bytes) -- statements that run now
system.runs(run_id, subject, question, model_id, status, started_at, finished_at, protocol) -- questions asked, and how they ended
system.metrics(name, labels, value) -- its counters and gauges, as querent_queries_total and querent_resident_bytes
system.index(objects, state, in_memory, without_vector) -- how far the index that searches use is; for administrators
system.tables(database, name, kind, comment, row_count)";

/// A word that is about the server, whatever stands beside it.
const NAME: &str = "querent";
/// Words that are so beside one of a second list: `queries` and `servers` may be in anybody's tables.
const BESIDE_EACH_OTHER: [(&[&str], &[&str]); 4] = [
    (&["query", "queries", "statement", "statements"], &["running", "run", "runs", "executing"]),
    (&["question", "questions", "runs"], &["agent", "asked"]),
    (&["server"], &["this"]),
    (&["system"], &["queries", "runs", "metrics", "index", "tables"]),
];

/// Returns the lines of the server's own tables where a question is about the server and they fit into `budget` tokens; else
/// nothing.
pub(crate) fn own_tables_for(question: &str, budget: usize) -> &'static str {
    if is_about_the_server(question) && estimate_tokens(OWN_TABLES) + 2 <= budget { OWN_TABLES } else { "" }
}

fn is_about_the_server(question: &str) -> bool {
    let lowercase = question.to_lowercase();
    let words: Vec<&str> =
        lowercase.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    has(&[NAME]) || BESIDE_EACH_OTHER.iter().any(|(first, second)| has(first) && has(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_the_server_have_its_tables() {
        for question in [
            "Which queries are running now?",
            "What does Querent do at the moment?",
            "How many questions were asked today?",
            "How much memory does this server take?",
            "Wie viele Zeilen hat system.queries?",
        ] {
            assert_eq!(own_tables_for(question, 1_000), OWN_TABLES, "{question}");
        }
        for question in [
            "Which carrier had the most flights?",
            "How many customers asked for a refund?",
            "Which questions have no answer?",
            "Which server had the most memory?",
            "Which operating system is the most frequent?",
            "How many queries did each customer send?",
        ] {
            assert_eq!(own_tables_for(question, 1_000), "", "{question}");
        }
        assert_eq!(own_tables_for("Which queries are running now?", 20), "", "there is no room");
    }
}

//! Schemas of many fields, each with questions that it answers, in words of people who have not seen it, and questions that
//! ask for something near that it does not have. The bars are one false alarm of twenty, and four of five that are found.

use serde::Deserialize;

use super::{Vocabulary, gaps_of};

/// A schema: its names and values, what it answers, and what it does not.
#[derive(Deserialize)]
struct FieldQuestions {
    names: String,
    values: String,
    answers: Vec<String>,
    gaps: Vec<String>,
}

#[test]
fn questions_of_many_fields_are_told_apart() {
    let (mut answered, mut unanswered) = (0, 0);
    let (mut alarms, mut missed) = (Vec::new(), Vec::new());
    for line in include_str!("field_questions.ndjson").lines() {
        let field: FieldQuestions = serde_json::from_str(line).unwrap();
        let mut vocabulary = Vocabulary::default();
        field.names.split_whitespace().for_each(|name| vocabulary.add_name(name));
        vocabulary.add_text(&field.values);
        answered += field.answers.len();
        unanswered += field.gaps.len();
        let judged = field.answers.into_iter().map(|question| (gaps_of(&question, &vocabulary).asked, question));
        alarms.extend(judged.filter(|(asked, _)| !asked.is_empty()));
        missed.extend(field.gaps.into_iter().filter(|question| !gaps_of(question, &vocabulary).is_any()));
    }
    assert!(alarms.len() * 20 <= answered, "{} of {answered}: {alarms:#?}", alarms.len());
    assert!(missed.len() * 5 <= unanswered, "{} of {unanswered} missed: {missed:#?}", missed.len());
}

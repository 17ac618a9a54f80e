//! Similarity of a question and a text: the cosine of their word weights. A word weighs up to twice as much the fewer
//! texts contain it; one that no text contains weighs least. Exact, over an inverted index of at most ten thousand
//! short texts.

use std::collections::HashMap;

use super::{KnowledgeObject, Similar};
use crate::policy::Rights;
use crate::store::name_key;

/// Texts with a lower similarity share only a word or two with the question.
const MIN_SIMILARITY: f32 = 0.3;

/// The texts that questions are compared with.
pub(crate) struct Corpus<T> {
    objects: Vec<T>,
    /// The tokens of each object's text.
    texts: Vec<Vec<String>>,
    /// The texts that contain a token, by token.
    postings: HashMap<String, Vec<usize>>,
    /// The length of each text's vector of weights.
    norms: Vec<f32>,
}

impl<T: KnowledgeObject> Corpus<T> {
    pub(crate) fn new(objects: Vec<T>, tokens: impl Fn(&str) -> Vec<String>) -> Self {
        let texts: Vec<Vec<String>> = objects.iter().map(|object| tokens(&object.text())).collect();
        let mut postings: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, text) in texts.iter().enumerate() {
            for token in text {
                postings.entry(token.clone()).or_default().push(index);
            }
        }
        let count_of = |token: &str| postings.get(token).map_or(0, Vec::len);
        let norms =
            texts.iter().map(|text| norm(text, &|token: &str| weight(objects.len(), count_of(token)))).collect();
        Self { objects, texts, postings, norms }
    }

    /// The objects visible to `who` that are most similar to a question's tokens, most similar first. What is hidden has no say
    /// in what words weigh.
    pub(crate) fn similar(
        &self,
        question: &[String],
        rights: Rights<'_>,
        database: Option<&str>,
        limit: usize,
    ) -> Vec<Similar<T>> {
        let is_seen: Vec<bool> = self.objects.iter().map(|object| object.is_visible(rights)).collect();
        let seen = is_seen.iter().filter(|is_seen| **is_seen).count();
        // How many of the seen texts contain a token, where there are others.
        let counts: Option<HashMap<&str, usize>> = (seen < is_seen.len()).then(|| {
            let seen_among = |texts: &Vec<usize>| texts.iter().filter(|index| is_seen[**index]).count();
            self.postings.iter().map(|(token, texts)| (token.as_str(), seen_among(texts))).collect()
        });
        let count_of = |token: &str| match &counts {
            Some(counts) => counts.get(token).copied().unwrap_or_default(),
            None => self.postings.get(token).map_or(0, Vec::len),
        };
        let weight = |token: &str| weight(seen, count_of(token));
        let norm_of = |index: usize| match &counts {
            Some(_) => norm(&self.texts[index], &weight),
            None => self.norms[index],
        };
        let question_norm = norm(question, &weight);
        let mut products: HashMap<usize, f32> = HashMap::new();
        for token in question {
            for index in self.postings.get(token).into_iter().flatten().filter(|index| is_seen[**index]) {
                *products.entry(*index).or_default() += weight(token).powi(2);
            }
        }
        let database = database.map(name_key);
        let mut found: Vec<(f32, usize)> = products
            .into_iter()
            .map(|(index, product)| (product / (question_norm * norm_of(index)), index))
            .filter(|(similarity, index)| {
                let object = &self.objects[*index];
                *similarity >= MIN_SIMILARITY
                    && database.as_ref().is_none_or(|only| name_key(object.database()) == *only)
            })
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        found
            .into_iter()
            .take(limit)
            .map(|(similarity, index)| Similar { object: self.objects[index].clone(), similarity })
            .collect()
    }
}

fn weight(texts: usize, texts_with_token: usize) -> f32 {
    if texts_with_token == 0 {
        return 1.0;
    }
    let (texts, with_token) = (texts as f32, texts_with_token as f32);
    1.0 + ((texts + 1.0) / (with_token + 1.0)).ln() / (1.0 + (texts + 1.0).ln())
}

/// The length of a text's vector of weights.
fn norm(text: &[String], weight: &impl Fn(&str) -> f32) -> f32 {
    text.iter().map(|token| weight(token).powi(2)).sum::<f32>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::VerifiedQuery;
    use crate::model::TableName;
    use crate::policy::PolicySet;
    use crate::principal::{Principal, Role};

    fn query(id: i64, database: &str, question: &str) -> VerifiedQuery {
        VerifiedQuery {
            id,
            database: database.into(),
            question: question.into(),
            sql: String::new(),
            tables: vec![TableName::new(database, "t")],
            subject: String::new(),
            created_at: chrono::DateTime::default(),
        }
    }

    #[test]
    fn the_most_alike_come_first_and_only_what_may_be_seen() {
        let tokens = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let corpus = Corpus::new(
            vec![
                query(1, "air", "flights by carrier"),
                query(2, "air", "late flights by carrier and month"),
                query(3, "hr", "flights by carrier"),
                query(4, "air", "seats of planes"),
            ],
            tokens,
        );
        let found = |who: &Principal| -> Vec<i64> {
            let policies = PolicySet::default();
            let similar = corpus.similar(&tokens("flights by carrier"), Rights::new(who, &policies), None, 10);
            similar.into_iter().map(|similar| similar.object.id).collect()
        };
        assert_eq!(found(&Principal::local_admin()), [1, 3, 2]);
        assert_eq!(found(&Principal::new("p", Role::Read).with_databases(["air"])), [1, 2]);
        let (who, policies) = (Principal::local_admin(), PolicySet::default());
        assert_eq!(corpus.similar(&[], Rights::new(&who, &policies), None, 10), []);
    }

    #[test]
    fn what_is_hidden_has_no_say_in_what_words_weigh() {
        let tokens = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let seen = || vec![query(1, "air", "flights by carrier"), query(2, "air", "late flights of a month")];
        let hidden = (3..50).map(|id| query(id, "hr", "flights by month"));
        let (with, without) =
            (Corpus::new(seen().into_iter().chain(hidden).collect(), tokens), Corpus::new(seen(), tokens));
        let (who, policies) = (Principal::new("p", Role::Read).with_databases(["air"]), PolicySet::default());
        let found = |corpus: &Corpus<VerifiedQuery>| {
            corpus.similar(&tokens("late flights by month"), Rights::new(&who, &policies), None, 10)
        };
        assert_eq!(found(&with), found(&without));
        assert_eq!(found(&without).len(), 2);
    }
}

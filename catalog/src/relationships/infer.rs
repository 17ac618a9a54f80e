//! Infers from names and types which columns join two tables. Pure.
//!
//! A reference is a column named after a table (`orders.customer_id`, `custId`, `maker`) that has a matching key (`id`,
//! `customer_id`); next best is a key of the same name in both tables. Names that most tables have (`name`, `status`,
//! `year`) join nothing: a model that is offered too many joins joins by the year.

use arrow_schema::DataType;

use crate::model::{ColumnInfo, Relationship, RelationshipOrigin, TableInfo, TableName};
use crate::store::name_key;
use crate::store::search_text::split_words;

/// Words that end the name of a key.
const KEY_WORDS: [&str; 16] =
    ["id", "ids", "key", "code", "no", "num", "nr", "number", "uuid", "guid", "sk", "fk", "pk", "ref", "oid", "uid"];
/// Words at the beginning of a table's name that do not describe its contents.
const TABLE_PREFIXES: [&str; 9] = ["dim", "fact", "tbl", "stg", "raw", "ref", "t", "v", "vw"];
/// Names that many tables share and few join by.
const GENERIC: [&str; 34] = [
    "active",
    "amount",
    "category",
    "code",
    "comment",
    "count",
    "country",
    "created",
    "created_at",
    "date",
    "day",
    "description",
    "email",
    "hour",
    "id",
    "key",
    "kind",
    "label",
    "minute",
    "month",
    "name",
    "notes",
    "price",
    "rowid",
    "source",
    "state",
    "status",
    "time",
    "timestamp",
    "title",
    "type",
    "updated_at",
    "value",
    "year",
];
/// The most columns that are read of a wide table: keys usually come first.
const MAX_COLUMNS: usize = 200;
/// Factor for a reference to a table of another database, where the same words may mean something else.
const ELSEWHERE: f32 = 0.6;
/// Confidence of a key that both tables have and one has as its first column.
const KEY_OF_ONE: f32 = 0.8;
/// The shortest abbreviation; shorter ones fit too many names.
const MIN_ABBREVIATION: usize = 3;

/// A table as input of inference.
#[derive(Debug, Clone)]
pub(crate) struct JoinTable {
    pub(crate) id: i64,
    pub(crate) name: TableName,
    words: Vec<String>,
    /// The words concatenated.
    joined: String,
    columns: Vec<JoinColumn>,
}

#[derive(Debug, Clone)]
struct JoinColumn {
    name: String,
    key: String,
    /// Lowercase, singular, without the word that makes it a key.
    stem: Vec<String>,
    /// The stem concatenated.
    joined: String,
    is_key: bool,
    is_generic: bool,
    class: TypeClass,
}

/// Classes of types whose values can be compared.
#[derive(Debug, Clone, PartialEq)]
enum TypeClass {
    Text,
    Integer,
    Other(DataType),
}

/// A join that the names and types of two tables suggest.
#[derive(Debug, Clone, PartialEq)]
struct InferredJoin {
    from_column: String,
    to_column: String,
    confidence: f32,
    why: String,
}

impl JoinTable {
    pub(crate) fn new(id: i64, name: TableName, columns: impl Iterator<Item = (String, DataType)>) -> Self {
        let mut words = words_of(&name.table);
        if words.len() > 1 && TABLE_PREFIXES.contains(&words[0].as_str()) {
            words.remove(0);
        }
        let columns = columns.take(MAX_COLUMNS).map(|(name, data_type)| JoinColumn::new(name, data_type)).collect();
        Self { id, name, joined: words.concat(), words, columns }
    }

    /// The lowercase singular words of its name.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    pub(crate) fn has_columns(&self, names: &[String]) -> bool {
        names.iter().all(|name| {
            let key = name_key(name);
            self.columns.iter().any(|column| column.key == key)
        })
    }

    /// Names that tables referred to by this one may have, as name keys; at most `limit`.
    pub(crate) fn referred_names(&self, limit: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for column in self.columns.iter().filter(|column| column.is_key && !column.stem.is_empty()) {
            if column.stem == self.words {
                continue;
            }
            let last = &column.stem[column.stem.len() - 1..];
            for (words, separator) in [(column.stem.as_slice(), "_"), (column.stem.as_slice(), ""), (last, "")] {
                let stem = words.join(separator);
                for name in [plural(&stem), stem] {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
            if names.len() >= limit {
                break;
            }
        }
        names.truncate(limit);
        names
    }
}

impl From<&TableInfo> for JoinTable {
    fn from(info: &TableInfo) -> Self {
        let columns = info.columns.iter().map(|column| (column.name.clone(), column.data_type.clone()));
        Self::new(info.id, info.name.clone(), columns)
    }
}

impl JoinColumn {
    fn new(name: String, data_type: DataType) -> Self {
        let mut stem = words_of(&name);
        let mut is_key = false;
        if let Some(last) = stem.last() {
            // `custid` is a single word where `CustID` is two.
            if KEY_WORDS.contains(&last.as_str()) {
                stem.pop();
                is_key = true;
            } else if let Some(rest) = last.strip_suffix("id").filter(|rest| rest.len() >= MIN_ABBREVIATION) {
                let rest = singular(rest);
                stem.pop();
                stem.push(rest);
                is_key = true;
            }
        }
        let key = name_key(&name);
        let is_generic = GENERIC.contains(&key.as_str());
        Self { key, name, joined: stem.concat(), stem, is_key, is_generic, class: TypeClass::of(&data_type) }
    }
}

impl TypeClass {
    fn of(data_type: &DataType) -> Self {
        match data_type {
            text if text.is_string() => TypeClass::Text,
            integer if integer.is_integer() => TypeClass::Integer,
            DataType::Decimal128(_, 0) | DataType::Decimal256(_, 0) => TypeClass::Integer,
            DataType::Dictionary(_, value) => TypeClass::of(value),
            other => TypeClass::Other(other.clone()),
        }
    }
}

/// Whether a column's name looks like that of a primary or foreign key.
pub fn looks_like_key(column: &ColumnInfo) -> bool {
    JoinColumn::new(column.name.clone(), column.data_type.clone()).is_key
}

/// The most likely join of two tables by their names and types, if any.
pub(crate) fn infer(left: &JoinTable, right: &JoinTable) -> Option<Relationship> {
    let same_database = name_key(&left.name.database) == name_key(&right.name.database);
    let mut candidates: Vec<(&JoinTable, &JoinTable, InferredJoin)> = Vec::new();
    candidates.extend(reference(left, right).map(|inferred| (left, right, inferred)));
    candidates.extend(reference(right, left).map(|inferred| (right, left, inferred)));
    if same_database {
        candidates.extend(shared(left, right));
    }
    let (from, to, best) = candidates.into_iter().max_by(|a, b| a.2.confidence.total_cmp(&b.2.confidence))?;
    let confidence = if same_database { best.confidence } else { best.confidence * ELSEWHERE };
    Some(Relationship {
        id: None,
        from: from.name.clone(),
        from_columns: vec![best.from_column],
        to: to.name.clone(),
        to_columns: vec![best.to_column],
        origin: RelationshipOrigin::Inferred,
        confidence,
        why: best.why,
    })
}

/// A column of `from` that is named after `to`, and the column it refers to.
fn reference(from: &JoinTable, to: &JoinTable) -> Option<InferredJoin> {
    const WHOLE_NAME: f32 = 0.9;
    const PART_OF_NAME: f32 = 0.75;
    const ABBREVIATED: f32 = 0.65;
    /// `maker` for `maker_id`.
    const NOT_A_KEY: f32 = 0.55;
    let mut best: Option<InferredJoin> = None;
    for column in from.columns.iter().filter(|column| !column.stem.is_empty()) {
        let (joined, table) = (&column.joined, &to.joined);
        let named = if joined == table {
            WHOLE_NAME
        } else if to.words.len() > 1 && to.words.ends_with(&column.stem) {
            PART_OF_NAME
        } else if !to.words.is_empty() && column.stem.ends_with(&to.words) {
            // `delivery_address_id` for `addresses`.
            PART_OF_NAME
        } else if column.is_key && joined.len() >= MIN_ABBREVIATION && table.starts_with(joined.as_str()) {
            ABBREVIATED
        } else {
            continue;
        };
        let confidence = if column.is_key { named } else { named * NOT_A_KEY };
        let Some(key) = key_for(to, column) else { continue };
        let begins_with_key = key.key == column.key && to.columns.first().is_some_and(|first| first.key == key.key);
        let confidence = if begins_with_key { confidence.max(KEY_OF_ONE) } else { confidence };
        if best.as_ref().is_none_or(|best| confidence > best.confidence) {
            best = Some(InferredJoin {
                from_column: column.name.clone(),
                to_column: key.name.clone(),
                confidence,
                why: format!("column {} is named after table {}", column.name, to.name.table),
            });
        }
    }
    best
}

/// The key of `to` that a column named after the table refers to.
fn key_for<'a>(to: &'a JoinTable, column: &JoinColumn) -> Option<&'a JoinColumn> {
    let fits = |candidate: &&JoinColumn| candidate.class == column.class;
    let same_name = || to.columns.iter().filter(fits).find(|candidate| candidate.key == column.key && column.is_key);
    let id = || to.columns.iter().filter(fits).find(|candidate| candidate.key == "id");
    let own = || {
        let is_own = |candidate: &&JoinColumn| candidate.is_key && candidate.stem == to.words;
        to.columns.iter().filter(fits).find(is_own)
    };
    let first = || to.columns.first().filter(fits).filter(|first| first.is_key);
    same_name().or_else(id).or_else(own).or_else(first)
}

/// A key that both tables have; it refers to the table whose first column it is.
fn shared<'a>(left: &'a JoinTable, right: &'a JoinTable) -> Option<(&'a JoinTable, &'a JoinTable, InferredJoin)> {
    const KEY_OF_BOTH: f32 = 0.6;
    const FIRST_OF_ONE: f32 = 0.55;
    let mut best: Option<(&JoinTable, &JoinTable, InferredJoin)> = None;
    let is_first = |table: &JoinTable, key: &str| table.columns.first().is_some_and(|first| first.key == key);
    for column in left.columns.iter().filter(|column| !column.is_generic) {
        let may_join = column.is_key || is_first(left, &column.key) || is_first(right, &column.key);
        if !may_join {
            continue;
        }
        let same = |other: &&JoinColumn| other.key == column.key && other.class == column.class;
        let Some(other) = right.columns.iter().find(same) else { continue };
        let (first_of_left, first_of_right) = (is_first(left, &column.key), is_first(right, &column.key));
        let confidence = match (column.is_key && !column.stem.is_empty(), first_of_left != first_of_right) {
            (true, true) => KEY_OF_ONE,
            (true, false) => KEY_OF_BOTH,
            (false, _) if first_of_left || first_of_right => FIRST_OF_ONE,
            (false, _) => continue,
        };
        let (from, to) = if first_of_left && !first_of_right { (right, left) } else { (left, right) };
        if best.as_ref().is_none_or(|(_, _, best)| confidence > best.confidence) {
            let inferred = InferredJoin {
                from_column: if std::ptr::eq(from, left) { column.name.clone() } else { other.name.clone() },
                to_column: if std::ptr::eq(from, left) { other.name.clone() } else { column.name.clone() },
                confidence,
                why: format!("both tables have {}", column.name),
            };
            best = Some((from, to, inferred));
        }
    }
    best
}

/// The words of an identifier or a text, lowercase and singular.
pub(crate) fn words_of(identifier: &str) -> Vec<String> {
    split_words(identifier).into_iter().map(|word| singular(&word.to_lowercase())).collect()
}

fn singular(word: &str) -> String {
    let keeps = word.len() <= 3 || word.ends_with("ss") || word.ends_with("us") || word.ends_with("is");
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() >= 2) {
        return format!("{stem}y");
    }
    for ending in ["sses", "xes", "ches", "shes", "zes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(stem) if !keeps => stem.to_owned(),
        _ => word.to_owned(),
    }
}

fn plural(word: &str) -> String {
    let before_y = word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match before_y {
        Some(stem) if !stem.is_empty() => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh", "z"].iter().any(|ending| word.ends_with(ending)) => format!("{word}es"),
        _ => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, columns: &[&str]) -> JoinTable {
        let columns = columns.iter().map(|column| {
            let (name, data_type) = match column.split_once(':') {
                Some((name, _)) => (name, DataType::Utf8),
                None => (*column, DataType::Int64),
            };
            (name.to_string(), data_type)
        });
        JoinTable::new(0, TableName::new("shop", name), columns)
    }

    fn join(left: &JoinTable, right: &JoinTable) -> Option<String> {
        infer(left, right).map(|found| found.condition())
    }

    #[test]
    fn references_are_seen_in_many_spellings() {
        let orders = |column: &str| table("orders", &["id", column, "total"]);
        let customers = table("customers", &["id", "name:text"]);
        for column in ["customer_id", "customerId", "CustomerID", "custId", "cust_id", "customer_no", "customerid"] {
            let found = infer(&orders(column), &customers).unwrap_or_else(|| panic!("{column}"));
            assert_eq!(found.condition(), format!("orders.{column} = customers.id"));
        }
        let customer = table("dim_customer", &["customer_id", "name:text"]);
        assert_eq!(join(&customer, &orders("customer_id")).unwrap(), "orders.customer_id = dim_customer.customer_id");
        let makers = table("car_makers", &["Id", "FullName:text"]);
        let models = table("model_list", &["ModelId", "Maker"]);
        assert_eq!(join(&models, &makers).unwrap(), "model_list.Maker = car_makers.Id");
        let categories = table("categories", &["category_id"]);
        assert!(infer(&table("film", &["film_id", "category_id"]), &categories).unwrap().confidence > 0.8);
    }

    #[test]
    fn generic_names_and_other_types_join_nothing() {
        assert_eq!(join(&table("a", &["id", "name:text", "year"]), &table("b", &["id", "name:text", "year"])), None);
        assert_eq!(join(&table("orders", &["customer_id:text"]), &table("customers", &["id"])), None);
    }

    #[test]
    fn a_shared_key_refers_to_the_table_that_begins_with_it() {
        let flights = table("flights", &["year", "carrier:text", "tailnum:text"]);
        let airlines = table("airlines", &["carrier:text", "name:text"]);
        assert_eq!(join(&airlines, &flights).unwrap(), "flights.carrier = airlines.carrier");
        let has_pet = table("Has_Pet", &["StuID", "PetID"]);
        let student = table("Student", &["StuID", "LName:text"]);
        assert!(join(&student, &has_pet).unwrap().contains("StuID"));
    }

    #[test]
    fn another_database_is_less_sure() {
        let orders = table("orders", &["customer_id"]);
        let here = table("customers", &["id"]);
        let mut there = here.clone();
        there.name.database = "crm".into();
        assert!(infer(&orders, &there).unwrap().confidence < infer(&orders, &here).unwrap().confidence);
    }

    #[test]
    fn what_tables_may_be_called() {
        let names = table("orders", &["order_id", "delivery_address_id", "companyId"]).referred_names(100);
        for name in ["delivery_addresses", "delivery_address", "addresses", "companies", "company"] {
            assert!(names.contains(&name.to_string()), "{name} in {names:?}");
        }
        assert!(!names.contains(&"orders".to_string()), "{names:?}");
    }
}

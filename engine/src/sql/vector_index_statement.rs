//! `CREATE INDEX name ON table USING vector (column) WITH (...)`, as DuckDB's and pgvector's users write it, `DROP INDEX` and
//! `SHOW INDEXES`. Other kinds of indexes are refused by policy, as all that is not planned here.

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CreateIndex, Expr, Ident, IndexColumn, IndexType, ObjectName, OrderByExpr, Value, ValueWithSpan,
};
use querent_catalog::VectorMetric;

use super::resolved_names::full_name;
use super::statement::StatementPlanner;
use super::write_statement::{VectorIndexRequest, WriteStatement};
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

/// The kinds of index that are one of vectors here; the others are names that people know.
const KINDS: [&str; 4] = ["vector", "hnsw", "ivfflat", "ivf"];
const USAGE: &str = "write CREATE INDEX [IF NOT EXISTS] name ON table USING vector (column) [WITH (metric = 'cosine')]";
/// The most partitions that an index has, and so the most that a search may be told to read.
const MAX_PROBES: usize = 256;

/// Returns whether a statement is about an index of vectors.
pub(super) fn is_of_vectors(index: &CreateIndex) -> bool {
    matches!(&index.using, Some(IndexType::Custom(kind)) if KINDS.iter().any(|known| same_name(known, &kind.value)))
}

/// Returns the query of `SHOW INDEXES` and of `SHOW INDEXES FROM table`, which are parsed as names of a variable.
pub(super) fn shown_indexes(variable: &[Ident], database: &str) -> Result<Option<String>> {
    let words: Vec<&str> = variable.iter().map(|ident| ident.value.as_str()).collect();
    let is_word = |word: &str, known: &[&str]| known.iter().any(|known| same_name(known, word));
    let (first, rest) = match words.split_first() {
        Some((first, rest)) if is_word(first, &["INDEXES", "INDEX", "KEYS"]) => (first, rest),
        _ => return Ok(None),
    };
    let table = match rest {
        [] => None,
        [from, table] if is_word(from, &["FROM", "IN"]) => Some((database, *table)),
        [from, database, table] if is_word(from, &["FROM", "IN"]) => Some((*database, *table)),
        _ => {
            return Err(EngineError::Unsupported {
                what: format!("this form of SHOW {first}"),
                hint: "write SHOW INDEXES [FROM table], or query system.vector_indexes".to_owned(),
            });
        }
    };
    let quoted = |text: &str| format!("'{}'", text.to_lowercase().replace('\'', "''"));
    let condition = table.map_or_else(String::new, |(database, table)| {
        format!(" WHERE lower(database) = {} AND lower(\"table\") = {}", quoted(database), quoted(table))
    });
    Ok(Some(format!("SELECT * FROM system.vector_indexes{condition} ORDER BY database, \"table\", name")))
}

impl StatementPlanner<'_> {
    /// Plans the creation of an index of vectors. Errors: `sql_plan_error`, `unsupported`.
    pub(super) fn create_vector_index(&self, index: CreateIndex) -> Result<LogicalPlan> {
        let CreateIndex {
            name,
            table_name,
            using: _,
            columns,
            unique,
            concurrently,
            if_not_exists,
            include,
            nulls_distinct,
            with,
            predicate,
            index_options,
            alter_options,
        } = index;
        let any = unique
            || concurrently
            || !include.is_empty()
            || nulls_distinct.is_some()
            || predicate.is_some()
            || !index_options.is_empty()
            || !alter_options.is_empty();
        if any {
            return Err(refused("this option of CREATE INDEX"));
        }
        let Some(name) = name else { return Err(refused("CREATE INDEX without a name")) };
        let name = match name.0.as_slice() {
            [part] => part.as_ident().map(|ident| ident.value.clone()),
            _ => None,
        };
        let Some(name) = name else {
            return Err(refused("a database before the name of an index (it is its table's)"));
        };
        let (column, class) = only_column(columns)?;
        let options = IndexOptions::read(&with)?;
        let metric = match (class, options.metric) {
            (Some(class), Some(metric)) if class != metric => {
                return Err(refused("an operator class of another metric than WITH has"));
            }
            (Some(metric), _) | (None, Some(metric)) => metric,
            (None, None) => VectorMetric::Cosine,
        };
        let table = full_name(&object_name_to_table_reference(table_name, false)?, self.database)?;
        let request = VectorIndexRequest { name, table, column, metric, probes: options.probes, if_not_exists };
        Ok(WriteStatement::CreateVectorIndex(request).into_plan())
    }

    /// Plans `DROP INDEX [database.]name`.
    pub(super) async fn drop_vector_index(&self, names: &[ObjectName], if_missing_ok: bool) -> Result<LogicalPlan> {
        let [name] = names else {
            return Err(EngineError::Unsupported {
                what: "dropping several indexes at once".into(),
                hint: "drop them one by one".into(),
            });
        };
        let reference = full_name(&object_name_to_table_reference(name.clone(), false)?, self.database)?;
        let listed = self.catalog.vector_indexes().list(self.who).await?;
        let found = listed.into_iter().find(|index| {
            same_name(&index.name, &reference.table) && same_name(&index.table.database, &reference.database)
        });
        // Whoever may not drop one is told that first.
        let missing = (found.is_none() && !if_missing_ok).then_some(reference.table);
        let found = found.map(|index| (index.id, index.table));
        Ok(WriteStatement::DropVectorIndex { database: reference.database, found, missing }.into_plan())
    }
}

/// Returns the column, and the metric of its operator class.
fn only_column(columns: Vec<IndexColumn>) -> Result<(String, Option<VectorMetric>)> {
    let Ok([IndexColumn { column, operator_class }]) = <[IndexColumn; 1]>::try_from(columns) else {
        return Err(refused("a vector index of several columns"));
    };
    let OrderByExpr { expr, options, with_fill } = column;
    let (Expr::Identifier(column), None, None, None) = (expr, options.asc, options.nulls_first, with_fill) else {
        return Err(refused("a vector index of anything but a column"));
    };
    let class = match operator_class {
        None => None,
        Some(class) => Some(metric_named(&class.to_string())?),
    };
    Ok((column.value, class))
}

/// What stands behind WITH.
#[derive(Default)]
struct IndexOptions {
    metric: Option<VectorMetric>,
    probes: Option<usize>,
}

impl IndexOptions {
    fn read(with: &[Expr]) -> Result<Self> {
        let mut options = Self::default();
        for option in with {
            let parts = match option {
                Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => match (left.as_ref(), right.as_ref()) {
                    (Expr::Identifier(key), Expr::Value(ValueWithSpan { value, .. })) => Some((key, value)),
                    _ => None,
                },
                _ => None,
            };
            match parts {
                Some((key, Value::SingleQuotedString(metric))) if same_name(&key.value, "metric") => {
                    options.metric = Some(metric_named(metric)?);
                }
                Some((key, Value::Number(number, _))) if same_name(&key.value, "probes") => {
                    let probes = number.parse().ok().filter(|probes| (1..=MAX_PROBES).contains(probes));
                    let message = || format!("`probes` is a number of partitions from 1 to {MAX_PROBES}, not {number}");
                    options.probes = Some(probes.ok_or_else(|| EngineError::Plan { message: message() })?);
                }
                _ => {
                    return Err(EngineError::Unsupported {
                        what: format!("the option `{option}` of a vector index"),
                        hint: "there are metric = 'cosine', 'l2' or 'dot', and probes = a number of partitions".into(),
                    });
                }
            }
        }
        Ok(options)
    }
}

fn metric_named(name: &str) -> Result<VectorMetric> {
    VectorMetric::named(name).ok_or_else(|| {
        let known: Vec<&str> = VectorMetric::ALL.iter().map(|metric| metric.as_str()).collect();
        EngineError::Unsupported {
            what: format!("the metric `{name}` of a vector index"),
            hint: format!("there are {}", known.join(", ")),
        }
    })
}

fn refused(what: &str) -> EngineError {
    EngineError::Unsupported { what: what.to_owned(), hint: USAGE.to_owned() }
}

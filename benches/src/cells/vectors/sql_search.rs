//! The same vectors in a table, searched in SQL: with a vector index, and by the exact scan of a session that uses none.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, AsArray, FixedSizeListArray, Float32Array, Int64Array, ListArray, RecordBatch};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::scalar::ScalarValue;
use parquet::arrow::ArrowWriter;
use querent_catalog::Principal;
use querent_engine::{Engine, Limits, Session, SessionVariables};

use super::{DIMENSION, NEIGHBOURS, VECTORS_FILE};
use crate::Failure;

/// The names of the two searches in figures.
pub(super) const INDEXED: &str = "in SQL by a vector index";
pub(super) const SCANNED: &str = "in SQL by an exact scan";

/// Milliseconds by search, and the share of the exact answers that the index finds.
pub(super) struct SqlMeasurement {
    pub(super) times: BTreeMap<String, Vec<f64>>,
    pub(super) recall: f64,
}

/// Fills a table in `folder` with the vectors that are there, and asks for the nearest of each query twice.
pub(super) async fn measure(folder: &Path, queries: &[Vec<f32>]) -> Result<SqlMeasurement, Failure> {
    let file = folder.join("vectors.parquet");
    write_parquet(&folder.join(VECTORS_FILE), &file).await?;
    let engine = Engine::open(folder.join("sql")).await?;
    let indexed = engine.session(Principal::local_admin(), Limits::default());
    let exact = indexed.clone().with_variables(Arc::new(SessionVariables::default()));
    let file = file.display();
    for statement in [
        format!("CREATE TABLE vectors (id BIGINT, v FLOAT[{DIMENSION}])"),
        format!("INSERT INTO vectors SELECT id, v FROM '{file}'"),
        "CREATE INDEX by_meaning ON vectors USING vector (v) WITH (metric = 'cosine')".to_owned(),
    ] {
        indexed.sql(&statement).await?.collect().await?;
    }
    exact.sql("SET vector_index = off").await?.collect().await?;
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let (mut hits, mut of) = (0, 0);
    // The first round fills the caches that a server has warm.
    for round in 0..2 {
        for query in queries {
            let (found, indexed_ms) = nearest(&indexed, query).await?;
            let (all, exact_ms) = nearest(&exact, query).await?;
            if round == 1 {
                times.entry(INDEXED.into()).or_default().push(indexed_ms);
                times.entry(SCANNED.into()).or_default().push(exact_ms);
            }
            hits += all.intersection(&found).count();
            of += all.len();
        }
    }
    engine.close().await?;
    Ok(SqlMeasurement { times, recall: hits as f64 / of as f64 })
}

/// Returns the nearest rows and how many milliseconds they took.
async fn nearest(session: &Session, query: &[f32]) -> Result<(HashSet<i64>, f64), Failure> {
    let sql = format!("SELECT id FROM vectors ORDER BY cosine_distance(v, $1) LIMIT {NEIGHBOURS}");
    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let numbers: ArrayRef = Arc::new(Float32Array::from(query.to_vec()));
    let vector = FixedSizeListArray::try_new(item, DIMENSION as i32, numbers, None)?;
    let started = Instant::now();
    let stream = session.sql_with_params(&sql, vec![ScalarValue::FixedSizeList(Arc::new(vector))]).await?;
    let (batches, _) = stream.collect().await?;
    let elapsed = started.elapsed().as_secs_f64() * 1e3;
    let ids = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter().copied());
    Ok((ids.collect(), elapsed))
}

/// Writes little-endian floats as a Parquet file of numbered vectors.
async fn write_parquet(vectors: &Path, target: &Path) -> Result<(), Failure> {
    let bytes = tokio::fs::read(vectors).await?;
    let numbers = bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let numbers: ArrayRef = Arc::new(Float32Array::from_iter_values(numbers));
    let rows = numbers.len() / DIMENSION;
    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(DIMENSION, rows));
    let lists: ArrayRef = Arc::new(ListArray::try_new(item, offsets, numbers, None)?);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    let batch = RecordBatch::try_from_iter([("id", ids), ("v", lists)])?;
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None)?;
    writer.write(&batch)?;
    Ok(tokio::fs::write(target, writer.into_inner()?).await?)
}

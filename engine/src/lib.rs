//! Answers a query: a DataFusion engine over the catalog, with policy and limits in its types.
//!
//! Every statement is planned, passes [`policy::authorize`] and only then executes: only `authorize` makes an
//! [`policy::AuthorizedPlan`], and only that runs. Dropping a [`QueryStream`] stops its work. `engine/examples/embed.rs` is a
//! program around an engine.
//!
//! # Map
//!
//! For the other crates see `ARCHITECTURE.md` at the root of the repository. A room imports only from rooms on lower floors.
//!
//! | floor | room | purpose |
//! |---|---|---|
//! | 10 | `open` | opens an engine and starts its background work |
//! | 9 | `import` | files to tables, one table or a tree of folders |
//! | 9 | `completion` | what may stand at a place of a statement |
//! | 9 | `knowledge` | verified queries and metrics, which run before they are stored |
//! | 9 | `profiler` | profiles the columns of tables in the background |
//! | 9 | `queries` | queries that run now, and ending one |
//! | 9 | `table_statistics` | what a table's columns hold, as a caller sees them |
//! | 8 | [`Session`] in `session` | one caller's statements: planned, authorised, executed, or applied to the catalog |
//! | 7 | `vector_indexing` | fills vector indexes from the files of their tables |
//! | 7 | [`policy`] | what a plan may do, and where external tables may lie |
//! | 6 | [`ClusterWorker`] in `cluster_worker` | does parts of other servers' queries |
//! | 6 | [`Engine`] in `engine` | the catalog, the runtime and the commits of one data folder |
//! | 5 | `runtime` | what all queries share: memory, spill space, caches, functions |
//! | 4 | `distributed` | which plans run on workers, and how they get there |
//! | 4 | `sql` | SQL text to an analysed plan: parsing, name resolution, planning |
//! | 3 | `tables` | managed, external and system tables as DataFusion's table providers |
//! | 3 | `stream` | a running query's batches within its limits, and the queue to their reader |
//! | 3 | [`telemetry`] | the spans of statements |
//! | 3 | `options` | how an engine is opened, with the defaults |
//! | 2 | `stores` | where managed tables have their files, and the object stores and web servers that may be read |
//! | 2 | `functions` | the SQL functions, bounded where they can make much out of little |
//! | 2 | `limits`, `slots`, `threads` | what one query may use, how many run beside each other, and their threads |
//! | 1 | `error` | the errors with their codes |
//! | 1 | `column_cache` | columns of Parquet files that scans decoded, for the next scan |
//! | 1 | `plan_cache` | plans of statements that were planned before, and rows of queries that were answered |
//! | 1 | `optimizer` | rules beside DataFusion's: the order of joins, and what theirs get wrong |
//! | 1 | `thread_limit` | how many threads the process may have |
//! | 1 | `thread_priority` | requests before queries |
//! | 1 | `analyzed_plan` | estimates in `EXPLAIN ANALYZE` |
//! | 1 | `identifiers`, `timestamp` | names in SQL, instants as text |
//! | 1 | `profile_queue` | the tables that wait for the profiler |

mod analyzed_plan;
mod cluster_worker;
mod column_cache;
mod completion;
mod distributed;
mod engine;
mod error;
mod functions;
mod governor;
mod identifiers;
mod import;
mod knowledge;
mod limits;
mod list_values;
mod open;
mod optimizer;
mod options;
mod plan_cache;
pub mod policy;
mod profile_queue;
mod profiler;
mod queries;
mod runtime;
mod session;
mod slots;
mod sql;
mod stores;
mod stream;
mod table_statistics;
mod tables;
pub mod telemetry;
mod temporary;
mod thread_limit;
mod thread_priority;
mod threads;
mod timestamp;
mod turns;
mod type_names;
mod type_parts;
mod vector_indexing;

pub use cluster_worker::{AbandonTaskOnDrop, ClusterWorker, TaskThreads};
pub use column_cache::ColumnCacheState;
pub use completion::{Completion, CompletionLanguage, KnownNames, Suggestion, SuggestionKind, completions};
pub use datafusion::scalar::ScalarValue;
pub use engine::Engine;
pub use error::{EngineError, KqlErrorCode, Result, StoreError, error_on_worker};
pub use identifiers::{is_reserved_word, quote_identifier};
pub use import::{
    ImportOutcome, ImportRequest, TreeEvent, TreeRequest, TreeStep, TreeSummary, source_files, workbook_sheets,
};
pub use limits::{Limits, ScanLimit, ScanLimits};
pub use list_values::{ListValueError, list_value};
pub use options::{ClusterOptions, EngineOptions, WorkerAddresses};
pub use plan_cache::{PlanCacheState, ResultCacheState};
pub use querent_kql as kql;
pub use queries::RunningQueryInfo;
pub use session::{
    AuditedAct, ExplainedColumn, ExplainedExpression, IngestMode, KqlAnswers, KqlResult, ParquetRows,
    PolicyExplanation, Session, StatementDescription, is_read_otherwise, parquet_lacks,
};
pub use slots::{CallerSlots, QuerySlot, QuerySlots, QueueFull, SlotLimits};
pub use sql::{SessionVariables, aggregates_rows, qualify_tables};
pub use stores::{FileCacheState, LakeUrl, UrlRoot};
pub use stream::{QueryStats, QueryStream, ResultTypes};
pub use table_statistics::{ColumnStatistics, HistogramBucket, TableStatistics, ValueFrequency};
pub use tables::{BoundedBatches, ReadColumn, SourceReading, check_reader_options, row_bytes};
pub use temporary::{TemporaryShare, TemporaryTables};
pub use timestamp::{fraction_digits, rfc3339};

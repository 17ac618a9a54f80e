//! What exists: databases, tables, columns, runs, conversations; and finding tables by name, by text and by meaning.
//!
//! The catalog is a DuckLake 1.0 in SQLite with `querent_*` tables beside it, and a Lance schema index
//! derived from it. Nothing here enumerates the catalog to answer a query: names resolve in one batch at
//! one snapshot, listings are paged, and the index can be deleted and rebuilt at any time.
//!
//! # Map
//!
//! The rooms of the crate, floor by floor from the bottom. A room imports from lower floors only, and nothing below the
//! top imports [`Catalog`]. The map of the whole repository is `ARCHITECTURE.md` at its root.
//!
//! | floor | room | holds |
//! |---|---|---|
//! | 0 | `connection` | a connection to the catalog's database: transactions, statements, rows |
//! | 1 | `error` | [`CatalogError`]: every error with its stable code |
//! | 1 | `principal` | [`Principal`]: who calls, and what they may see |
//! | 1 | [`outbound`] | keys, errors and pauses of calls to other services |
//! | 1 | `progress` | [`Progress`]: how long work reports |
//! | 2 | [`policy`] | grants, row policies and masks, and what a caller may do under them |
//! | 2 | `model` | plain data: tables, columns, files, pages, relationships |
//! | 3 | `store` | the SQLite file: DuckLake's rows and ours, names, transactions, migrations, pending index rows |
//! | 5 | [`index`] | the schema index: full text and vectors in Lance, and the in-memory tail of recent commits |
//! | 6 | `databases`, `tables` | handles over the store for names, listings, contents and changes |
//! | 6 | `keys` | primary keys, unique constraints and foreign keys |
//! | 6 | [`values`] | sampled values and sketches of columns |
//! | 6 | `knowledge` | verified queries and metrics |
//! | 6 | `graph_models` | how graphs are made of tables |
//! | 4 | `leases` | work that one server does for all that share a catalog |
//! | 6 | `members` | the servers that share a catalog, for each other |
//! | 5 | `runs` | agent runs and their logs |
//! | 6 | `conversations` | conversations, their items, pending calls and files |
//! | 7 | `relationships` | how tables join: declared and inferred |
//! | 6 | `vector_indexes` | rows of managed tables by their vectors, in Lance |
//! | 7 | `external_users` | users of applications that embed the server |
//! | 2 | [`audit`] | the log of who asked what |
//! | 6 | `policies` | the policy that holds, and changing it |
//! | 7 | `tokens` | tokens that callers send, and whom each stands for |
//! | 7 | `integrity` | whether a folder is whole |
//! | 7 | `feedback` | what people say of runs, and the verified queries that this proposes |
//! | 7 | `retention` | deleting what is old |
//! | 8 | `backup` | copies of a folder |
//! | 8 | `search` | tables and columns for a question |
//! | 8 | `other_servers` | what a server learns of those that share its catalog |
//! | 9 | `measurements` | stages of a search on their own, for benchmarks |
//! | 10 | `catalog` | [`Catalog`]: opening and closing, and a handle for each concern |
//!
//! # Where to look
//!
//! - Names of a statement, `database_not_found`, visible databases: `store/resolve.rs`.
//! - Pages of listings: `store/listing.rs`.
//! - Tables of `catalog.sqlite`: `store/ddl.rs`, applied by `store/migrations.rs`.
//! - Decoding of rows, page tokens, limits: `store/rows.rs`.
//! - Who may see a run or a conversation: `store/ownership.rs`.
//! - A write transaction and the snapshot it makes: `store/change.rs`; the rows of new tables, many to a statement where that is a
//!   journey: `store/object_rows.rs`.
//! - What DuckDB committed meanwhile: `absorb` in `store/objects.rs`.
//! - The text of a table or column in the index: `store/search_text.rs`.
//! - Objects that the index does not hold yet: recorded by `store/pending.rs`, searched in `index/tail.rs`, flushed to
//!   Lance by `index/maintain.rs`.
//! - Who does background work where servers share the catalog: `store/leases.rs`; what each takes into its index:
//!   `store/change_log/protocol.rs`; both with faults, from seeds: `store/simulation.rs`.
//! - How rankings become one list: `search/fuse.rs`, then `search/expand.rs`.

pub mod audit;
mod backup;
mod catalog;
mod connection;
mod conversations;
mod databases;
mod error;
mod external_users;
mod feedback;
mod graph_models;
mod integrity;
mod keys;
mod knowledge;
mod leases;
mod measurements;
mod members;
mod model;
mod other_servers;
pub mod outbound;
mod policies;
pub mod policy;
mod principal;
mod progress;
mod relationships;
mod retention;
mod runs;
mod search;
mod store;
mod tables;
mod tokens;
pub mod values;
mod vector_indexes;

pub mod index;

pub use backup::{BackupSummary, restore};
pub use catalog::{Catalog, CatalogOptions, ShelfOf};
pub use connection::{DatabaseError, DatabaseFault, catalog_url_fault};
pub use conversations::{
    CatalogConversations, CatalogFiles, CatalogItems, CatalogPendingCalls, ConversationAccess, ConversationChange,
    ConversationFilter, ConversationRecord, DecidedRun, Decision, FileRecord, ItemRecord, ItemRole, ItemScope, Listed,
    PendingCall, PendingDecision, PendingKind, PendingState, RECORD_BYTES, StateMerge,
};
pub use databases::CatalogDatabases;
pub use error::{CatalogError, Result, is_full};
pub use external_users::{CatalogExternalUsers, ExternalUser, GrantKind};
pub use feedback::{CatalogFeedback, NewFeedback, ProposalState, QueryProposal, RunFeedback, RunVerdict};
pub use graph_models::{CatalogGraphModels, DraftedTable, GraphModel, GraphSnapshot};
pub use index::{INDEX_SHELF, IndexShelf, SchemaIndexStatus};
pub use integrity::{
    ChecksumWriter, FolderCheck, ORPHAN_GRACE, Orphan, PageChecksum, announce_uncommitted, first_damaged_file,
    forget_uncommitted,
};
pub use keys::CatalogKeys;
pub use knowledge::{CatalogKnowledge, MAX_OBJECTS, Metric, NewMetric, NewVerifiedQuery, Similar, VerifiedQuery};
pub use leases::{CatalogLeases, LeaseTurn, LeasedWork, WorkLease};
pub use measurements::CatalogMeasurements;
pub use members::CatalogMembers;
pub use model::*;
pub use policies::CatalogPolicies;
pub use principal::{DatabaseScope, Identity, Principal, Role, UserAttributes};
pub use progress::{NoProgress, Progress};
pub use relationships::{CatalogRelationships, looks_like_key};
pub use retention::{ExpiredSnapshots, Purged, SHORTEST_HISTORY, time_before};
pub use runs::{CatalogRuns, RunRecord, RunStatus, RunTurn};
pub use search::cutoff::clear_drop;
pub use search::{CatalogSearch, ColumnHit, ColumnSearch};
pub use store::{
    FolderServer, HeldFolder, PolicyVersion, ViewReferences, folder_server, holds_catalog, holds_uuids,
    read_views_with, table_text,
};
pub use tables::CatalogTables;
pub use tokens::{CatalogTokens, NewToken, TokenInfo, TokenState};
pub use values::{CatalogValues, ColumnProfile, TableProfile, Unprofiled, ValueHit};
pub use vector_indexes::{
    CatalogVectorIndexes, CoveredFile, NeighbourRow, OpenVectors, TableVectorIndex, VectorIndexInfo, VectorIndexSpec,
    VectorIndexWriter, VectorMetric, VectorNeighbours,
};

//! `[query]`, `[cluster]`, `[catalog]` and `[audit]`: limits of queries, the servers that work together, and the log of
//! who asked what.

use super::{SettingKey, SettingKind, key};

/// The settings of queries, and of servers that work together.
pub(super) const KEYS: &[SettingKey] = &[
    key("query.timeout", &["QUERENT_QUERY_TIMEOUT"], SettingKind::Text, "wall clock of one query, at most"),
    key(
        "query.reader_idle",
        &["QUERENT_QUERY_READER_IDLE"],
        SettingKind::Text,
        "how long a query waits for a reader that takes none of its rows",
    ),
    key("query.memory", &["QUERENT_QUERY_MEMORY"], SettingKind::Text, "memory of one query, at most"),
    key(
        "query.pool_memory",
        &["QUERENT_QUERY_POOL_MEMORY"],
        SettingKind::Text,
        "memory of all queries; none: 60 % of the machine's",
    ),
    key(
        "query.column_cache",
        &["QUERENT_QUERY_COLUMN_CACHE"],
        SettingKind::Text,
        "what decoded columns take of query.pool_memory until queries need it; none: 40 % of it",
    ),
    key(
        "query.plan_cache",
        &["QUERENT_QUERY_PLAN_CACHE"],
        SettingKind::Text,
        "memory for plans of statements that were planned before; 0: none are kept",
    ),
    key(
        "query.result_cache",
        &["QUERENT_QUERY_RESULT_CACHE"],
        SettingKind::Text,
        "what rows of answered queries take of query.pool_memory until queries need it; 0: none are kept",
    ),
    key(
        "query.process_memory",
        &["QUERENT_QUERY_PROCESS_MEMORY"],
        SettingKind::Text,
        "resident memory of the process at which the query that holds most is ended; none: 85 % of the machine's",
    ),
    key(
        "query.file_cache",
        &["QUERENT_QUERY_FILE_CACHE"],
        SettingKind::Text,
        "disk of the data folder for parts of files in an object store; 0: none",
    ),
    key("query.spill", &["QUERENT_QUERY_SPILL"], SettingKind::Text, "spill files of all queries, at most"),
    key(
        "query.threads",
        &["QUERENT_QUERY_THREADS"],
        SettingKind::Number,
        "threads of one query; none: the machine's cores",
    ),
    key(
        "query.max_concurrent",
        &["QUERENT_MAX_CONCURRENT_QUERIES"],
        SettingKind::Number,
        "queries at once; 0: no bound",
    ),
    key(
        "query.max_concurrent_per_caller",
        &["QUERENT_QUERY_MAX_CONCURRENT_PER_CALLER"],
        SettingKind::Number,
        "queries of one caller at once; none: seven eighths of them, 0: all",
    ),
    key(
        "query.max_queued",
        &["QUERENT_QUERY_MAX_QUEUED"],
        SettingKind::Number,
        "queries that wait for their turn, then 429",
    ),
    key(
        "query.queue_timeout",
        &["QUERENT_QUERY_QUEUE_TIMEOUT"],
        SettingKind::Text,
        "how long a query waits for its turn, then 429",
    ),
    key(
        "query.max_scan_rows",
        &["QUERENT_QUERY_MAX_SCAN_ROWS"],
        SettingKind::List,
        "read=ROWS,write=ROWS: what a statement may read from tables; none: any",
    ),
    key(
        "query.max_scan_bytes",
        &["QUERENT_QUERY_MAX_SCAN_BYTES"],
        SettingKind::List,
        "read=SIZE,write=SIZE: what a statement may read of tables' files; none: any",
    ),
    key(
        "query.external_roots",
        &["QUERENT_QUERY_EXTERNAL_ROOTS"],
        SettingKind::List,
        "folders under which role write may create external tables",
    ),
    key(
        "query.external_urls",
        &["QUERENT_QUERY_EXTERNAL_URLS"],
        SettingKind::List,
        "URLs (s3://bucket/prefix/, https://host/) under which external tables may lie; none: local files only",
    ),
    key(
        "cluster.role",
        &["QUERENT_CLUSTER_ROLE"],
        SettingKind::Text,
        "coordinator, or worker: parts of its queries only",
    ),
    key(
        "cluster.workers",
        &["QUERENT_CLUSTER_WORKERS"],
        SettingKind::List,
        "http(s)://host:port or dns://name:port of workers that large queries are shared out to; none: no sharing",
    ),
    SettingKey {
        path: "catalog.url",
        environment: &["QUERENT_CATALOG_URL"],
        kind: SettingKind::Text,
        secret: true,
        about: "postgres://user:password@host/database that holds the catalog; unset: a file of the data folder",
    },
    key(
        "catalog.snapshot_retention",
        &["QUERENT_CATALOG_SNAPSHOT_RETENTION"],
        SettingKind::Text,
        "how long a snapshot is kept after a newer one took its place, with the files that only it has; 0: for ever",
    ),
    key(
        "catalog.merge_small_files",
        &["QUERENT_CATALOG_MERGE_SMALL_FILES"],
        SettingKind::Text,
        "how often the small files of managed tables are merged, as OPTIMIZE does; 0: never",
    ),
    key(
        "cluster.address",
        &["QUERENT_CLUSTER_ADDRESS"],
        SettingKind::Text,
        "http(s)://host:port by which the servers of a shared catalog reach this one; unset: where it listens",
    ),
    SettingKey {
        path: "cluster.key",
        environment: &["QUERENT_CLUSTER_KEY"],
        kind: SettingKind::Text,
        secret: true,
        about: "secret of at least 16 characters that the servers of a cluster share",
    },
    key(
        "cluster.ca",
        &["QUERENT_CLUSTER_CA"],
        SettingKind::Text,
        "PEM file with the authorities of https workers' certificates; none: the system's",
    ),
    key(
        "cluster.client_certificate",
        &["QUERENT_CLUSTER_CLIENT_CERTIFICATE"],
        SettingKind::Text,
        "PEM file with the certificate that this server shows to workers",
    ),
    key(
        "cluster.client_key",
        &["QUERENT_CLUSTER_CLIENT_KEY"],
        SettingKind::Text,
        "PEM file with the private key of that certificate",
    ),
    key(
        "cluster.min_scan_bytes",
        &["QUERENT_CLUSTER_MIN_SCAN_BYTES"],
        SettingKind::Text,
        "bytes of files that a query has to read before it is shared out",
    ),
    key("audit.enabled", &["QUERENT_AUDIT_ENABLED"], SettingKind::Bool, "keep a log of who asked what"),
    key("audit.retention", &["QUERENT_AUDIT_RETENTION"], SettingKind::Text, "how long its records are kept"),
    key("audit.max_records", &["QUERENT_AUDIT_MAX_RECORDS"], SettingKind::Number, "its records, at most"),
];

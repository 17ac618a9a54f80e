//! GetSqlInfo: the server's capabilities. The protocol fixes the type of each value: the Go ADBC driver casts without
//! checking and panics on a wrong one.
//!
//! Invariant: nothing is claimed that is answered UNIMPLEMENTED.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    CommandGetSqlInfo, SqlInfo, SqlNullOrdering, SqlOuterJoinsSupportLevel, SqlSupportedCaseSensitivity,
    SqlSupportedElementActions, SqlSupportedGroupBy, SqlSupportedResultSetConcurrency, SqlSupportedResultSetType,
    SqlSupportedSubqueries, SqlSupportedTransaction, SqlSupportedUnions, SqlTransactionIsolationLevel,
    SupportedSqlGrammar,
};
use querent_catalog::Role;

use super::sql_types::conversions;
use crate::error::ApiError;

/// The Arrow release that this server's arrow crates implement.
const ARROW_VERSION: &str = arrow::ARROW_VERSION;

/// Returns the answer for a caller. A caller whose role may not write is told that the server is read-only.
pub(super) fn sql_info(command: &CommandGetSqlInfo, role: Role) -> Result<RecordBatch, ApiError> {
    let info = about(role).map_err(ApiError::internal)?;
    // Each id is compared with all, and its answer kept: one that comes again, or that nobody knows, is asked for once.
    let is_known = |id: u32| i32::try_from(id).is_ok_and(|id| SqlInfo::try_from(id).is_ok());
    let asked: BTreeSet<u32> = command.info.iter().map(|id| if is_known(*id) { *id } else { u32::MAX }).collect();
    info.record_batch(asked).map_err(ApiError::internal)
}

fn about(role: Role) -> Result<SqlInfoData, arrow_flight::error::FlightError> {
    let mut info = SqlInfoDataBuilder::new();
    let writes = role >= Role::Write;

    info.append(SqlInfo::FlightSqlServerName, "Querent");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, ARROW_VERSION);
    info.append(SqlInfo::FlightSqlServerReadOnly, !writes);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerSubstraitMinVersion, "");
    info.append(SqlInfo::FlightSqlServerSubstraitMaxVersion, "");
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    info.append(SqlInfo::FlightSqlServerCancel, true);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    // 0: there is no timeout that a client could wait for.
    info.append(SqlInfo::FlightSqlServerStatementTimeout, 0_i32);
    info.append(SqlInfo::FlightSqlServerTransactionTimeout, 0_i32);

    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, writes);
    info.append(SqlInfo::SqlDdlTable, writes);
    // The parser folds unquoted names to lower case; quoted ones keep their case, and no two names differ only in case.
    info.append(SqlInfo::SqlIdentifierCase, SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(
        SqlInfo::SqlQuotedIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32,
    );
    info.append(SqlInfo::SqlAllTablesAreSelectable, true);
    info.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i32);
    info.append(SqlInfo::SqlKeywords, names(KEYWORDS));
    info.append(SqlInfo::SqlNumericFunctions, names(NUMERIC_FUNCTIONS));
    info.append(SqlInfo::SqlStringFunctions, names(STRING_FUNCTIONS));
    info.append(SqlInfo::SqlSystemFunctions, names(SYSTEM_FUNCTIONS));
    info.append(SqlInfo::SqlDatetimeFunctions, names(DATETIME_FUNCTIONS));
    info.append(SqlInfo::SqlSearchStringEscape, "\\");
    info.append(SqlInfo::SqlExtraNameCharacters, "");
    info.append(SqlInfo::SqlSupportsColumnAliasing, true);
    info.append(SqlInfo::SqlNullPlusNullIsNull, true);
    info.append(SqlInfo::SqlSupportsConvert, conversions());
    info.append(SqlInfo::SqlSupportsTableCorrelationNames, true);
    info.append(SqlInfo::SqlSupportsDifferentTableCorrelationNames, false);
    info.append(SqlInfo::SqlSupportsExpressionsInOrderBy, true);
    info.append(SqlInfo::SqlSupportsOrderByUnrelated, true);
    info.append(
        SqlInfo::SqlSupportedGroupBy,
        bits(&[SqlSupportedGroupBy::SqlGroupByUnrelated as i32, SqlSupportedGroupBy::SqlGroupByBeyondSelect as i32]),
    );
    info.append(SqlInfo::SqlSupportsLikeEscapeClause, true);
    info.append(SqlInfo::SqlSupportsNonNullableColumns, true);
    info.append(
        SqlInfo::SqlSupportedGrammar,
        bits(&[SupportedSqlGrammar::SqlMinimumGrammar as i32, SupportedSqlGrammar::SqlCoreGrammar as i32]),
    );
    info.append(SqlInfo::SqlAnsi92SupportedLevel, 0_i32);
    // Keys are recorded and not enforced.
    info.append(SqlInfo::SqlSupportsIntegrityEnhancementFacility, false);
    info.append(SqlInfo::SqlOuterJoinsSupportLevel, SqlOuterJoinsSupportLevel::SqlFullOuterJoins as i32);
    info.append(SqlInfo::SqlSchemaTerm, "database");
    info.append(SqlInfo::SqlProcedureTerm, "procedure");
    info.append(SqlInfo::SqlCatalogTerm, "catalog");
    info.append(SqlInfo::SqlCatalogAtStart, true);
    // `GRANT SELECT ON database.table`; there are no procedures and no definitions of indexes.
    info.append(
        SqlInfo::SqlSchemasSupportedActions,
        bits(&[SqlSupportedElementActions::SqlElementInPrivilegeDefinitions as i32]),
    );
    info.append(SqlInfo::SqlCatalogsSupportedActions, 0_i32);
    info.append(SqlInfo::SqlSupportedPositionedCommands, 0_i32);
    info.append(SqlInfo::SqlSelectForUpdateSupported, false);
    info.append(SqlInfo::SqlStoredProceduresSupported, false);
    info.append(
        SqlInfo::SqlSupportedSubqueries,
        bits(&[
            SqlSupportedSubqueries::SqlSubqueriesInComparisons as i32,
            SqlSupportedSubqueries::SqlSubqueriesInExists as i32,
            SqlSupportedSubqueries::SqlSubqueriesInIns as i32,
            SqlSupportedSubqueries::SqlSubqueriesInQuantifieds as i32,
        ]),
    );
    info.append(SqlInfo::SqlCorrelatedSubqueriesSupported, true);
    info.append(
        SqlInfo::SqlSupportedUnions,
        bits(&[SqlSupportedUnions::SqlUnion as i32, SqlSupportedUnions::SqlUnionAll as i32]),
    );
    // For every limit, 0 means that there is none or that it is unknown.
    for limit in NO_LIMITS {
        info.append(*limit, 0_i64);
    }
    info.append(SqlInfo::SqlMaxRowSizeIncludesBlobs, true);
    info.append(SqlInfo::SqlMaxStatements, 0_i64);
    info.append(SqlInfo::SqlDefaultTransactionIsolation, SqlTransactionIsolationLevel::SqlTransactionNone as i32);
    info.append(SqlInfo::SqlTransactionsSupported, false);
    info.append(SqlInfo::SqlSupportedTransactionsIsolationLevels, 0_i32);
    info.append(SqlInfo::SqlDataDefinitionCausesTransactionCommit, false);
    info.append(SqlInfo::SqlDataDefinitionsInTransactionsIgnored, false);
    // A result is a stream, read once from its beginning.
    info.append(
        SqlInfo::SqlSupportedResultSetTypes,
        bits(&[SqlSupportedResultSetType::SqlResultSetTypeForwardOnly as i32]),
    );
    info.append(SqlInfo::SqlSupportedConcurrenciesForResultSetUnspecified, 0_i32);
    info.append(
        SqlInfo::SqlSupportedConcurrenciesForResultSetForwardOnly,
        bits(&[SqlSupportedResultSetConcurrency::SqlResultSetConcurrencyReadOnly as i32]),
    );
    info.append(SqlInfo::SqlSupportedConcurrenciesForResultSetScrollSensitive, 0_i32);
    info.append(SqlInfo::SqlSupportedConcurrenciesForResultSetScrollInsensitive, 0_i32);
    info.append(SqlInfo::SqlBatchUpdatesSupported, true);
    info.append(SqlInfo::SqlSavepointsSupported, false);
    info.append(SqlInfo::SqlNamedParametersSupported, false);
    info.append(SqlInfo::SqlLocatorsUpdateCopy, false);
    info.append(SqlInfo::SqlStoredFunctionsUsingCallSyntaxSupported, false);
    info.build()
}

const NO_LIMITS: &[SqlInfo] = &[
    SqlInfo::SqlMaxBinaryLiteralLength,
    SqlInfo::SqlMaxCharLiteralLength,
    SqlInfo::SqlMaxColumnNameLength,
    SqlInfo::SqlMaxColumnsInGroupBy,
    SqlInfo::SqlMaxColumnsInIndex,
    SqlInfo::SqlMaxColumnsInOrderBy,
    SqlInfo::SqlMaxColumnsInSelect,
    SqlInfo::SqlMaxColumnsInTable,
    SqlInfo::SqlMaxConnections,
    SqlInfo::SqlMaxCursorNameLength,
    SqlInfo::SqlMaxIndexLength,
    SqlInfo::SqlDbSchemaNameLength,
    SqlInfo::SqlMaxProcedureNameLength,
    SqlInfo::SqlMaxCatalogNameLength,
    SqlInfo::SqlMaxRowSize,
    SqlInfo::SqlMaxStatementLength,
    SqlInfo::SqlMaxTableNameLength,
    SqlInfo::SqlMaxTablesInSelect,
    SqlInfo::SqlMaxUsernameLength,
];

/// Words of the grammar that are reserved and that the standard does not have.
const KEYWORDS: &[&str] = &[
    "ANTI",
    "CLUSTER",
    "DISTRIBUTE",
    "ILIKE",
    "LIMIT",
    "MINUS",
    "OVERWRITE",
    "PIVOT",
    "QUALIFY",
    "SEMI",
    "SORT",
    "UNPIVOT",
];

const NUMERIC_FUNCTIONS: &[&str] = &[
    "abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cot", "degrees", "exp", "floor", "ln", "log10", "pi",
    "power", "radians", "random", "round", "sin", "sqrt", "tan", "trunc",
];
const STRING_FUNCTIONS: &[&str] = &[
    "ascii",
    "chr",
    "concat",
    "initcap",
    "left",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "split_part",
    "strpos",
    "substr",
    "translate",
    "trim",
    "upper",
];
const SYSTEM_FUNCTIONS: &[&str] = &["coalesce", "nullif", "version"];
const DATETIME_FUNCTIONS: &[&str] =
    &["current_date", "current_time", "date_bin", "date_part", "date_trunc", "now", "to_date", "to_timestamp"];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The protocol's bitmasks have bit `n` set for the enum value `n`.
fn bits(values: &[i32]) -> i32 {
    values.iter().fold(0, |mask, value| mask | (1 << value))
}

//! Prepared statements. A handle is the statement itself, sealed; nothing is stored for one that is never closed.

use std::sync::Arc;

use arrow_flight::sql::{ActionCreatePreparedStatementRequest, DoPutPreparedStatementResult};
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use tonic::Code;

use super::caller::FlightCaller;
use super::messages::CreatePreparedStatementResult;
use super::put::PutRows;
use super::statement::{Statements, schema_bytes};
use super::statement_text::StatementText;
use super::unsupported::refuse_transaction;
use crate::admission::Door;
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

impl Statements {
    /// Prepares a statement: plans and authorises it with its parameters open.
    pub(super) async fn prepare(
        &self,
        state: &AppState,
        caller: &FlightCaller,
        request: ActionCreatePreparedStatementRequest,
    ) -> Result<CreatePreparedStatementResult, ApiError> {
        refuse_transaction(request.transaction_id.as_ref())?;
        let statement = Arc::new(self.statement(caller, request.query).await?);
        let described = described(state, caller, &statement).await;
        let (schema, parameters, has_rows) = described.map_err(|error| refused_to_prepare(error, &statement.text))?;
        let handle = self.tickets.handle(&caller.principal, &statement);
        Ok(CreatePreparedStatementResult {
            prepared_statement_handle: self.tickets.seal(&handle),
            // Without `is_update`, the JDBC driver takes an empty schema for an update, and any other for a query. What is
            // sent as an update loses its rows, so one with RETURNING is told as a query.
            dataset_schema: if has_rows { schema_bytes(&schema)? } else { Bytes::new() },
            parameter_schema: match parameters.fields().is_empty() {
                true => Bytes::new(),
                false => schema_bytes(&parameters)?,
            },
            is_update: Some(!has_rows),
        })
    }

    /// Returns the schema of a prepared statement's rows, as far as it is known without values.
    pub(super) async fn described_schema(
        &self,
        state: &AppState,
        caller: &FlightCaller,
        handle: &Bytes,
    ) -> Result<SchemaRef, ApiError> {
        let statement = self.prepared(caller, handle)?;
        if statement.has_parameters() {
            return Ok(self.plan_to_describe(caller, statement, caller.result_types()?).await?.schema);
        }
        let (schema, _, _) = described(state, caller, &statement).await?;
        Ok(schema)
    }

    /// Returns the statement of a handle, with the values that were bound to it.
    pub(super) fn prepared(&self, caller: &FlightCaller, handle: &Bytes) -> Result<Arc<StatementText>, ApiError> {
        let handle = self.tickets.open_handle(handle, &caller.principal)?;
        self.tickets.prepared(&handle)
    }

    /// Binds values to a prepared query. The answer's handle has them; none, where none come, as for a statement that takes none.
    pub(super) async fn bind(
        &self,
        caller: &FlightCaller,
        handle: &Bytes,
        rows: PutRows,
    ) -> Result<DoPutPreparedStatementResult, ApiError> {
        let handle = self.tickets.open_handle(handle, &caller.principal)?;
        let statement = self.tickets.prepared(&handle)?;
        let statement = match rows.parameters().await? {
            Some(_) if statement.is_kql => return Err(values_of_kql()),
            Some(values) => statement.with_parameters(&values)?,
            None => statement.without_parameters(),
        };
        let bound = self.tickets.bound(&handle, statement);
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(self.tickets.seal(&bound)) })
    }

    /// Executes a prepared statement, for each row of values.
    pub(super) async fn update_prepared(
        &self,
        caller: &FlightCaller,
        handle: &Bytes,
        rows: PutRows,
    ) -> Result<Option<u64>, ApiError> {
        let statement = self.prepared(caller, handle)?;
        match rows.parameters().await? {
            Some(_) if statement.is_kql => Err(values_of_kql()),
            Some(values) => self.update_with_rows(caller, &statement, &values).await,
            None => self.update(caller, statement).await,
        }
    }

    /// Closes a prepared statement. One that this server no longer knows is closed already.
    pub(super) fn close_prepared(&self, caller: &FlightCaller, handle: &Bytes) -> Result<(), ApiError> {
        match self.tickets.open_handle(handle, &caller.principal) {
            Ok(handle) => {
                self.tickets.close(&handle);
                Ok(())
            }
            Err(error) if error.code() == ErrorCode::InvalidTicket => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// What a query in KQL declares with `declare query_parameters` has names, types and defaults of its own, and would be passed over.
fn values_of_kql() -> ApiError {
    ApiError::new(ErrorCode::BadRequest, "a statement in KQL takes no values")
        .with_hint("write them in its text, as in `let n = 5; ...`, or send them with the query to Kusto's REST routes")
}

/// ADBC's clients take UNIMPLEMENTED for a server that prepares nothing: they go on without, and what they then say of the values
/// that they have no statement for says nothing of what is not supported.
fn refused_to_prepare(error: ApiError, text: &str) -> ApiError {
    match error.code() == ErrorCode::Unsupported && text.contains(['?', '$']) {
        true => error.with_grpc_code(Code::InvalidArgument),
        false => error,
    }
}

/// Returns the schema of a statement's answer, its parameters, and whether the answer is rows.
async fn described(
    state: &AppState,
    caller: &FlightCaller,
    statement: &StatementText,
) -> Result<(SchemaRef, SchemaRef, bool), ApiError> {
    let session = caller.session_of(state, statement).await?;
    let session = session.with_result_types(caller.result_types()?);
    if statement.is_kql {
        let mut permit = state.admission.admit(&caller.principal, Door::Flight).await?;
        let described = session.describe_kql(&statement.text).await;
        permit.record(&described);
        return Ok((described?, Arc::new(Schema::empty()), true));
    }
    let described = session.describe_sql(&statement.text).await?;
    Ok((described.schema, described.parameters, described.has_rows))
}

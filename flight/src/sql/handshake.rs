//! Handshake: takes a user name and a token, and returns the bearer token for later calls. JDBC, ODBC, pyarrow and ADBC
//! put the credentials into the `authorization` header and read the answer from it; old clients use the payload for both.

use arrow_flight::{BasicAuth, HandshakeRequest, HandshakeResponse};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, header};
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};

use crate::auth::Authenticator;
use crate::error::{ApiError, ErrorCode};

/// The stream of a handshake's answers.
pub(super) type HandshakeStream = BoxStream<'static, Result<HandshakeResponse, Status>>;

/// Checks the credentials and returns the token, in the header and as payload.
pub(super) async fn handshake(
    authenticator: &Authenticator,
    request: Request<Streaming<HandshakeRequest>>,
) -> Result<Response<HandshakeStream>, Status> {
    let mut headers = request.metadata().clone().into_headers();
    if !headers.contains_key(header::AUTHORIZATION)
        && let Some(message) = request.into_inner().message().await?
    {
        headers = basic_auth_headers(&message)?;
    }
    let token = authenticator.handshake(&headers).await?;
    let bearer = MetadataValue::try_from(format!("Bearer {token}")).map_err(ApiError::internal)?;
    let answer = HandshakeResponse { protocol_version: 0, payload: token.into_bytes().into() };
    let mut response = Response::new(stream::iter([Ok(answer)]).boxed());
    response.metadata_mut().insert(header::AUTHORIZATION.as_str(), bearer);
    Ok(response)
}

/// Converts a `BasicAuth` payload to an `authorization` header.
fn basic_auth_headers(message: &HandshakeRequest) -> Result<HeaderMap, ApiError> {
    let mut headers = HeaderMap::new();
    if message.payload.is_empty() {
        return Ok(headers);
    }
    let malformed = || ApiError::new(ErrorCode::BadRequest, "the handshake's payload is not a BasicAuth message");
    let given = BasicAuth::decode(message.payload.clone()).map_err(|_| malformed())?;
    let credentials = BASE64_STANDARD.encode(format!("{}:{}", given.username, given.password));
    let value = HeaderValue::try_from(format!("Basic {credentials}")).map_err(|_| malformed())?;
    headers.insert(header::AUTHORIZATION, value);
    Ok(headers)
}

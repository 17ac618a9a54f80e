//! Arrow Flight SQL: one file a command family.

use tonic::service::Routes;

use crate::AppState;

/// The HTTP routes with the Flight service beside them.
pub fn add_service(routes: Routes, _state: &AppState) -> Routes {
    routes
}

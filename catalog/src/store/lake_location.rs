//! The lake's `DATA_PATH`: the folder beside the catalog's file, or a URL of an object store. It is chosen while the lake has
//! no files; afterwards it stays, since a setting moves no files.

use std::path::Path;

use uuid::Uuid;

use super::migrations::{meta, set_meta};
use super::relations::data_path;
use crate::connection::StoreConnection;
use crate::error::{CatalogError, Result};
use crate::model::{LakeLocation, is_url};

/// The key of the lake's id in `querent_meta`.
const LAKE_ID: &str = "lake_id";

/// Returns where the lake's files lie.
pub(crate) fn load(connection: &StoreConnection) -> Result<LakeLocation> {
    let mut data_path = stored(connection)?;
    if !data_path.ends_with('/') {
        data_path.push('/');
    }
    Ok(LakeLocation { data_path, lake_id: meta(connection, LAKE_ID)? })
}

/// Makes `wanted` the lake's data path. Errors: `invalid_object` where the lake has files somewhere else.
pub(super) fn choose(transaction: &StoreConnection, wanted: Option<&str>) -> Result<()> {
    let found = stored(transaction)?;
    if let Some(wanted) = wanted.filter(|wanted| wanted.trim_end_matches('/') != found.trim_end_matches('/')) {
        if has_files(transaction)? {
            return Err(CatalogError::InvalidObject {
                what: "data path",
                reason: format!(
                    "the tables of this data folder have files in {found}, which a setting does not move; leave the setting \
                     out, or use a new data folder with {wanted}"
                ),
            });
        }
        transaction.execute(
            "UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path' AND scope IS NULL",
            [format!("{}/", wanted.trim_end_matches('/'))],
        )?;
        set_meta(transaction, "owns_data_path", "false")?;
    }
    if is_url(&stored(transaction)?) && meta(transaction, LAKE_ID)?.is_none() {
        set_meta(transaction, LAKE_ID, &Uuid::now_v7().to_string())?;
    }
    Ok(())
}

/// Returns whether a path is a URL that is not below the lake's own.
pub(super) fn is_elsewhere(connection: &StoreConnection, path: &Path) -> Result<bool> {
    Ok(path.to_str().is_none_or(is_url) && !path.starts_with(data_path(connection)?))
}

fn stored(connection: &StoreConnection) -> Result<String> {
    Ok(data_path(connection)?.to_string_lossy().into_owned())
}

fn has_files(connection: &StoreConnection) -> Result<bool> {
    Ok(connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM ducklake_data_file) OR EXISTS (SELECT 1 FROM ducklake_delete_file)
             OR EXISTS (SELECT 1 FROM ducklake_files_scheduled_for_deletion)",
        [],
        |row| row.get(0),
    )?)
}

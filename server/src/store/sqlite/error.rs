//! What the errors of SQLite mean.

use super::super::StoreError;
use rusqlite::ErrorCode;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let hint = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
                "another program uses its file"
            }
            Some(ErrorCode::DiskFull) => "free some disk space",
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
                "check its disk, and whether its directory can be written"
            }
            Some(ErrorCode::DatabaseCorrupt) => {
                return StoreError::Damaged(error.to_string());
            }
            Some(ErrorCode::NotADatabase) => {
                return StoreError::Failed(format!("{error}: name another file with --store, or restore a backup"));
            }
            // Without its statements.
            _ => {
                return StoreError::Failed(match error {
                    rusqlite::Error::SqlInputError { msg, .. } => msg,
                    error => error.to_string(),
                });
            }
        };
        StoreError::Unavailable(format!("{error}: {hint}"))
    }
}

//! Opens a store by its location.

#[cfg(feature = "postgres")]
use super::PostgresStore;
use super::{Formats, Result, SqliteStore, Store, StoreError};
use crate::config::{Durability, StoreLocation};
use std::sync::Arc;

impl StoreLocation {
    /// Opens or creates the store. The durability is that of a file: a database has its own.
    ///
    /// # Errors
    /// Those of [`SqliteStore::open`] and `PostgresStore::open`.
    pub async fn open(&self, durability: Durability) -> Result<Arc<dyn Store>> {
        match self {
            StoreLocation::File(path) => {
                let path = path.clone();
                // It blocks while an older format is converted.
                let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path, durability)).await;
                let store =
                    opened.map_err(|error| StoreError::Failed(format!("opening the store ended: {error}")))??;
                Ok(Arc::new(store))
            }
            #[cfg(feature = "postgres")]
            StoreLocation::Postgres(address) => match PostgresStore::open(address).await {
                Ok(store) => Ok(Arc::new(store)),
                Err(error) => Err(self.named(error)),
            },
            #[cfg(not(feature = "postgres"))]
            StoreLocation::Postgres(_) => Err(self.without_feature()),
        }
    }

    /// Opens a store that exists and has the format of this version. Creates none, and changes no format.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is no store, [`StoreError::Earlier`] if it has an earlier format, and those of
    /// [`StoreLocation::open`].
    pub async fn open_existing(&self, durability: Durability) -> Result<Arc<dyn Store>> {
        self.check_format().await?;
        self.open(durability).await
    }

    /// Checks that there is a store of this version.
    pub(super) async fn check_format(&self) -> Result<()> {
        let Formats { found, known } = self.formats().await?;
        let path = self.to_string();
        match found {
            0 => Err(StoreError::Missing { path, kind: if self.is_shared() { "database" } else { "file" } }),
            found if found != known => Err(StoreError::Earlier { path, found, known }),
            _ => Ok(()),
        }
    }

    #[cfg(not(feature = "postgres"))]
    pub(super) fn without_feature(&self) -> StoreError {
        StoreError::Open {
            path: self.to_string(),
            why: "this program was built without PostgreSQL: build it with the feature `postgres`".to_owned(),
        }
    }

    /// Adds the address to an error that does not have it.
    #[cfg(feature = "postgres")]
    pub(super) fn named(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Unavailable(why) => StoreError::Unavailable(format!("{self}: {why}")),
            error => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_path_opens_a_file() {
        let path = std::env::temp_dir().join(format!("ptc-location-{}.db", std::process::id()));
        let location: StoreLocation = path.display().to_string().parse().unwrap();
        let store = location.open(Durability::Process).await.unwrap();
        store.check_writable().await.unwrap();
        store.close().await.unwrap();
        for end in ["", "-wal", "-shm", "-lock"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }

    #[tokio::test]
    async fn an_address_of_another_database_is_no_path() {
        let location: StoreLocation = "mysql://db/runs".parse().unwrap();
        let error = location.open(Durability::Machine).await.map(drop).unwrap_err().to_string();
        assert!(error.ends_with("it is neither a file nor postgres://USER@HOST/DATABASE"), "{error}");
    }

    #[cfg(not(feature = "postgres"))]
    #[tokio::test]
    async fn a_database_needs_the_feature() {
        let location: StoreLocation = "postgres://me:secret@db/runs".parse().unwrap();
        let error = location.open(Durability::Machine).await.map(drop).unwrap_err().to_string();
        let why = "this program was built without PostgreSQL: build it with the feature `postgres`";
        assert_eq!(error, format!("the store postgres://me@db/runs cannot be opened: {why}"));
    }
}

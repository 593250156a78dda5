//! What an operator does with a whole store: `ptcl store`.

use super::{Checked, Formats, Result, StoreError, StoreLocation, sqlite};
#[cfg(feature = "postgres")]
use super::{MAX_PROBLEMS, PostgresStore, Query, RunStore, Store};
use std::path::{Path, PathBuf};

impl StoreLocation {
    /// Returns the format of the store, and changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Open`] if there is no store, [`StoreError::Format`] if a later version wrote it, or another error if it
    /// cannot be read.
    pub async fn formats(&self) -> Result<Formats> {
        match self {
            StoreLocation::File(path) => blocking(path, |path| sqlite::formats(&path)).await,
            #[cfg(feature = "postgres")]
            StoreLocation::Postgres(address) => {
                PostgresStore::formats(address).await.map_err(|error| self.named(error))
            }
            #[cfg(not(feature = "postgres"))]
            StoreLocation::Postgres(_) => Err(self.without_feature()),
        }
    }

    /// Checks that the store is whole: the database itself, if it is a file, and the digest of every line of every journal.
    /// Changes nothing; other processes may use the store meanwhile.
    ///
    /// # Errors
    /// If there is no store, it cannot be read, or it has another format.
    pub async fn check(&self) -> Result<Checked> {
        self.check_format().await?;
        match self {
            StoreLocation::File(path) => blocking(path, |path| sqlite::check(&path)).await,
            #[cfg(feature = "postgres")]
            StoreLocation::Postgres(address) => check_database(&PostgresStore::open(address).await?).await,
            #[cfg(not(feature = "postgres"))]
            StoreLocation::Postgres(_) => Err(self.without_feature()),
        }
    }

    /// Writes a copy of a file, as it is at one moment, to a new file. Other processes may use the store meanwhile. Returns
    /// the bytes of the copy.
    ///
    /// # Errors
    /// If the store is a database, which has its own programs for this; or if it cannot be read, or the file exists or cannot
    /// be written.
    pub async fn backup(&self, to: &Path) -> Result<u64> {
        let StoreLocation::File(path) = self else {
            return Err(StoreError::Failed("a database is copied by its own programs: use pg_dump".to_owned()));
        };
        let to = to.to_owned();
        blocking(path, move |path| sqlite::backup(&path, &to)).await
    }
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(PathBuf) -> Result<T> + Send + 'static,
) -> Result<T> {
    let path = path.to_owned();
    let name = path.display().to_string();
    let done = tokio::task::spawn_blocking(move || work(path)).await;
    done.map_err(|error| StoreError::Failed(error.to_string()))?.map_err(|error| match error {
        StoreError::Failed(why) => StoreError::Open { path: name, why },
        StoreError::Damaged(why) => {
            StoreError::Open { path: name, why: format!("it is damaged ({why}): restore a backup") }
        }
        error => error,
    })
}

#[cfg(feature = "postgres")]
async fn check_database(store: &PostgresStore) -> Result<Checked> {
    /// The number of runs that are listed at once.
    const PAGE: usize = 500;
    let mut checked = Checked::default();
    let mut query = Query { max: PAGE, ..Query::default() };
    loop {
        let page = store.list(&query).await?;
        for run in &page.runs {
            checked.runs += 1;
            match store.journal(&run.run_id).await {
                Ok(journal) => checked.lines += journal.text.lines().count() as u64,
                Err(StoreError::Damaged(why)) => checked.problems.push(format!("{why} is damaged")),
                Err(error) => return Err(error),
            }
        }
        match page.runs.last().filter(|_| page.has_more && checked.problems.len() < MAX_PROBLEMS) {
            Some(last) => query.after = Some((last.created_ms, last.run_id.clone())),
            None => break,
        }
    }
    store.close().await?;
    Ok(checked)
}

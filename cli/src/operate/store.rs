//! `ptcl store`: copies, checks and converts a store.

use super::{Place, exists, failed, not_opened};
use crate::exit::{Exit, Failure};
use crate::output::print;
use lisp_runtime::internal::visible;
use lisp_server::config::Config;
use lisp_server::store::StoreLocation;
use std::path::{Path, PathBuf};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Copy a SQLite store to a new file, also while a service uses it
    Backup {
        /// The file to write; it must not exist
        file: PathBuf,
    },
    /// Check a store for damage: its file, and every line of every journal
    Check,
    /// Convert a store to the format of this version, and print the format it had
    Migrate,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    arguments.place.run(async |config| {
        exists(&config.store)?;
        match &arguments.command {
            Command::Backup { file } => backup(&config, file).await,
            Command::Check => check(&config).await,
            Command::Migrate => migrate(&config).await,
        }
    })
}

async fn backup(config: &Config, file: &Path) -> Result<Exit, Failure> {
    if let StoreLocation::Postgres(_) = config.store {
        return Err(Failure::Usage(format!(
            "a database is copied by its own program: run\n  pg_dump --format=custom --schema=ptc_lisp --file={} {}",
            quoted(&file.display().to_string()),
            quoted(&config.store.to_string())
        )));
    }
    let bytes = config.store.backup(file).await.map_err(|error| failed(&error))?;
    print(&format!("{} bytes in {}\n", bytes, visible(&file.display().to_string())))?;
    Ok(Exit::Ok)
}

/// Quotes a word for a shell if it needs that.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:@%+=,[]".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

async fn check(config: &Config) -> Result<Exit, Failure> {
    let checked = config.store.check().await.map_err(|error| failed(&error))?;
    let mut text: String = checked.problems.iter().map(|problem| format!("{}\n", visible(problem))).collect();
    let found = match checked.problems.len() {
        0 => "no damage".to_owned(),
        1 => "1 problem".to_owned(),
        n => format!("{n} problems; restore a backup, or cancel the runs"),
    };
    text += &format!("{} runs, {} lines: {found}\n", checked.runs, checked.lines);
    print(&text)?;
    Ok(if checked.problems.is_empty() { Exit::Ok } else { Exit::Fail })
}

async fn migrate(config: &Config) -> Result<Exit, Failure> {
    let formats = config.store.formats().await.map_err(|error| failed(&error))?;
    let store = config.store.open(config.service.durability).await;
    let store = store.map_err(|error| not_opened(error, "it has converted the store when it started"))?;
    store.close().await.map_err(|error| failed(&error))?;
    let name = config.store.to_string();
    let text = match formats.found {
        found if found == formats.known => format!("{name} has the format {found} already\n"),
        0 => format!("{name} was empty and has the format {} now\n", formats.known),
        found => format!("{name} had the format {found} and has {} now\n", formats.known),
    };
    print(&visible(&text))?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("/var/a-1.dump"), "/var/a-1.dump");
        assert_eq!(quoted("postgres://me@db:99/runs"), "postgres://me@db:99/runs");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}

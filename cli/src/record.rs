//! The file of `ptcl run --record`.

use crate::exit::Failure;
use lisp_runtime::{Answer, Recording};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A recording that writes its lines to a file.
pub(crate) struct Record {
    recording: Recording,
    path: PathBuf,
    /// Whether the file was created for this record. An existing file is emptied at the first line, and never removed.
    is_new: bool,
}

impl Record {
    /// Opens the file, so that a file that cannot be written is an error before anything runs.
    pub(crate) fn to(path: &Path) -> Result<Record, Failure> {
        let failed = |error| Failure::File { path: path.to_owned(), error };
        let (file, is_new) = match File::create_new(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A symbolic link may exist without its target.
                let is_new = !path.exists();
                let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
                (file.map_err(failed)?, is_new)
            }
            Err(error) => return Err(failed(error)),
        };
        // A device or a pipe cannot be emptied.
        let is_emptied = AtomicBool::new(is_new || !file.metadata().map_err(failed)?.is_file());
        let keep = move |line: &str| {
            if !is_emptied.swap(true, Ordering::Relaxed) {
                file.set_len(0)?;
            }
            Ok((&file).write_all(line.as_bytes())?)
        };
        Ok(Record { recording: Recording::builder().recorder(keep).build(), path: path.to_owned(), is_new })
    }

    /// Returns the recording for the run.
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Writes the answer after the record. A program that does not compile has no record, and a file created for it is
    /// removed.
    pub(crate) fn finish(&self, answer: &mut Answer) -> Result<(), Failure> {
        let failed = |error| Failure::File { path: self.path.clone(), error };
        let run_id = self.recording.run_id();
        if run_id.is_empty() {
            return match self.is_new {
                true => fs::canonicalize(&self.path).and_then(fs::remove_file).map_err(failed),
                false => Ok(()),
            };
        }
        if self.recording.text().is_empty() {
            // The first line could not be written, and the run ended with that error.
            return Ok(());
        }
        answer.run_id = run_id;
        self.recording.answer(&answer.to_json()).map_err(|error| failed(io::Error::other(error.message)))
    }
}

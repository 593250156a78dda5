//! `--watch`: runs again whenever a file changes.

use crate::exit::{Exit, Failure};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How often the files are checked.
const STEP: Duration = Duration::from_millis(200);

/// Does the work, and again after each change of a file. Ends with the process, or when the output is closed. Failures
/// are reported.
pub(crate) fn again(files: &[PathBuf], mut work: impl FnMut() -> Result<Exit, Failure>) -> Result<Exit, Failure> {
    loop {
        let before = stamps(files);
        match work() {
            Err(failure) if failure.is_closed_pipe() => return Err(failure),
            Err(failure) => tell_line!("ptcl: {failure}"),
            Ok(_) => {}
        }
        tell_line!("ptcl: waiting for a change; Ctrl-C stops");
        let mut now = before.clone();
        while now == before {
            std::thread::sleep(STEP);
            now = stamps(files);
        }
        // The file may still be being written.
        loop {
            std::thread::sleep(STEP / 2);
            let later = std::mem::replace(&mut now, stamps(files));
            if later == now {
                break;
            }
        }
    }
}

/// The modification time and size of each file; `None` if it does not exist.
fn stamps(files: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let stamp = |file: &PathBuf| std::fs::metadata(file).and_then(|data| Ok((data.modified()?, data.len()))).ok();
    files.iter().map(stamp).collect()
}

/// Checks that these are files, and none of them is standard input.
pub(crate) fn check(files: &[PathBuf]) -> Result<(), Failure> {
    match files.is_empty() || files.iter().any(|file| file == Path::new("-")) {
        true => Err(Failure::Usage(
            "--watch needs a file to watch: pass the program as FILE, or its data with --data FILE".to_owned(),
        )),
        false => Ok(()),
    }
}

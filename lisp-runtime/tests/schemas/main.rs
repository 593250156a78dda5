//! Tools as they come, held against what others have written: the schemas beside the repository (skipped where they are not), and
//! hostile ones, which are made here.

#[path = "../../../lisp-core/tests/cpu/mod.rs"]
mod cpu;
mod hostile;
mod real;

use std::path::PathBuf;

/// The folder of schemas beside the repository.
fn folder() -> Option<PathBuf> {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let found = ["../shared/data/schemas", "../../shared/data/schemas"].map(|folder| repository.join(folder));
    let found = found.into_iter().find(|folder| folder.is_dir());
    if found.is_none() {
        println!("skipped: there is no ../shared/data/schemas");
    }
    found
}

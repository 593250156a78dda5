//! Which layers this system supports, found out by applying them.

#[cfg(target_os = "linux")]
use crate::SetupError;
use crate::guest::layers::{Layer, Layers, State};
#[cfg(target_os = "linux")]
use crate::host::sandbox::{Builder, Sandbox};
use serde::Serialize;
use std::fmt;

/// What this system supports of process isolation.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// The name and version of the kernel.
    pub kernel: String,
    /// The effective user id.
    pub euid: u32,
    /// The version of Landlock, if available.
    pub landlock_version: Option<i32>,
    /// The state of each layer in a process started for this purpose.
    pub layers: Layers,
    /// The layers that are required to run programs.
    pub required: Vec<Layer>,
    /// The required layers that are missing.
    pub missing: Vec<Layer>,
    /// The error of a program run in such a process; `None` if it succeeded.
    pub error: Option<String>,
}

/// Starts a template, locks it down as far as the system allows, and runs a program in a child of it.
///
/// # Errors
/// Returns an error if the template does not start at all: see [`crate::init`].
#[cfg(target_os = "linux")]
pub fn capabilities() -> Result<Capabilities, SetupError> {
    Builder::default().probe()
}

#[cfg(target_os = "linux")]
impl Builder {
    /// Reports the [`capabilities`] of a sandbox with these settings.
    ///
    /// # Errors
    /// Returns an error if the template does not start at all.
    pub fn probe(self) -> Result<Capabilities, SetupError> {
        let required = self.required().to_vec();
        let sandbox: Sandbox = self.requiring_nothing().build()?;
        let layers = sandbox.layers();
        let missing = required.iter().copied().filter(|&layer| !layers.is_active(layer)).collect();
        let outcome = sandbox.eval("(+ 1 2)", &lisp_runtime::Input::new());
        Ok(Capabilities {
            kernel: kernel(),
            euid: rustix::process::geteuid().as_raw(),
            landlock_version: crate::kernel::sys::landlock_version().ok(),
            layers,
            required,
            missing,
            error: outcome.problem().map(ToString::to_string),
        })
    }
}

/// Returns the name and version of the kernel.
pub(crate) fn kernel() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, user {}", self.kernel, self.euid)?;
        for (layer, state) in &self.layers.0 {
            let required = if self.required.contains(layer) { "required" } else { "" };
            let state = match state {
                State::Active => "active".to_owned(),
                State::Disabled => "disabled".to_owned(),
                State::Unavailable { why } => format!("unavailable: {why}"),
                State::Degraded { why, fallback } => format!("degraded: {why}; {fallback}"),
            };
            writeln!(f, "{:<16} {required:<8} {state}", layer.name())?;
        }
        match (&self.error, self.missing.as_slice()) {
            (None, []) => writeln!(f, "programs can run in processes of their own"),
            (Some(error), _) => writeln!(f, "a program does not run: {error}"),
            (None, missing) => {
                let missing: Vec<&str> = missing.iter().map(|layer| layer.name()).collect();
                writeln!(f, "nothing runs: {} missing", missing.join(", "))
            }
        }
    }
}

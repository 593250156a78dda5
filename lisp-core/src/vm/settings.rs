//! The settings of a run.

/// The limits and options of a run. A deadline is not one of them: the driver, which resumes the machine, checks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Maximum bytes held beyond the baseline; 0 means unlimited.
    pub heap_bytes: usize,
    /// Maximum iterations of one loop or of one function by `recur`; 0 means unlimited.
    pub loop_iterations: u64,
    /// Maximum units of fuel; `None` means unlimited.
    pub fuel: Option<u64>,
    /// Maximum characters of one printed line; 0 means unlimited.
    pub print_chars: usize,
    /// Maximum bytes of all printed lines; 0 means unlimited.
    pub prints_bytes: usize,
    /// Whether a printed line ends the slice, so that the driver can send it at once.
    pub print_pauses: bool,
    /// Whether a missing `data/name` is an error.
    pub strict_data: bool,
    /// Whether an error shows the values of local names.
    pub shows_locals: bool,
    /// Whether keys that are read in vain are noted ([`Machine::notes`](super::Machine::notes)).
    pub notes: bool,
    /// For tests: compacts the heap after every n-th allocation, even if not needed.
    pub compact_every: Option<u64>,
    /// A fixed time, in milliseconds since 1970. Without it the driver is asked ([`Effect::Clock`](super::Effect)).
    pub now_ms: Option<i64>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            heap_bytes: 10_000_000,
            loop_iterations: 1_000,
            fuel: None,
            print_chars: 2_000,
            prints_bytes: 1_000_000,
            print_pauses: false,
            strict_data: false,
            shows_locals: true,
            notes: false,
            compact_every: None,
            now_ms: None,
        }
    }
}

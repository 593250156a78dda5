//! How a run is limited.

/// How a run is limited. The defaults are those of the requirements; the deadline belongs to the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Bytes the program may hold above the baseline; 0 is no limit.
    pub heap_bytes: usize,
    /// Rounds of one loop or recursive function by `recur`; 0 is no limit.
    pub loop_iterations: u64,
    /// Units of fuel; `None` is no limit.
    pub fuel: Option<u64>,
    /// Characters of one printed line; 0 is no limit.
    pub print_chars: usize,
    /// Bytes of all printed lines; 0 is no limit.
    pub prints_bytes: usize,
    /// Does a printed line end the slice, so that the driver can send it on at once?
    pub print_pauses: bool,
    /// Is a missing `data/name` an error?
    pub strict_data: bool,
    /// Does an error show the values of the local names where it was?
    pub shows_locals: bool,
    /// For tests: after every n-th allocation the heap is compacted, needed or not.
    pub compact_every: Option<u64>,
    /// A fixed time, in milliseconds since 1970; without it the driver is asked ([`Effect::Clock`](super::Effect)).
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
            compact_every: None,
            now_ms: None,
        }
    }
}

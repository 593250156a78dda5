//! Names that the language does not have, and what to write instead.

/// Names that are left out for one reason.
pub struct Absent {
    /// The names, without namespace, separated by spaces.
    pub(super) names: &'static str,
    /// The hint. `{}` stands for the next of the programs.
    pub(super) hint: &'static str,
    /// Replacement programs and their values.
    pub instead: &'static [(&'static str, &'static str)],
}

impl Absent {
    /// Returns the names, without namespace.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.names.split_ascii_whitespace()
    }

    /// Returns what to write instead.
    pub fn hint(&self) -> String {
        let mut parts = self.hint.split("{}");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for (part, (program, _)) in parts.zip(self.instead) {
            out.push_str(program);
            out.push_str(part);
        }
        out
    }
}

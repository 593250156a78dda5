//! What the JSON Schemas of tools may cost: to read them, and to check values against them.
//!
//! A schema of the host has limits of its own. The schemas of a request come from anyone, so those of all its tools
//! share one allowance, which is much smaller, and their checks are shorter.

use super::schema_error::SchemaError;

/// The limits of one schema, or of all schemas of a request together.
#[derive(Debug)]
struct Limits {
    /// The maximum bytes as text.
    bytes: usize,
    /// The maximum number of schemas, those within others included.
    schemas: usize,
    patterns: usize,
    /// The maximum bytes of a compiled pattern.
    pattern_size: usize,
    /// The maximum number of steps in which the lines for models are written.
    line_steps: usize,
    check: CheckLimits,
}

/// The limits of one check: pairs of a schema and a value that it visits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckLimits {
    pub(crate) steps: u64,
    /// The maximum for a failed check that reports all mismatches, and for one that reports the first.
    pub(crate) steps_for_all: u64,
    pub(crate) steps_for_first: u64,
    /// Whether a string that is matched against a pattern or a format counts by its length.
    pub(crate) counts_text: bool,
}

const OF_ONE: Limits = Limits {
    bytes: 1 << 20,
    schemas: 20_000,
    patterns: 300,
    pattern_size: 1 << 20,
    line_steps: usize::MAX,
    check: CheckLimits { steps: 500_000, steps_for_all: 50_000, steps_for_first: 1_000_000, counts_text: false },
};
const OF_REQUEST: Limits = Limits {
    bytes: 1 << 20,
    schemas: 10_000,
    patterns: 100,
    pattern_size: 256 << 10,
    line_steps: 300_000,
    check: CheckLimits { steps: 50_000, steps_for_all: 5_000, steps_for_first: 100_000, counts_text: true },
};

/// The rest of the limits.
#[derive(Debug)]
pub(crate) struct Allowance {
    limits: Limits,
    bytes: usize,
    schemas: usize,
    patterns: usize,
    /// The rest for lines.
    pub(crate) line_steps: usize,
    is_shared: bool,
}

impl Allowance {
    /// Returns the allowance of one schema of the host.
    pub(crate) fn of_one() -> Self {
        Allowance::new(OF_ONE, false)
    }

    /// Returns the allowance of all schemas of a request.
    pub(crate) fn of_request() -> Self {
        Allowance::new(OF_REQUEST, true)
    }

    fn new(limits: Limits, is_shared: bool) -> Self {
        let Limits { bytes, schemas, patterns, line_steps, .. } = limits;
        Allowance { limits, bytes, schemas, patterns, line_steps, is_shared }
    }

    fn exceeded(&self, max: usize, what: &str) -> SchemaError {
        SchemaError::new(match self.is_shared {
            true => format!("with it, the schemas of the request's tools have more than {max} {what} together"),
            false => format!("it has more than {max} {what} within it"),
        })
    }

    /// Takes the text of a schema.
    pub(crate) fn take_text(&mut self, text: &str) -> Result<(), SchemaError> {
        match self.bytes.checked_sub(text.len()) {
            Some(left) => self.bytes = left,
            None if self.is_shared => return Err(self.exceeded(self.limits.bytes, "bytes")),
            None => {
                let (has, max) = (text.len(), self.limits.bytes);
                return Err(SchemaError::new(format!("the schema has {has} bytes; the maximum is {max}")));
            }
        }
        Ok(())
    }

    /// Checks that there are this many schemas left.
    pub(crate) fn check_schemas(&self, count: usize) -> Result<(), SchemaError> {
        if count > self.schemas {
            return Err(self.exceeded(self.limits.schemas, "schemas"));
        }
        Ok(())
    }

    /// Checks that there are this many patterns left.
    pub(crate) fn check_patterns(&self, count: usize) -> Result<(), SchemaError> {
        if count > self.patterns {
            return Err(self.exceeded(self.limits.patterns, "patterns"));
        }
        Ok(())
    }

    /// Takes schemas and patterns that were checked.
    pub(crate) fn take(&mut self, schemas: usize, patterns: usize) {
        self.schemas = self.schemas.saturating_sub(schemas);
        self.patterns = self.patterns.saturating_sub(patterns);
    }

    /// Returns the limits of checks.
    pub(crate) fn check(&self) -> CheckLimits {
        self.limits.check
    }

    /// Returns the maximum bytes of a compiled pattern.
    pub(crate) fn pattern_size(&self) -> usize {
        self.limits.pattern_size
    }
}

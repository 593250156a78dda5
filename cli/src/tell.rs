//! Messages on standard error.

/// Writes text to standard error. If that fails, the command continues; `eprint!` would panic.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr().lock(), $($text)*);
    }};
}

/// Writes text to standard error, with a newline.
macro_rules! tell_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}

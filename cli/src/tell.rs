//! What is said on standard error.

/// Says a text on standard error, as it is. Where standard error takes nothing there is nobody to tell, and the command goes on:
/// `eprint!` would panic.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr().lock(), $($text)*);
    }};
}

/// Says a text on standard error, with the end of a line.
macro_rules! tell_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}

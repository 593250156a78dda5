//! Messages on standard error.

/// Writes formatted text to standard error, which may have colours: whoever formats it makes what it shows visible. If writing fails,
/// the command continues; `eprint!` would panic.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr().lock(), $($text)*);
    }};
}

/// Writes text to standard error, with a newline. Characters that control the terminal or are invisible are escaped.
macro_rules! tell_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($text)*);
        let _ = writeln!(std::io::stderr().lock(), "{}", lisp_runtime::internal::visible(&text));
    }};
}

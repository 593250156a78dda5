//! The classes by which `catch` distinguishes exceptions: Java's, with their superclasses.

use crate::error::{ErrorClass, Reason};
use crate::heap::Value;

/// A class, its package, and its superclass.
type Class = (&'static str, &'static str, &'static str);

/// Passes all classes that `catch` knows to a macro. Programs can create those with `made`, by `(Name. argument ...)`:
/// it has the minimum and maximum number of arguments, what they are, an example of them, and its message. `Object` is
/// not a class of exceptions, but programs use its name.
macro_rules! exception_classes {
    ($with:ident) => {
        $with! {
            named {
                ("Object", "java.lang", ""),
                ("VirtualMachineError", "java.lang", "Error"),
                // The interface of the class below it.
                ("IExceptionInfo", "clojure.lang", "RuntimeException"),
                ("ExceptionInfo", "clojure.lang", "IExceptionInfo"),
            }
            made(0, 2, "message cause", "\"closed\"", "closed") {
                ("Throwable", "java.lang", "Object"),
                ("Exception", "java.lang", "Throwable"),
                ("Error", "java.lang", "Throwable"),
                ("AssertionError", "java.lang", "Error"),
                ("OutOfMemoryError", "java.lang", "VirtualMachineError"),
                ("StackOverflowError", "java.lang", "VirtualMachineError"),
                ("RuntimeException", "java.lang", "Exception"),
                ("ArithmeticException", "java.lang", "RuntimeException"),
                ("ClassCastException", "java.lang", "RuntimeException"),
                ("NullPointerException", "java.lang", "RuntimeException"),
                ("IllegalStateException", "java.lang", "RuntimeException"),
                ("UnsupportedOperationException", "java.lang", "RuntimeException"),
                ("IndexOutOfBoundsException", "java.lang", "RuntimeException"),
                ("ArrayIndexOutOfBoundsException", "java.lang", "IndexOutOfBoundsException"),
                ("StringIndexOutOfBoundsException", "java.lang", "IndexOutOfBoundsException"),
                ("IllegalArgumentException", "java.lang", "RuntimeException"),
                ("NumberFormatException", "java.lang", "IllegalArgumentException"),
                ("NoSuchElementException", "java.util", "RuntimeException"),
                ("DateTimeException", "java.time", "RuntimeException"),
                ("UncheckedIOException", "java.io", "RuntimeException"),
                ("IOException", "java.io", "Exception"),
                ("FileNotFoundException", "java.io", "IOException"),
                ("InterruptedException", "java.lang", "Exception"),
                ("CloneNotSupportedException", "java.lang", "Exception"),
                ("ClassNotFoundException", "java.lang", "Exception"),
                ("ExecutionException", "java.util.concurrent", "Exception"),
                ("TimeoutException", "java.util.concurrent", "Exception"),
            }
            made(2, 2, "count function", "1 \"f\"", "Wrong number of args (1) passed to: f") {
                ("ArityException", "clojure.lang", "IllegalArgumentException"),
            }
            made(3, 3, "message text offset", "\"unclosed\" \"(\" 0", "unclosed") {
                ("PatternSyntaxException", "java.util.regex", "IllegalArgumentException"),
                ("DateTimeParseException", "java.time.format", "DateTimeException"),
            }
        }
    };
}
pub(super) use exception_classes;

macro_rules! list {
    (
        named { $(($name:literal, $package:literal, $above:literal),)* }
        $(made($min:literal, $max:literal, $args:literal, $given:literal, $message:literal) {
            $(($made:literal, $of:literal, $under:literal),)*
        })*
    ) => {
        &[$(($name, $package, $above),)* $($(($made, $of, $under),)*)*]
    };
}

const CLASSES: &[Class] = exception_classes!(list);

/// The class of thrown values that have no other class.
pub(super) const THROWN: &str = "ExceptionInfo";

/// Returns the number of a class that `catch` knows, by its name with or without its package.
pub(crate) fn class_number(name: &str) -> Option<u16> {
    let number = CLASSES.iter().position(|&(class, package, _)| {
        let rest = name.strip_suffix(class);
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_suffix('.') == Some(package))
    })?;
    u16::try_from(number).ok()
}

/// Returns the names of the classes.
pub(crate) fn class_names() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().map(|class| class.0)
}

/// Returns true if a class covers all exceptions.
pub(crate) fn covers_all(class: u16) -> bool {
    matches!(CLASSES.get(usize::from(class)), Some(("Object" | "Throwable", ..)))
}

/// Returns true if an exception of the class `name` also belongs to the class with this number. An unknown `name`
/// counts as a `RuntimeException`.
pub(super) fn is_a(name: &str, class: u16) -> bool {
    let wanted = usize::from(class);
    if wanted >= CLASSES.len() {
        return true;
    }
    let found = CLASSES.iter().position(|class| class.0 == name);
    let mut at = found.or(RUNTIME_EXCEPTION);
    while at.is_some_and(|at| at != wanted) {
        at = at.and_then(|at| ABOVE[at]);
    }
    at.is_some()
}

/// Returns the index of a class in the list.
const fn place(name: &str) -> Option<usize> {
    let mut at = 0;
    while at < CLASSES.len() {
        let (a, b) = (CLASSES[at].0.as_bytes(), name.as_bytes());
        let mut same = if a.len() == b.len() { 0 } else { usize::MAX };
        while same < b.len() && a[same] == b[same] {
            same += 1;
        }
        if same == b.len() {
            return Some(at);
        }
        at += 1;
    }
    None
}

const RUNTIME_EXCEPTION: Option<usize> = place("RuntimeException");

/// The indices of the superclasses.
const ABOVE: [Option<usize>; CLASSES.len()] = {
    let mut above = [None; CLASSES.len()];
    let mut at = 0;
    while at < CLASSES.len() {
        above[at] = place(CLASSES[at].2);
        at += 1;
    }
    above
};

/// Returns the class of an error by its reason, for errors that do not have a class.
pub(super) fn of_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::TypeError | Reason::NotCallable | Reason::JavaTypeError => "ClassCastException",
        Reason::ArithmeticError => "ArithmeticException",
        Reason::ArityError | Reason::ArityMismatch | Reason::JavaArityError | Reason::InvalidKeywordCall => {
            "ArityException"
        }
        Reason::DestructureError => "UnsupportedOperationException",
        Reason::RuntimeError | Reason::JavaDomainError | Reason::InvalidJavaString | Reason::InvalidToolArgs => {
            "IllegalArgumentException"
        }
        Reason::PmapError | Reason::PcallsError => "ExecutionException",
        Reason::UncaughtException => THROWN,
        _ => "RuntimeException",
    }
}

/// Returns the class of the error for a value of the wrong kind.
pub(crate) fn of_wrong(value: Value<'_>) -> ErrorClass {
    if matches!(value, Value::Nil) { ErrorClass::NullPointer } else { ErrorClass::ClassCast }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_below_the_one_above_it() {
        for (name, ..) in CLASSES {
            assert!(is_a(name, 0) && is_a(name, class_number(name).expect("its number")), "{name}");
        }
        for reason in Reason::ALL {
            assert!(class_number(of_reason(*reason)).is_some(), "{reason}");
        }
    }

    #[test]
    fn the_page_of_the_language_names_each_class() {
        let page = include_str!("../../../docs/language.md");
        let table =
            page.split_once("| class | errors |").and_then(|(_, rest)| rest.split_once("\n\n")).expect("the table").0;
        for name in class_names() {
            assert!(table.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn classes_have_their_packages() {
        assert_eq!(class_number("java.lang.Exception"), class_number("Exception"));
        assert!(class_number("java.time.format.DateTimeParseException").is_some());
        for name in ["java.util.Exception", "MyException", ".Exception", "java.lang.", ""] {
            assert_eq!(class_number(name), None, "{name}");
        }
        let is = |name, class| is_a(name, class_number(class).expect("a class"));
        assert!(is("NumberFormatException", "IllegalArgumentException") && is("Mine", "RuntimeException"));
        assert!(is("ExceptionInfo", "IExceptionInfo") && !is("ArithmeticException", "IExceptionInfo"));
        assert!(!is("AssertionError", "Exception") && !is("IllegalArgumentException", "NumberFormatException"));
    }
}

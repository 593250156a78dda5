//! What can go wrong, said so that a program's author can repair it.

use std::borrow::Cow;
use std::fmt;

/// A range of bytes in the program's source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` up to, not including, `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// The stable name of a fault. A closed list: programs that repair programs match on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason { $($(#[$doc])* $variant,)* }

        impl Reason {
            /// Every reason, in the order of this list.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// The name as it stands in an answer.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }

            /// The reason of a name.
            pub fn from_name(name: &str) -> Option<Reason> {
                match name { $($name => Some(Reason::$variant),)* _ => None }
            }
        }
    };
}

reasons! {
    /// The source text cannot be read.
    ParseError => "parse_error",
    /// A special form is not written as its grammar says.
    InvalidForm => "invalid_form",
    /// A special form has too many or too few parts.
    InvalidArity => "invalid_arity",
    /// A placeholder such as `%1` stands outside `#()`.
    InvalidPlaceholder => "invalid_placeholder",
    /// A step of a threading form is not a call or a name.
    InvalidThreadForm => "invalid_thread_form",
    /// `cond` has a test without a result.
    InvalidCondForm => "invalid_cond_form",
    /// A keyword is called with a number of arguments it does not take.
    InvalidKeywordCall => "invalid_keyword_call",
    /// A destructuring pattern of a kind the language does not have.
    UnsupportedPattern => "unsupported_pattern",
    /// A literal map or set has the same key twice.
    DuplicateKey => "duplicate_key",
    /// The source is longer than the limit.
    ProgramTooLarge => "program_too_large",
    /// The source has more distinct symbols and keywords than the limit.
    SymbolLimitExceeded => "symbol_limit_exceeded",
    /// A name that nothing defines.
    UnboundVar => "unbound_var",
    /// A value of the wrong type.
    TypeError => "type_error",
    /// A number outside what the operation can take.
    ArithmeticError => "arithmetic_error",
    /// A built-in is called with the wrong number of arguments.
    ArityError => "arity_error",
    /// A function of the program is called with the wrong number of arguments.
    ArityMismatch => "arity_mismatch",
    /// A value that is not a function is called.
    NotCallable => "not_callable",
    /// A pattern does not fit the value it is to take apart.
    DestructureError => "destructure_error",
    /// Any other fault of the program while it runs.
    RuntimeError => "runtime_error",
    /// An exception that the program threw and did not catch.
    UncaughtException => "uncaught_exception",
    /// `loop` or `recur` went round more often than the limit.
    LoopLimitExceeded => "loop_limit_exceeded",
    /// The program holds more memory than its budget.
    MemoryExceeded => "memory_exceeded",
    /// The deadline has passed.
    Timeout => "timeout",
    /// The fuel is used up.
    FuelExhausted => "fuel_exhausted",
    /// The host cancelled the run.
    Cancelled => "cancelled",
    /// The result is larger than the limit.
    ResultLimitExceeded => "result_limit_exceeded",
    /// The program called tools more often than the limit.
    ToolCallLimitExceeded => "tool_call_limit_exceeded",
    /// The record of the run takes more than its limit, or a value in it.
    RecordLimitExceeded => "record_limit_exceeded",
    /// A run that is replayed does something else than its record says.
    ReplayDiverged => "replay_diverged",
    /// A call had begun when an earlier process of the run ended; whether it was made is not known.
    UnknownCall => "unknown_call",
    /// A session has more definitions or programs than its limits, or its text is longer.
    SessionLimitExceeded => "session_limit_exceeded",
    /// A tool that the host has not granted.
    UnknownTool => "unknown_tool",
    /// The host's policy, or the person it asked, does not allow a call.
    ToolDenied => "tool_denied",
    /// The host's policy wants a call approved, and the run has nobody to ask.
    ApprovalRequired => "approval_required",
    /// The budget that the run shares with others is empty.
    BudgetExceeded => "budget_exceeded",
    /// A tool failed.
    ToolError => "tool_error",
    /// A tool is called with arguments it does not take.
    InvalidToolArgs => "invalid_tool_args",
    /// The result or an argument does not fit the signature.
    ValidationError => "validation_error",
    /// No parallel worker is free.
    ParallelCapacityExceeded => "parallel_capacity_exceeded",
    /// A worker of `pmap` failed.
    PmapError => "pmap_error",
    /// A worker of `pcalls` failed.
    PcallsError => "pcalls_error",
    /// A Java method that the language does not have.
    UnsupportedMethod => "unsupported_method",
    /// A member of a Java class that the language does not have.
    UnsupportedJavaMember => "unsupported_java_member",
    /// A Java class that the language does not have.
    UnsupportedJavaClass => "unsupported_java_class",
    /// A Java method is called with the wrong number of arguments.
    JavaArityError => "java_arity_error",
    /// A Java method is called with a value of the wrong type.
    JavaTypeError => "java_type_error",
    /// A Java method is called with a value outside its domain.
    JavaDomainError => "java_domain_error",
    /// A text that is not a valid Java string.
    InvalidJavaString => "invalid_java_string",
    /// A bug of the interpreter, contained.
    HostFault => "host_fault",
}

impl Reason {
    /// Can a program catch an error of this reason? It cannot when a limit was reached, when the host ended the run, or when
    /// something is wrong with the host.
    pub const fn is_catchable(self) -> bool {
        use Reason::*;
        !matches!(
            self,
            LoopLimitExceeded
                | MemoryExceeded
                | Timeout
                | FuelExhausted
                | Cancelled
                | ResultLimitExceeded
                | ToolCallLimitExceeded
                | RecordLimitExceeded
                | ReplayDiverged
                | UnknownCall
                | SessionLimitExceeded
                | ProgramTooLarge
                | SymbolLimitExceeded
                | ParallelCapacityExceeded
                | UnknownTool
                | ToolDenied
                | ApprovalRequired
                | BudgetExceeded
                | HostFault
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One figure or text that belongs to an error, such as `limit_bytes`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Detail {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}

impl From<u64> for Detail {
    fn from(n: u64) -> Self {
        Detail::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Detail {
    fn from(n: usize) -> Self {
        Detail::from(n as u64)
    }
}

impl From<&str> for Detail {
    fn from(text: &str) -> Self {
        Detail::Text(text.to_owned())
    }
}

/// A call on the way to a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The function that was called, if it has a name.
    pub function: Option<Box<str>>,
    /// Where the call stands.
    pub span: Span,
    /// The program it stands in: the number that it was loaded under.
    pub program: u64,
    /// Of a function that `map`, `reduce` or the like called: that one's name, and the number of the element it was for,
    /// from 0.
    pub element: Option<(&'static str, usize)>,
}

/// The way to a fault in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The program that the error's span is in: the number that it was loaded under.
    pub program: u64,
    /// The calls on the way, innermost first; of very many the innermost and the outermost.
    pub calls: Vec<CallSite>,
    /// The local names that had a value where the error was, and previews of the values.
    pub locals: Vec<LocalValue>,
}

/// A local name and its value where an error was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalValue {
    /// The name, as the program has it.
    pub name: Box<str>,
    /// A preview of the value: at most 120 characters.
    pub value: Box<str>,
}

impl Trace {
    /// The most calls that are kept.
    pub const CALLS: usize = 8;

    /// The most locals that are shown: of more, those that were bound last.
    pub const LOCALS: usize = 8;
}

/// A class of Java by which a program catches an error whose reason does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// `ArithmeticException`
    Arithmetic,
    /// `ClassCastException`
    ClassCast,
    /// `DateTimeException`
    DateTime,
    /// `DateTimeParseException`
    DateTimeParse,
    /// `IllegalArgumentException`
    IllegalArgument,
    /// `IndexOutOfBoundsException`
    IndexOutOfBounds,
    /// `NullPointerException`
    NullPointer,
    /// `NumberFormatException`
    NumberFormat,
    /// `PatternSyntaxException`
    PatternSyntax,
    /// `RuntimeException`
    Runtime,
    /// `StringIndexOutOfBoundsException`
    StringIndexOutOfBounds,
    /// `UnsupportedOperationException`
    UnsupportedOperation,
}

impl ErrorClass {
    /// Returns the name of the class.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorClass::Arithmetic => "ArithmeticException",
            ErrorClass::ClassCast => "ClassCastException",
            ErrorClass::DateTime => "DateTimeException",
            ErrorClass::DateTimeParse => "DateTimeParseException",
            ErrorClass::IllegalArgument => "IllegalArgumentException",
            ErrorClass::IndexOutOfBounds => "IndexOutOfBoundsException",
            ErrorClass::NullPointer => "NullPointerException",
            ErrorClass::NumberFormat => "NumberFormatException",
            ErrorClass::PatternSyntax => "PatternSyntaxException",
            ErrorClass::Runtime => "RuntimeException",
            ErrorClass::StringIndexOutOfBounds => "StringIndexOutOfBoundsException",
            ErrorClass::UnsupportedOperation => "UnsupportedOperationException",
        }
    }
}

/// An error from source text or from a run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Error {
    /// The stable name of the fault.
    pub reason: Reason,
    /// What was expected and what came, for a person or a model. At most [`Error::MESSAGE_BYTES`] bytes.
    pub message: String,
    /// Where in the source, when the fault has a place.
    pub span: Option<Span>,
    /// One next step.
    pub hint: Option<String>,
    /// Figures such as `limit_bytes`.
    pub details: Vec<(Cow<'static, str>, Detail)>,
    /// Of an error in a run: which program its place is in, and the way to it.
    pub trace: Option<Box<Trace>>,
    /// Of an error of compiling: what else is wrong in the same text, at most [`Error::MORE`] further errors.
    pub more: Box<[Error]>,
    /// The class of Java by which a program catches it, where the reason does not say it.
    pub class: Option<ErrorClass>,
}

impl Error {
    /// A message is cut, with a mark, beyond this many bytes.
    pub const MESSAGE_BYTES: usize = 2_000;

    /// The most errors that are told beside the first.
    pub const MORE: usize = 9;

    /// The first of several errors, with the others; none where there is none.
    pub fn of_several(errors: impl IntoIterator<Item = Error>) -> Option<Error> {
        let mut errors = errors.into_iter();
        let first = errors.next()?;
        Some(Error { more: errors.take(Error::MORE).collect(), ..first })
    }

    /// An error without a place; [`Error::at`] adds it.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > Self::MESSAGE_BYTES {
            message.truncate(message.floor_char_boundary(Self::MESSAGE_BYTES));
            message.push_str(" ...");
        }
        Error {
            reason,
            message,
            span: None,
            hint: None,
            details: Vec::new(),
            trace: None,
            more: Box::default(),
            class: None,
        }
    }

    /// Can a program catch it? What workers could not catch, their caller cannot either.
    pub fn is_catchable(&self) -> bool {
        let cause = self.details.iter().find(|(name, _)| name == "cause").and_then(|(_, cause)| match cause {
            Detail::Text(name) => Reason::from_name(name),
            Detail::Int(_) => None,
        });
        self.reason.is_catchable() && cause.is_none_or(Reason::is_catchable)
    }

    /// The error of a function that would need all elements of a sequence that has no end.
    pub(crate) fn endless(name: &str) -> Self {
        Error::without_end(format!("{name} cannot take an endless sequence"))
    }

    /// The error of a place where a sequence that has no end cannot stand.
    pub(crate) fn without_end(message: impl Into<String>) -> Self {
        Error::new(Reason::TypeError, message).hint("take some of it, as in (take 10 s)")
    }

    /// Adds the place.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Adds a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the class by which it is caught.
    #[must_use]
    pub(crate) fn class(mut self, class: ErrorClass) -> Self {
        self.class = Some(class);
        self
    }

    /// Adds a figure.
    #[must_use]
    pub fn detail(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Detail>) -> Self {
        self.details.push((name.into(), value.into()));
        self
    }
}

/// Why an operation of a run stopped before its end.
#[derive(Debug)]
pub enum Fault {
    /// This many more bytes do not fit. The machine may collect and run the instruction again; a second
    /// time it is the memory error.
    Collect(usize),
    /// This much more fuel than the slice still holds is needed. The driver looks at its clock and the instruction
    /// runs again.
    Pause(u64),
    /// The call cannot be made without a frame, because an argument is a sequence without an end, or because it would leave much
    /// behind on the way. The machine makes it again with one, or says what the program should do.
    NeedsFrame,
    /// The time is asked for. The driver tells it and the instruction runs again.
    Clock,
    /// The program is at fault.
    Error(Box<Error>),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Error(Box::new(error))
    }
}

/// The result of an operation of a run.
pub type Res<T> = Result<T, Fault>;

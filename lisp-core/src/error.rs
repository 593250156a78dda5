//! Errors of programs, with what a person or a model needs to repair the program.

use std::borrow::Cow;
use std::fmt;

/// A range of bytes in the program's source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Creates a span from `start` up to, but not including, `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// Returns the smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// The stable name of an error. The list is closed: programs that repair programs match on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason { $($(#[$doc])* $variant,)* }

        impl Reason {
            /// All reasons, in declaration order.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// Returns the name, as in answers.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }

            /// Returns the reason with this name.
            pub fn from_name(name: &str) -> Option<Reason> {
                match name { $($name => Some(Reason::$variant),)* _ => None }
            }
        }
    };
}

reasons! {
    /// The source text cannot be parsed.
    ParseError => "parse_error",
    /// A special form has the wrong syntax.
    InvalidForm => "invalid_form",
    /// A special form has too many or too few parts.
    InvalidArity => "invalid_arity",
    /// A placeholder such as `%1` outside of `#()`.
    InvalidPlaceholder => "invalid_placeholder",
    /// A step of a threading form is neither a call nor a name.
    InvalidThreadForm => "invalid_thread_form",
    /// `cond` has a test without a result.
    InvalidCondForm => "invalid_cond_form",
    /// A keyword is called with the wrong number of arguments.
    InvalidKeywordCall => "invalid_keyword_call",
    /// A kind of destructuring pattern that the language does not have.
    UnsupportedPattern => "unsupported_pattern",
    /// A map or set literal has the same key twice.
    DuplicateKey => "duplicate_key",
    /// The source is longer than the limit.
    ProgramTooLarge => "program_too_large",
    /// The source has more distinct symbols and keywords than the limit.
    SymbolLimitExceeded => "symbol_limit_exceeded",
    /// An undefined name.
    UnboundVar => "unbound_var",
    /// A value of the wrong type.
    TypeError => "type_error",
    /// A number outside the range of an operation.
    ArithmeticError => "arithmetic_error",
    /// A built-in is called with the wrong number of arguments.
    ArityError => "arity_error",
    /// A function of the program is called with the wrong number of arguments.
    ArityMismatch => "arity_mismatch",
    /// A value that is not a function is called.
    NotCallable => "not_callable",
    /// A pattern does not match the value that it destructures.
    DestructureError => "destructure_error",
    /// Any other error of a running program.
    RuntimeError => "runtime_error",
    /// An exception that the program threw and did not catch.
    UncaughtException => "uncaught_exception",
    /// `loop` or `recur` ran more iterations than the limit.
    LoopLimitExceeded => "loop_limit_exceeded",
    /// The program holds more memory than its limit.
    MemoryExceeded => "memory_exceeded",
    /// The deadline has passed.
    Timeout => "timeout",
    /// The fuel is used up.
    FuelExhausted => "fuel_exhausted",
    /// The run was cancelled.
    Cancelled => "cancelled",
    /// The result is larger than the limit.
    ResultLimitExceeded => "result_limit_exceeded",
    /// The program made more tool calls than the limit.
    ToolCallLimitExceeded => "tool_call_limit_exceeded",
    /// The record of the run, or a value in it, is larger than the limit.
    RecordLimitExceeded => "record_limit_exceeded",
    /// A replayed run does something else than its record says.
    ReplayDiverged => "replay_diverged",
    /// A call had started when an earlier process of the run ended, and it is unknown whether it was made.
    UnknownCall => "unknown_call",
    /// A session has more definitions or programs than its limits, or its text is longer.
    SessionLimitExceeded => "session_limit_exceeded",
    /// A tool that is not granted.
    UnknownTool => "unknown_tool",
    /// The host's policy, or an approver, denies a call.
    ToolDenied => "tool_denied",
    /// The host's policy requires an approval, and the run cannot ask for one.
    ApprovalRequired => "approval_required",
    /// The budget that the run shares with other runs is used up.
    BudgetExceeded => "budget_exceeded",
    /// A tool failed.
    ToolError => "tool_error",
    /// A tool is called with invalid arguments.
    InvalidToolArgs => "invalid_tool_args",
    /// A check before the run found calls of tools that would fail.
    CheckFailed => "check_failed",
    /// The result or an argument does not match the signature.
    ValidationError => "validation_error",
    /// No parallel worker is free.
    ParallelCapacityExceeded => "parallel_capacity_exceeded",
    /// A worker of `pmap` failed.
    PmapError => "pmap_error",
    /// A worker of `pcalls` failed.
    PcallsError => "pcalls_error",
    /// A Java method that the language does not support.
    UnsupportedMethod => "unsupported_method",
    /// A member of a Java class that the language does not support.
    UnsupportedJavaMember => "unsupported_java_member",
    /// A Java class that the language does not support.
    UnsupportedJavaClass => "unsupported_java_class",
    /// A Java method is called with the wrong number of arguments.
    JavaArityError => "java_arity_error",
    /// A Java method is called with a value of the wrong type.
    JavaTypeError => "java_type_error",
    /// A Java method is called with a value outside its domain.
    JavaDomainError => "java_domain_error",
    /// A string that is not a valid Java string.
    InvalidJavaString => "invalid_java_string",
    /// A contained bug of the interpreter.
    HostFault => "host_fault",
}

impl Reason {
    /// Returns true if programs can catch errors with this reason. They cannot catch errors of limits, of a run ended
    /// by the host, and of faults of the host.
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
                | CheckFailed
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

/// A detail of an error, such as `limit_bytes`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Detail {
    /// An integer.
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

/// A call in the call chain of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The name of the called function, if it has one.
    pub function: Option<Box<str>>,
    /// The source position of the call.
    pub span: Span,
    /// The number of the program that contains the call.
    pub program: u64,
    /// For a function called by `map`, `reduce` and the like: the name of that function, and the index of the element,
    /// from 0.
    pub element: Option<(&'static str, usize)>,
}

/// The call chain of an error in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The number of the program that contains the error's span.
    pub program: u64,
    /// The calls, innermost first. In a long chain, calls between the innermost and the outermost are left out.
    pub calls: Vec<CallSite>,
    /// The local names that had a value at the error, with previews of the values.
    pub locals: Vec<LocalValue>,
}

/// A local name and its value at an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalValue {
    /// The name, as written in the program.
    pub name: Box<str>,
    /// A preview of the value, at most 120 characters.
    pub value: Box<str>,
}

impl Trace {
    /// The maximum number of calls.
    pub const CALLS: usize = 8;

    /// The maximum number of locals; if there are more, those bound last are shown.
    pub const LOCALS: usize = 8;
}

/// A Java class by which a program catches an error, if the reason does not determine the class.
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

/// An error in source text or of a run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Error {
    /// The stable name of the error.
    pub reason: Reason,
    /// The message for a person or a model: what was expected and what was found. At most [`Error::MESSAGE_BYTES`]
    /// bytes.
    pub message: String,
    /// The position in the source, if known.
    pub span: Option<Span>,
    /// The next step that repairs the program.
    pub hint: Option<String>,
    /// Details such as `limit_bytes`.
    pub details: Vec<(Cow<'static, str>, Detail)>,
    /// For an error of a run: the program that contains the span, and the call chain.
    pub trace: Option<Box<Trace>>,
    /// For an error of compilation: further errors in the same text, at most [`Error::MORE`].
    pub more: Box<[Error]>,
    /// The Java class by which a program catches it, if the reason does not determine the class.
    pub class: Option<ErrorClass>,
    /// Whether an argument was nil where the operation takes none.
    pub of_nil: bool,
}

impl Error {
    /// The detail with the reason for which a worker failed.
    const CAUSE: &'static str = "cause";
    /// The detail with the index of a call by a worker.
    const INDEX: &'static str = "index";

    /// The maximum length of a message, in bytes. A longer one is cut, with a mark.
    pub const MESSAGE_BYTES: usize = 2_000;

    /// The maximum number of further errors.
    pub const MORE: usize = 9;

    /// Returns the first of several errors, with the others in `more`; `None` if there are none.
    pub fn of_several(errors: impl IntoIterator<Item = Error>) -> Option<Error> {
        let mut errors = errors.into_iter();
        let first = errors.next()?;
        Some(Error { more: errors.take(Error::MORE).collect(), ..first })
    }

    /// Creates an error without a position; [`Error::at`] adds it.
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
            of_nil: false,
        }
    }

    /// Returns the detail with this name.
    pub fn named_detail(&self, name: &str) -> Option<&Detail> {
        self.details.iter().find_map(|(own, detail)| (own == name).then_some(detail))
    }

    /// Returns the reason for which a worker failed, if it failed the call.
    pub fn cause(&self) -> Option<Reason> {
        match self.named_detail(Self::CAUSE)? {
            Detail::Text(name) => Reason::from_name(name),
            Detail::Int(_) => None,
        }
    }

    /// Adds the reason for which a worker failed. For nested calls, the innermost one stays.
    #[must_use]
    pub(crate) fn caused_by(self, reason: Reason) -> Self {
        if self.named_detail(Self::CAUSE).is_some() { self } else { self.detail(Self::CAUSE, reason.name()) }
    }

    /// Returns the index of the call by a worker that failed.
    pub fn index(&self) -> Option<usize> {
        match self.named_detail(Self::INDEX)? {
            Detail::Int(index) => usize::try_from(*index).ok(),
            Detail::Text(_) => None,
        }
    }

    /// Sets the index of the call by a worker that failed.
    #[doc(hidden)]
    #[must_use]
    pub fn with_index(self, index: usize) -> Self {
        self.without_detail(Self::INDEX).detail(Self::INDEX, index)
    }

    /// Returns the error as the worker had it, without the index and the cause that the call added.
    #[doc(hidden)]
    #[must_use]
    pub fn without_call(self) -> Self {
        self.without_detail(Self::INDEX).without_detail(Self::CAUSE)
    }

    fn without_detail(mut self, name: &str) -> Self {
        self.details.retain(|(own, _)| own != name);
        self
    }

    /// Returns true if programs can catch it. If a worker could not catch it, its caller cannot either.
    pub fn is_catchable(&self) -> bool {
        self.reason.is_catchable() && self.cause().is_none_or(Reason::is_catchable)
    }

    /// Returns the error of a function that would need all elements of an endless sequence.
    pub(crate) fn endless(name: &str) -> Self {
        Error::without_end(format!("{name} cannot take an endless sequence"))
    }

    /// Returns the error of a use of an endless sequence that is not possible.
    pub(crate) fn without_end(message: impl Into<String>) -> Self {
        Error::new(Reason::TypeError, message).hint("take some of it, as in (take 10 s)")
    }

    /// Sets the position.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Sets the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the class by which programs catch it.
    #[must_use]
    pub(crate) fn class(mut self, class: ErrorClass) -> Self {
        self.class = Some(class);
        self.of_nil |= class == ErrorClass::NullPointer;
        self
    }

    /// Adds a detail.
    #[must_use]
    pub fn detail(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Detail>) -> Self {
        self.details.push((name.into(), value.into()));
        self
    }
}

/// Why an operation of a run stopped before its end.
#[derive(Debug)]
pub enum Fault {
    /// This many more bytes do not fit. The machine may compact the heap and run the instruction again. If that fails
    /// again, it is the memory error.
    Collect(usize),
    /// The slice is over, a line was printed, or the run must end; this is the fuel spent in total, the refused charge
    /// included. The driver checks its clock and the instruction runs again.
    Pause(u64),
    /// The call needs a frame, because an argument is an endless sequence, or because the call would leave too much
    /// garbage on the way. The machine makes the call again with a frame, or reports what the program should do.
    NeedsFrame,
    /// The position is needed for a note. The machine notes it and the instruction runs again.
    Place,
    /// The operation needs the time. The driver supplies it and the instruction runs again.
    Clock,
    /// The program has an error.
    Error(Box<Error>),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Error(Box::new(error))
    }
}

/// The result of an operation of a run.
pub type Res<T> = Result<T, Fault>;

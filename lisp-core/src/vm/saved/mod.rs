//! The definitions of a session as text, and back. Lines, each of which makes an object of those before it, gives a name a value,
//! or has the text of a program:
//!
//! ```text
//! program 2 7 "(defn add [x] ...)"    a program: its number here, its number among the turns, its text, the built-ins' names
//!                                     that definitions had when it was compiled
//! [ 1 "a" :k                          object 0: a vector; { a map, # a set
//! fn 2 0 "[x]" @0                     object 1: function 0 of program 2, its parameters, and what it captured: object 0
//! make partial @1 5                   object 2: a function made of others; seq: an endless sequence; =: a long text
//! def "f" @2                          the definition f
//! ```
//!
//! Objects are shared as they are on the heap, so a text is no longer than what it has; no line refers to a later one, so
//! neither side needs recursion, and there are no circles. The numbers of functions, and the order of what they capture, are
//! the compiler's: who changes either raises the version in the first line of a saved session (`api/session`).

mod kinds;
mod read;
mod write;

pub use read::SavedProgram;

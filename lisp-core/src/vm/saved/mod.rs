//! The definitions of a session as text. Each line makes an object from earlier ones, gives a name a value, or has the
//! source of a program:
//!
//! ```text
//! program 2 7 "(defn add [x] ...)"    a program: its number here, its number among the turns, and its source; then
//!                                     the names of built-ins that were redefined when it was compiled
//! [ 1 "a" :k                          object 0: a vector; { for a map, # for a set
//! fn 2 0 "[x]" @0                     object 1: function 0 of program 2, its parameters, and what it captured
//! make partial @1 5                   object 2: a function made of others; seq: an endless sequence; =: a long string
//! def "f" @2                          the definition f
//! ```
//!
//! Objects are shared as on the heap, so the text is no larger than they are. No line refers to a later one, so neither
//! side needs recursion, and there are no cycles. The numbers of functions and the order of what they capture are the
//! compiler's. A change of either requires a new schema in the first line of a saved session, which the runtime writes.

mod kinds;
mod read;
mod write;

pub use read::SavedProgram;

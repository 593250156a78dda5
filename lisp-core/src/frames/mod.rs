//! Functions that call functions.
use crate::builtins::Builtin;
/// stub
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOp {
    /// map
    Map,
}
/// stub
pub const TABLE: &[Builtin] = &[Builtin::frame("map", 2, 4, "(map f coll)", FrameOp::Map)];

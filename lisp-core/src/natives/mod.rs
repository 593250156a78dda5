//! Functions that call functions: native frames. A frame keeps its values in registers, so they are roots; it takes
//! the result of a call, stores it, and makes the next call or finishes. What it does between two calls can be done
//! again from the start.

mod again;
mod compose;
mod each;
mod fold;
mod once;
mod parallel;
mod sort;
mod table;

use crate::builtins::{Imp, args};
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Composed, Fault, Heap, Res, Value, VecBuilder, Vector};
use crate::vm::{Called, Code, Frame, Out, State, key_of, slot};

pub(crate) use again::again;
pub(crate) use parallel::{start_worker, waiting, worker_call};
pub(crate) use table::TABLE;

/// The functions done by frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the function of the same name")]
pub enum FrameOp {
    Apply,
    Map,
    Pmap,
    Pcalls,
    /// the call of one worker of `pmap` or `pcalls`
    Worker,
    MapIndexed,
    Mapcat,
    Filter,
    Remove,
    Keep,
    KeepIndexed,
    Some,
    Every,
    NotAny,
    NotEvery,
    TakeWhile,
    DropWhile,
    SplitWith,
    PartitionBy,
    GroupBy,
    DistinctBy,
    UpdateVals,
    UpdateKeys,
    SumBy,
    AvgBy,
    MinBy,
    MaxBy,
    Reduce,
    ReduceKv,
    Sort,
    SortBy,
    Update,
    UpdateIn,
    MergeWith,
    /// calls of functions made of others
    Comp,
    Juxt,
    Complement,
    EveryPred,
    SomeFn,
}

impl FrameOp {
    /// Are faults inside the functions it calls named after the caller?
    pub(crate) fn wraps_errors(self) -> bool {
        !matches!(
            self,
            FrameOp::Comp
                | FrameOp::Juxt
                | FrameOp::Complement
                | FrameOp::EveryPred
                | FrameOp::SomeFn
                | FrameOp::Apply
                | FrameOp::Pmap
                | FrameOp::Pcalls
                | FrameOp::Worker
        )
    }

    /// The reason that a parallel call gives the fault of a worker.
    pub(crate) fn worker_reason(self) -> Option<Reason> {
        match self {
            FrameOp::Pmap => Some(Reason::PmapError),
            FrameOp::Pcalls => Some(Reason::PcallsError),
            _ => None,
        }
    }

    /// The name of the function, for its errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FrameOp::Apply => "apply",
            FrameOp::Map => "map",
            FrameOp::Pmap => "pmap",
            FrameOp::Pcalls => "pcalls",
            FrameOp::Worker => "worker",
            FrameOp::MapIndexed => "map-indexed",
            FrameOp::Mapcat => "mapcat",
            FrameOp::Filter => "filter",
            FrameOp::Remove => "remove",
            FrameOp::Keep => "keep",
            FrameOp::KeepIndexed => "keep-indexed",
            FrameOp::Some => "some",
            FrameOp::Every => "every?",
            FrameOp::NotAny => "not-any?",
            FrameOp::NotEvery => "not-every?",
            FrameOp::TakeWhile => "take-while",
            FrameOp::DropWhile => "drop-while",
            FrameOp::SplitWith => "split-with",
            FrameOp::PartitionBy => "partition-by",
            FrameOp::GroupBy => "group-by",
            FrameOp::DistinctBy => "distinct-by",
            FrameOp::UpdateVals => "update-vals",
            FrameOp::UpdateKeys => "update-keys",
            FrameOp::SumBy => "sum-by",
            FrameOp::AvgBy => "avg-by",
            FrameOp::MinBy => "min-by",
            FrameOp::MaxBy => "max-by",
            FrameOp::Reduce => "reduce",
            FrameOp::ReduceKv => "reduce-kv",
            FrameOp::Sort => "sort",
            FrameOp::SortBy => "sort-by",
            FrameOp::Update => "update",
            FrameOp::UpdateIn => "update-in",
            FrameOp::MergeWith => "merge-with",
            FrameOp::Comp => "comp",
            FrameOp::Juxt => "juxt",
            FrameOp::Complement => "complement",
            FrameOp::EveryPred => "every-pred",
            FrameOp::SomeFn => "some-fn",
        }
    }
}

/// Register of a native frame for the result of a call.
const RESULT: usize = 0;
/// Register for the function.
const FUNCTION: usize = 1;
/// Register for what is walked.
const ITEMS: usize = 2;
/// Register for what is built.
const ACC: usize = 3;
/// Registers for whatever else.
const EXTRA: usize = 4;
/// Register for whatever else.
const EXTRA2: usize = 5;

/// Starts a function that calls functions: its arguments stand behind stack slot `at`.
pub(crate) fn start<'h>(
    op: FrameOp,
    h: &'h Heap,
    s: &mut State<'h>,
    at: usize,
    argc: usize,
    dst: u32,
) -> Res<Called<'h>> {
    match op {
        FrameOp::Update | FrameOp::UpdateIn => once::start(op, h, s, at, argc, dst),
        FrameOp::Sort | FrameOp::SortBy => sort::start(op, h, s, at, argc, dst),
        FrameOp::Pmap | FrameOp::Pcalls => parallel::start(op, h, s, at, argc, dst),
        FrameOp::Reduce | FrameOp::ReduceKv | FrameOp::MergeWith => fold::start(op, h, s, at, argc, dst),
        _ => each::start(op, h, s, at, argc, dst),
    }
}

/// Starts a call of a function made of others.
pub(crate) fn start_composed<'h>(
    c: &'h Composed<'h>,
    h: &'h Heap,
    s: &mut State<'h>,
    at: usize,
    argc: usize,
    dst: u32,
) -> Res<Called<'h>> {
    compose::start(c, h, s, at, argc, dst)
}

/// Goes on with the native frame on top.
pub(crate) fn step<'h>(op: FrameOp, h: &'h Heap, s: &mut State<'h>) -> Res<Option<Out>> {
    let out = match op {
        FrameOp::Update | FrameOp::UpdateIn => once::step(op, h, s),
        FrameOp::Sort | FrameOp::SortBy => sort::step(op, h, s),
        FrameOp::Pmap | FrameOp::Pcalls => parallel::step(h, s),
        FrameOp::Worker => parallel::step_worker(h, s),
        FrameOp::Reduce | FrameOp::ReduceKv | FrameOp::MergeWith => fold::step(op, h, s),
        FrameOp::Comp | FrameOp::Juxt | FrameOp::Complement | FrameOp::EveryPred | FrameOp::SomeFn => {
            compose::step(op, h, s)
        }
        _ => each::step(op, h, s),
    };
    out.map(|flow| match flow {
        Flow::Switch => None,
        Flow::Tool => Some(Out::Tool),
        Flow::Parallel => Some(Out::Parallel),
    })
}

/// What a frame came to.
enum Flow {
    /// Another frame is on top.
    Switch,
    /// A tool is to be called.
    Tool,
    /// Workers are to be run.
    Parallel,
}

/// Pushes a native frame with these registers at slot `at` (the first is the result's).
fn push<'h>(
    op: FrameOp,
    h: &'h Heap,
    s: &mut State<'h>,
    at: usize,
    registers: &[Value<'h>],
    dst: u32,
) -> Res<Called<'h>> {
    let size = registers.len();
    s.ensure(h, at + size)?;
    s.reserve_frame(h)?;
    let (base, count) = (slot(at)?, slot(size)?);
    s.stack[at..at + size].copy_from_slice(registers);
    s.frames.push(Frame { code: Code::Native { op, waiting: false, i: 0, size: count }, base, dst });
    Ok(Called::Frame)
}

/// The state of the native frame on top: its first register, whether a result has come, and its count.
fn current(s: &State<'_>) -> (usize, bool, usize) {
    match s.frames.last() {
        Some(&Frame { code: Code::Native { waiting, i, .. }, base, .. }) => (base as usize, waiting, i),
        _ => (0, false, 0),
    }
}

/// Notes what a call from a frame came to; a value that came at once is stored like any other.
#[inline]
fn called<'h>(s: &mut State<'h>, depth: usize, i: usize, called: Called<'h>) -> Option<Flow> {
    if let Some(Frame { code: Code::Native { waiting, i: count, .. }, base, .. }) = s.frames.get_mut(depth) {
        (*waiting, *count) = (true, i);
        let base = *base as usize;
        return match called {
            Called::Value(value) => {
                s.stack[base + RESULT] = value;
                None
            }
            Called::Frame => Some(Flow::Switch),
            Called::Tool => Some(Flow::Tool),
        };
    }
    Some(Flow::Switch)
}

/// What is walked, as a vector that can stand in a register.
fn items<'h>(h: &'h Heap, name: &str, v: Value<'h>) -> Res<Value<'h>> {
    match v {
        Value::Vector(_) => Ok(v),
        other => h.vector(args::seq(h, name, other)?),
    }
}

/// The vector in a register.
fn vector<'h>(v: Value<'h>) -> &'h [Value<'h>] {
    match v {
        Value::Vector(v) => Vector::items(v),
        _ => &[],
    }
}

/// The vector under construction in a register.
#[inline]
fn builder<'h>(v: Value<'h>) -> Option<&'h VecBuilder<'h>> {
    match v {
        Value::VecBuilder(b) => Some(b),
        _ => None,
    }
}

/// A function that answers at once, with no frame of its own.
#[derive(Clone, Copy)]
enum Leaf<'h> {
    /// a keyword, which reads of one argument
    Key(Value<'h>),
    Native(crate::builtins::Native),
}

impl<'h> Leaf<'h> {
    /// The function as a leaf, if it is one and takes so many arguments.
    #[inline]
    fn of(f: Value<'h>, argc: usize) -> Option<Leaf<'h>> {
        match f {
            Value::Keyword(..) if argc == 1 => Some(Leaf::Key(f)),
            Value::Builtin(id) => match id.row().imp {
                Imp::Native(native) if id.row().takes(argc) => Some(Leaf::Native(native)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Calls it, for what [`State::call`] charges.
    #[inline]
    fn call(self, h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
        match self {
            Leaf::Key(key) => Ok(key_of(h, args[0], key)?.unwrap_or(Value::Nil)),
            Leaf::Native(native) => {
                h.charge(1)?;
                native(h, args)
            }
        }
    }
}

/// An argument that must be a function. A map is none here: it is a value in most such calls, by mistake.
fn function<'h>(name: &str, f: Value<'h>) -> Res<Value<'h>> {
    match f {
        Value::Map(_) => Err(not_function(name, f, "wrap the look-up: #(get m %)")),
        f if f.is_callable() => Ok(f),
        other => Err(not_function(name, other, "a function, a keyword or a set comes first")),
    }
}

#[cold]
fn not_function(name: &str, f: Value<'_>, hint: &str) -> Fault {
    Error::new(Reason::TypeError, format!("{name} expects a function, got {}", args::describe(f))).hint(hint).into()
}

/// What stands for a function that reads something of an element: nil and booleans read nothing, a string is a key, a
/// vector is a path of keys. Answers `None` for a real function.
fn accessed<'h>(h: &'h Heap, op: FrameOp, f: Value<'h>, item: Value<'h>) -> Res<Option<Value<'h>>> {
    match f {
        Value::Nil | Value::Bool(_) => Ok(Some(Value::Nil)),
        Value::Str(_) => {
            readable(op, f, item, false)?;
            h.charge(cost::LOOK_UP)?;
            Ok(Some(key_of(h, item, f)?.unwrap_or(Value::Nil)))
        }
        Value::Vector(path) => {
            readable(op, f, item, op != FrameOp::SortBy)?;
            let mut value = item;
            h.charge(cost::LOOK_UP)?;
            for &key in path.items() {
                h.charge(cost::LOOK_UP)?;
                value = key_of(h, value, key)?.unwrap_or(Value::Nil);
            }
            Ok(Some(value))
        }
        _ => Ok(None),
    }
}

/// Refuses to read a key or path of an element that has no keys: all would answer nil, and the mistake would not show.
fn readable(op: FrameOp, key: Value<'_>, item: Value<'_>, numbers: bool) -> Res<()> {
    let plain = match item {
        Value::Str(_) => true,
        Value::Bool(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) => !numbers,
        _ => false,
    };
    if !plain {
        return Ok(());
    }
    let (name, key, item) = (op.name(), args::describe(key), args::describe(item));
    Err(Error::new(Reason::TypeError, format!("{name} cannot read {key} of {item}"))
        .hint(format!("{name} takes a function: write (fn [x] ...)"))
        .into())
}

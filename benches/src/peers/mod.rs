//! The same work for other interpreters, each behind a feature, and for this one. Limits are on, but where the name says
//! otherwise: memory, and instructions or an interrupt.

use std::any::Any;

#[cfg(any(feature = "lua", feature = "luau"))]
mod lua;
mod ours;
#[cfg(feature = "quickjs")]
mod quickjs;
#[cfg(feature = "rhai")]
mod rhai;
#[cfg(feature = "starlark")]
mod starlark;

/// What every interpreter may hold.
const MEMORY: usize = 512 << 20;
/// Instructions, operations or looks of an interrupt that no workload comes to.
const STEPS: u64 = u64::MAX / 4;

/// The programs that every interpreter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the program of the same name")]
pub enum Task {
    Pipeline,
    Fib,
    Loop,
    Closures,
    Strings,
    Join,
    Sort,
    Json,
    Mandelbrot,
}

/// The function from a task to its program in one language.
macro_rules! programs {
    ($extension:literal) => {
        pub(super) fn program(task: $crate::peers::Task) -> &'static str {
            use $crate::peers::Task;
            match task {
                Task::Pipeline => include_str!(concat!("../../programs/pipeline.", $extension)),
                Task::Fib => include_str!(concat!("../../programs/fib.", $extension)),
                Task::Loop => include_str!(concat!("../../programs/loop.", $extension)),
                Task::Closures => include_str!(concat!("../../programs/closures.", $extension)),
                Task::Strings => include_str!(concat!("../../programs/strings.", $extension)),
                Task::Join => include_str!(concat!("../../programs/join.", $extension)),
                Task::Sort => include_str!(concat!("../../programs/sort.", $extension)),
                Task::Json => include_str!(concat!("../../programs/json.", $extension)),
                Task::Mandelbrot => include_str!(concat!("../../programs/mandelbrot.", $extension)),
            }
        }
    };
}
use programs;

/// A program's answer as text.
pub type Answer = String;

/// A warm environment: compiles and runs a program.
pub type Warm = Box<dyn FnMut(&str) -> Answer>;

/// An interpreter.
pub trait Peer {
    /// Its name and version.
    fn name(&self) -> &'static str;
    /// The program of a task in its language.
    fn program(&self, task: Task) -> &'static str;
    /// The smallest program.
    fn one_liner(&self) -> &'static str;
    /// Makes a new isolated interpreter, runs a program and drops it.
    fn cold(&self, source: &str) -> Answer;
    /// An environment that has the orders (JSON text) as `orders`, and another JSON text as `text`.
    fn warm(&self, orders: &str, text: &str) -> Warm;
    /// Compiles a program over and over.
    fn compiler(&self) -> Box<dyn FnMut(&str)>;
    /// Brings orders in from JSON text, compiles and runs the pipeline.
    fn bring(&self) -> Box<dyn FnMut(&str) -> Answer>;
    /// A fresh instance with nothing to do.
    fn idle(&self) -> Box<dyn Any>;
}

/// This interpreter first, then those that are built in.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(ours::Ours),
        #[cfg(any(feature = "lua", feature = "luau"))]
        Box::new(lua::Lua { limits: true }),
        #[cfg(any(feature = "lua", feature = "luau"))]
        Box::new(lua::Lua { limits: false }),
        #[cfg(feature = "quickjs")]
        Box::new(quickjs::QuickJs),
        #[cfg(feature = "starlark")]
        Box::new(starlark::Starlark),
        #[cfg(feature = "rhai")]
        Box::new(rhai::Rhai),
    ]
}

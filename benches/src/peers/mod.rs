//! The same work for other interpreters, each behind a feature, and for this one. Limits are on, but where the name says
//! otherwise: memory, and instructions or an interrupt. What runs in a process of its own has no limits.

use crate::timing::Budget;
use std::any::Any;
use std::hint::black_box;

#[cfg(any(feature = "lua", feature = "luau"))]
mod lua;
mod ours;
mod process;
#[cfg(feature = "quickjs")]
mod quickjs;
#[cfg(feature = "rhai")]
mod rhai;
pub mod rust;
#[cfg(feature = "starlark")]
mod starlark;
mod workload;

pub use process::Process;
pub use workload::{Data, Workload};

/// What every interpreter may hold.
const MEMORY: usize = 512 << 20;
/// Instructions, operations or looks of an interrupt that no workload comes to.
const STEPS: u64 = u64::MAX / 4;

/// No orders, where the name must be there.
#[cfg(any(feature = "lua", feature = "luau", feature = "quickjs", feature = "rhai", feature = "starlark"))]
const NONE: &str = "[]";

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

impl Task {
    /// Those that take long.
    pub const LONG: [Task; 8] =
        [Task::Fib, Task::Loop, Task::Closures, Task::Strings, Task::Join, Task::Sort, Task::Json, Task::Mandelbrot];

    /// The long task whose programs have this name.
    pub fn named(name: &str) -> Option<Task> {
        Task::LONG.into_iter().find(|task| task.name() == name)
    }

    /// The name of its programs.
    pub fn name(self) -> &'static str {
        match self {
            Task::Pipeline => "pipeline",
            Task::Fib => "fib",
            Task::Loop => "loop",
            Task::Closures => "closures",
            Task::Strings => "strings",
            Task::Join => "join",
            Task::Sort => "sort",
            Task::Json => "json",
            Task::Mandelbrot => "mandelbrot",
        }
    }
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

/// A program's answer as text: JSON, where the language has it.
pub type Answer = String;

/// A warm environment: compiles and runs a program.
pub type Warm = Box<dyn FnMut(&str) -> Answer>;

/// A compiled program in a warm environment: runs afresh, with other orders (JSON text) when there are some.
pub type Compiled = Box<dyn FnMut(Option<&str>) -> Answer>;

/// What is measured.
pub type Work<'a> = Box<dyn FnMut() -> Answer + 'a>;

/// An interpreter in this process.
pub trait Peer {
    /// Its name and version.
    fn name(&self) -> &'static str;
    /// The program of a task in its language.
    fn program(&self, task: Task) -> &'static str;
    /// The smallest program.
    fn one_liner(&self) -> &'static str;
    /// Makes a new isolated interpreter, runs a program and drops it.
    fn cold(&self, source: &str) -> Answer;
    /// An environment that has the orders (JSON text) as `orders`, and another JSON text as `text`, as far as they are given.
    fn warm(&self, orders: Option<&str>, text: Option<&str>) -> Warm;
    /// Compiles a program over and over.
    fn compiler(&self) -> Box<dyn FnMut(&str)>;
    /// A program compiled once, in an environment that has the orders (JSON text) as `orders`, if they are given.
    fn compiled(&self, orders: Option<&str>, source: &str) -> Compiled;
    /// Brings orders in from JSON text, compiles and runs the pipeline.
    fn bring(&self) -> Box<dyn FnMut(&str) -> Answer>;
    /// Brings orders in from JSON text, and no more.
    fn import(&self) -> Box<dyn FnMut(&str)>;
    /// A fresh instance with nothing to do.
    fn idle(&self) -> Box<dyn Any>;

    /// The work of a workload; of [`Workload::Idle`] none.
    fn work<'a>(&'a self, workload: Workload, data: &'a Data) -> Option<Work<'a>> {
        let (orders, pipeline) = (data.orders.as_str(), self.program(Task::Pipeline));
        Some(match workload {
            Workload::Cold => Box::new(|| self.cold(self.one_liner())),
            Workload::OneLiner => {
                let mut warm = self.warm(None, None);
                Box::new(move || warm(self.one_liner()))
            }
            Workload::CompiledOneLiner => {
                let mut compiled = self.compiled(None, self.one_liner());
                Box::new(move || compiled(None))
            }
            Workload::Compile => {
                let mut compile = self.compiler();
                Box::new(move || {
                    compile(black_box(pipeline));
                    Answer::new()
                })
            }
            Workload::Inside => {
                let mut warm = self.warm(Some(orders), None);
                Box::new(move || warm(pipeline))
            }
            Workload::CompiledInside => {
                let mut compiled = self.compiled(Some(orders), pipeline);
                Box::new(move || compiled(None))
            }
            Workload::Bring => {
                let mut bring = self.bring();
                Box::new(move || bring(orders))
            }
            Workload::CompiledBring => {
                let mut compiled = self.compiled(None, pipeline);
                Box::new(move || compiled(Some(orders)))
            }
            Workload::Import => {
                let mut import = self.import();
                Box::new(move || {
                    import(black_box(orders));
                    Answer::new()
                })
            }
            Workload::Long(task) => {
                let mut warm = self.warm(None, (task == Task::Json).then_some(&data.text));
                Box::new(move || warm(self.program(task)))
            }
            Workload::Idle => return None,
        })
    }
}

/// A column of the table.
pub enum Column {
    /// An interpreter in this process.
    Here(Box<dyn Peer>),
    /// A process for each measurement.
    Process(Process),
}

impl Column {
    /// What stands at its head.
    pub fn name(&self) -> &str {
        match self {
            Column::Here(peer) => peer.name(),
            Column::Process(process) => process.name(),
        }
    }

    /// The median time of a workload in microseconds; `None` when it does not do it.
    ///
    /// # Errors
    /// When the answer is wrong, which it is too when the workload was given up.
    pub fn measure(&self, workload: Workload, data: &Data, budget: Budget) -> Option<Result<f64, String>> {
        let (time, answer) = match self {
            Column::Here(peer) => {
                let mut work = peer.work(workload, data)?;
                budget.median(&mut work, |answer| data.is_right(workload, answer))
            }
            Column::Process(process) => match process.measure(workload, data, budget)? {
                Ok(measured) => measured,
                Err(error) => return Some(Err(error)),
            },
        };
        Some(if data.is_right(workload, &answer) { Ok(time) } else { Err(workload::wrong(&answer)) })
    }
}

/// This interpreter first, then those that are built in, then those that are on the machine. Who is not is named on standard error.
pub fn columns() -> Vec<Column> {
    let processes = process::all().into_iter().filter_map(|found| match found {
        Ok(process) => Some(Column::Process(process)),
        Err(missing) => {
            eprintln!("left out: {missing}");
            None
        }
    });
    peers().into_iter().map(Column::Here).chain(processes).collect()
}

/// This interpreter first, then those that are built in.
pub fn peers() -> Vec<Box<dyn Peer>> {
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

//! All workloads on this interpreter, on the peers that are built in, and on those that are on the machine: a table of medians. They
//! take turns: in each round each of them works at each workload for a moment, so that what the machine does besides meets all.
//!
//! `cargo bench -p ptc-lisp-benches --features lua,quickjs,starlark,rhai --bench peers [-- WORKLOAD] [--rounds N]`

use lisp_benches::peers::{Column, Data, Peer, Task, Workload, columns, peers};
use lisp_benches::timing::{Arguments, Budget, median};

/// With the name of a peer in this variable the program does nothing but measure the memory of its idle instances.
const IDLE: &str = "LISP_BENCHES_IDLE";
/// Instances alive at once when their memory is measured.
const INSTANCES: usize = 1_000;

/// What each line of the table is called. The memory is last: it is no time.
const LINES: &[(&str, Workload)] = &[
    ("W1 cold: new interpreter, `1+2`, drop", Workload::Cold),
    ("W2 `1+2` in a warm environment", Workload::OneLiner),
    ("W2 the compiled `1+2` again", Workload::CompiledOneLiner),
    ("W3 compile the pipeline", Workload::Compile),
    ("W4 compile and run it, 1,000 orders inside, JSON out", Workload::Inside),
    ("W4 run the compiled pipeline, orders inside, JSON out", Workload::CompiledInside),
    ("W5 the orders in from JSON, compile, run, JSON out", Workload::Bring),
    ("W5 the orders in, run the compiled pipeline, JSON out", Workload::CompiledBring),
    ("W5 the orders in from JSON, no more (MB/s)", Workload::Import),
    ("W6 fib(27)", Workload::Long(Task::Fib)),
    ("W7 loop over 5 million integers", Workload::Long(Task::Loop)),
    ("W8 map, filter, reduce over 1 million", Workload::Long(Task::Closures)),
    ("W9 200,000 string keys, then look-ups", Workload::Long(Task::Strings)),
    ("W10 join 200,000 formatted pieces", Workload::Long(Task::Join)),
    ("W11 sort 300,000 with a comparator (starlark: by key)", Workload::Long(Task::Sort)),
    ("W12 1 MB of JSON in, transform, out", Workload::Long(Task::Json)),
    ("W13 mandelbrot 200x200", Workload::Long(Task::Mandelbrot)),
    ("W14 memory of an idle instance (KB)", Workload::Idle),
];

fn main() {
    if let Some(name) = std::env::var_os(IDLE) {
        let peer = peers().into_iter().find(|peer| name == peer.name()).expect("a peer of this name");
        println!("{}", idle_kilobytes(&*peer));
        return;
    }
    let arguments = Arguments::read();
    let lines: Vec<_> = LINES.iter().filter(|line| arguments.wants(line.0)).collect();
    let folder = std::env::temp_dir().join(format!("lisp-benches-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder for the data");
    let data = Data::new(&folder).expect("the data");
    let columns = columns();
    let mut cells: Vec<Vec<Cell>> = lines.iter().map(|_| columns.iter().map(|_| Cell::default()).collect()).collect();
    for round in 1..=arguments.rounds {
        eprintln!("round {round} of {}", arguments.rounds);
        for (line, cells) in lines.iter().zip(&mut cells) {
            for (column, cell) in columns.iter().zip(cells) {
                cell.take_turn(line, column, &data);
            }
        }
    }
    // What is left behind of the data is the system's to clear away.
    let _ = std::fs::remove_dir_all(&folder);
    print(&lines, &columns, cells, data.orders.len());
}

/// The measurements of one column at one workload, one of each round.
#[derive(Default)]
struct Cell {
    measured: Vec<f64>,
    /// Its answer was wrong, or it took too long: it has no further turns.
    is_given_up: bool,
}

impl Cell {
    fn take_turn(&mut self, (name, workload): &(&str, Workload), column: &Column, data: &Data) {
        if self.is_given_up {
            return;
        }
        let measured = match (workload, column) {
            (Workload::Idle, Column::Here(peer)) => idle_in_a_process(peer.name()).map(Ok),
            _ => column.measure(*workload, data, Budget::ROUND),
        };
        match measured {
            Some(Ok(value)) => self.measured.push(value),
            Some(Err(error)) => {
                eprintln!("{name}: {}: {error}", column.name());
                *self = Cell { measured: Vec::new(), is_given_up: true };
            }
            None => self.is_given_up = true,
        }
    }

    fn median(self) -> Option<f64> {
        (!self.measured.is_empty()).then(|| median(self.measured))
    }
}

fn print(lines: &[&(&str, Workload)], columns: &[Column], cells: Vec<Vec<Cell>>, bytes: usize) {
    println!("| workload |{}", columns.iter().map(|column| format!(" {} |", column.name())).collect::<String>());
    println!("|---|{}", "---|".repeat(columns.len()));
    for ((name, workload), cells) in lines.iter().zip(cells) {
        let cells: Vec<Option<f64>> = cells.into_iter().map(Cell::median).collect();
        let bytes = (*workload == Workload::Import).then_some(bytes);
        let shown = cells.iter().enumerate().map(|(at, cell)| {
            let ours = cells[0].filter(|_| at > 0);
            format!(" {} |", show(*cell, ours, bytes))
        });
        println!("| {name} |{}", shown.collect::<String>());
    }
}

/// A time or, of so many bytes, megabytes a second; and how many times this interpreter's time it is.
fn show(cell: Option<f64>, ours: Option<f64>, bytes: Option<usize>) -> String {
    let Some(time) = cell else { return "-".into() };
    let value = bytes.map_or(time, |bytes| bytes as f64 / time);
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    match ours.map(|ours| time / ours) {
        Some(ratio) if ratio < 1.0 => format!("{value:.digits$} ({ratio:.2}x)"),
        Some(ratio) => format!("{value:.digits$} ({ratio:.1}x)"),
        None => format!("{value:.digits$}"),
    }
}

/// In a process of its own, where no memory has been given back before.
fn idle_in_a_process(name: &str) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let output = std::process::Command::new(program).env(IDLE, name).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Memory that stays with the process, per instance. What the first one takes for all is not counted: the code that it reads, too.
fn idle_kilobytes(peer: &dyn Peer) -> f64 {
    drop(peer.idle());
    let before = lisp_benches::resident_kilobytes();
    let alive: Vec<_> = (0..INSTANCES).map(|_| peer.idle()).collect();
    let after = lisp_benches::resident_kilobytes();
    drop(alive);
    (after - before) / INSTANCES as f64
}

//! What sessions cost: a table of microseconds.
//!
//! `cargo run --release -p ptc-lisp-runtime --example session_costs`

use lisp_runtime::{Engine, Input, Session};
use std::error::Error;
use std::time::Instant;

const SMALL: &str = "(def rate 0.5) (defn half [x] (* x rate)) (def add (let [n 5] (fn [x] (+ x n))))";
const ROWS: &str =
    "(def rows (mapv (fn [i] {:id i :name (str \"order \" i) :net (* 1.5 i) :tags [:a :b]}) (range 10000)))";

type Outcome = Result<(), Box<dyn Error>>;

/// The middle of `times` measurements of `work`, in microseconds; `before` is not measured.
fn median<T>(
    times: usize,
    on: &mut T,
    before: impl Fn(&mut T) -> Outcome,
    mut work: impl FnMut(&mut T) -> Outcome,
) -> Result<f64, Box<dyn Error>> {
    let mut all = Vec::new();
    for _ in 0..times {
        before(on)?;
        let begun = Instant::now();
        work(on)?;
        all.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[times / 2])
}

/// A turn that changes something, so that the next text is a new one.
fn turn(session: &mut Session) -> Outcome {
    match session.eval("(def n 1)").problem() {
        Some(problem) => Err(problem.error.message.clone().into()),
        None => Ok(()),
    }
}

fn fork(session: &mut Session) -> Outcome {
    session.fork()?;
    Ok(())
}

fn nothing(_: &mut Session) -> Outcome {
    Ok(())
}

fn main() -> Outcome {
    let engine = Engine::default();
    println!("| session | text, bytes | turn | save | load | fork | fork again | first turn of a fork | undo |");
    for (name, programs, times) in [("small", vec![SMALL], 501), ("10,000 rows", vec![SMALL, ROWS], 51)] {
        let mut session = engine.session(Input::new());
        for program in programs {
            assert!(session.eval(program).is_success());
        }
        let bytes = session.save()?.len();
        let turns = median(times, &mut session, nothing, turn)?;
        let save = median(times, &mut session, turn, |session| {
            session.save()?;
            Ok(())
        })?;
        let first_fork = median(times, &mut session, turn, fork)?;
        let again = median(times, &mut session, nothing, fork)?;
        let undo = median(times, &mut session, turn, |session| Ok(session.undo()?))?;
        let text = session.save()?;
        let load = median(times, &mut session, nothing, |_| {
            engine.load_session(&text, Input::new())?;
            Ok(())
        })?;
        let mut forks = (0..times).map(|_| session.fork()).collect::<Result<Vec<_>, _>>()?.into_iter();
        let first = median(times, &mut session, nothing, |_| forks.next().map_or(Ok(()), |mut fork| turn(&mut fork)))?;
        println!(
            "| {name} | {bytes} | {turns:.1} | {save:.1} | {load:.1} | {first_fork:.1} | {again:.2} | {first:.1} | {undo:.2} |"
        );
    }
    Ok(())
}

//! What sessions cost: a table of microseconds.
//!
//! `cargo run --release -p ptc-lisp-runtime --example session_costs`

use lisp_runtime::{Engine, Input, Session};
use std::error::Error;
use std::time::Instant;

const SMALL: &str = "(def rate 0.5) (defn half [x] (* x rate)) (def add (let [n 5] (fn [x] (+ x n))))";
const ROWS: &str =
    "(def rows (mapv (fn [i] {:id i :name (str \"order \" i) :net (* 1.5 i) :tags [:a :b]}) (range 10000)))";

/// The middle of `times` measurements, in microseconds.
fn median(times: usize, mut work: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut all = Vec::new();
    for _ in 0..times {
        let begun = Instant::now();
        work()?;
        all.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[times / 2])
}

/// One turn that changes something, so that the next text is a new one.
fn turn(session: &mut Session) -> Result<(), Box<dyn Error>> {
    session.eval("(def n 1)").value::<String>().map(drop).or(Ok(()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::default();
    println!("| session | text, bytes | turn | save | load | fork | fork again | first turn of a fork | undo |");
    for (name, programs, times) in [("small", vec![SMALL], 501), ("10,000 rows", vec![SMALL, ROWS], 51)] {
        let mut session = engine.session(Input::new());
        for program in programs {
            assert!(session.eval(program).is_success());
        }
        let bytes = session.save()?.len();
        let turns = median(times, || turn(&mut session))?;
        let after =
            |session: &mut Session, times: usize, work: &mut dyn FnMut(&mut Session) -> Result<(), Box<dyn Error>>| {
                let mut all = Vec::new();
                for _ in 0..times {
                    turn(session)?;
                    let begun = Instant::now();
                    work(session)?;
                    all.push(begun.elapsed().as_secs_f64() * 1e6);
                }
                all.sort_by(f64::total_cmp);
                Ok::<f64, Box<dyn Error>>(all[times / 2])
            };
        let save = after(&mut session, times, &mut |session| Ok(drop(session.save()?)))?;
        let fork = after(&mut session, times, &mut |session| Ok(drop(session.fork()?)))?;
        let again = median(times, || Ok(drop(session.fork()?)))?;
        let undo = after(&mut session, times, &mut |session| Ok(session.undo()?))?;
        let text = session.save()?;
        let load = median(times, || Ok(drop(engine.load_session(&text, Input::new())?)))?;
        let mut forks = (0..times).map(|_| session.fork()).collect::<Result<Vec<_>, _>>()?;
        let mut fork_of = forks.iter_mut();
        let first = median(times, || fork_of.next().map_or(Ok(()), turn))?;
        println!(
            "| {name} | {bytes} | {turns:.1} | {save:.1} | {load:.1} | {fork:.1} | {again:.2} | {first:.1} | {undo:.2} |"
        );
    }
    Ok(())
}

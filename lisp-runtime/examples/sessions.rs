//! A conversation that is tried out two ways, taken back, kept as text, and gone on with.
//!
//! `cargo run -p ptc-lisp-runtime --example sessions`

use lisp_runtime::{Engine, Input};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::default();
    let orders = || Input::new().json("orders", r#"[{"net": 10}, {"net": 32}]"#);

    let mut session = engine.session(orders());
    session.eval("(def rate 1.0) (defn total [] (* rate (reduce + (map :net data/orders))))");

    // Two models go on from here, each in a session of its own.
    let mut careful = session.fork()?;
    careful.eval("(def rate 1.5)");
    assert_eq!(careful.eval("(total)").value::<f64>()?, 63.0);
    assert_eq!(session.eval("(total)").value::<f64>()?, 42.0);

    // What one turn did is taken back.
    session.eval("(def rate nil)");
    session.undo()?;
    assert_eq!(session.eval("(total)").value::<f64>()?, 42.0);

    // The session as text: in a file, a day later, on another machine.
    let text = session.save()?;
    drop(session);
    let mut later = engine.load_session(&text, orders())?;
    assert_eq!(later.eval("(+ *1 (total))").value::<f64>()?, 84.0);

    print!("{text}");
    Ok(())
}

//! Ten thousand sessions live in one process: measured by the kernel, in a process of its own.

use lisp_runtime::{Engine, Input, Session};

/// The memory this process has resident, in bytes.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()? << 10)
}

const SESSIONS: usize = 10_000;
/// The most bytes of a session of one small program.
const SMALL: usize = 10_000;
/// The most bytes of one that has had a few turns, all of which can be undone.
const USED: usize = 12_500;

fn begin(session: &mut Session) {
    assert!(session.eval("(def rate 0.5) (defn half [x] (* x rate)) (def log [])").is_success());
}

fn turns(session: &mut Session, n: usize) {
    for program in ["(def log (conj log (half 42))) (count log)", "(def log (conj log (half *1))) (count log)"] {
        assert!(session.eval(program).is_success());
    }
    assert!(session.eval(&format!("(def id {n})")).is_success());
}

#[test]
fn ten_thousand_sessions_live_in_one_process() {
    let Some(_) = resident() else {
        println!("skipped: the kernel does not say how much memory a process has resident");
        return;
    };
    let engine = Engine::default();
    let mut warm = engine.session(Input::new());
    begin(&mut warm);
    turns(&mut warm, 0);
    let before = resident().unwrap();
    let mut all: Vec<Session> = (0..SESSIONS).map(|_| engine.session(Input::new())).collect();
    all.iter_mut().for_each(begin);
    let each = (resident().unwrap() - before) / SESSIONS;
    println!("{each} bytes a session of one turn");
    assert!(each < SMALL, "{each} bytes a session of one turn");
    for (n, session) in all.iter_mut().enumerate() {
        turns(session, n);
    }
    let each = (resident().unwrap() - before) / SESSIONS;
    println!("{each} bytes a session of four turns");
    assert!(each < USED, "{each} bytes a session of four turns");
    for (n, session) in all.iter_mut().enumerate().step_by(997) {
        assert_eq!(session.eval("[id (half 2)]").text(), Some(format!("[{n} 1.0]").as_str()));
        session.undo().unwrap();
        session.undo().unwrap();
        assert_eq!(session.names(), ["half", "log", "rate"]);
    }
    let before = resident().unwrap();
    let mut forks: Vec<Session> = (0..SESSIONS).map(|_| warm.fork().unwrap()).collect();
    let unused = (resident().unwrap() - before) / SESSIONS;
    for fork in &mut forks {
        assert_eq!(fork.eval("(def log (conj log id)) (half id)").text(), Some("0.0"));
    }
    let used = (resident().unwrap() - before) / SESSIONS;
    println!("{unused} bytes a fork that is not used, {used} one of one turn");
    assert!(used < USED, "{used} bytes a fork");
}

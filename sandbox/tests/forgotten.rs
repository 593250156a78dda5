//! A host whose `main` forgets `lisp_sandbox::init()`: it is told so, and does not start itself without end.
//!
//! It has a `main` of its own that forgets. Each start of it is a byte in a file.

#[cfg(target_os = "linux")]
fn main() {
    use std::io::Write;
    use std::process::Command;

    const STARTS: &str = "FORGOTTEN_STARTS";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        return;
    }
    // The environment of a template is empty: this is what all starts have in common.
    let log = std::env::current_exe().unwrap().with_extension("starts");
    let started = arguments.first().is_some_and(|first| first == "--ptc-lisp-template");
    let build = |program: Option<&str>| {
        let builder = lisp_sandbox::Sandbox::builder();
        let builder = program.map_or(builder.clone(), |program| builder.template(program));
        builder.build().map(drop).map_err(|error| error.to_string())
    };
    if started || std::env::var_os(STARTS).is_some() {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        file.write_all(b".").unwrap();
        let starts = std::fs::metadata(&log).unwrap().len();
        assert!(starts < 5, "started without end");
        // Both ways to start itself: unasked, and by a name that hides it.
        for program in [None, std::env::current_exe().ok().as_deref().and_then(|path| path.to_str())] {
            match build(program) {
                Ok(()) => println!("built"),
                Err(error) => println!("{error}"),
            }
        }
        return;
    }
    let _ = std::fs::remove_file(&log);
    let output = Command::new(std::env::current_exe().unwrap()).env(STARTS, "1").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let starts = std::fs::metadata(&log).unwrap().len();
    let _ = std::fs::remove_file(&log);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines.iter().all(|line| line.contains("lisp_sandbox::init() first in main")
            || line.contains("must call lisp_sandbox::init() first")),
        "{text}"
    );
    // The host, and the one template that it was told to start by name.
    assert_eq!(starts, 2, "{text}");
    println!("a host that forgets to call init is told so after {starts} starts");
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the process layer is for Linux");
}

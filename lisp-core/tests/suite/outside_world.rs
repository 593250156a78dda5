//! Uses of the world outside, each of which the lint of lisp-core must find. An expectation that nothing fulfils is a warning
//! of clippy's, and warnings are errors in CI. Nothing here is called.

#![allow(dead_code, unused_imports, reason = "it is compiled, not run")]

/// A module for one use.
macro_rules! uses {
    ($($name:ident: $lint:ident { $($code:tt)* })*) => {
        $(mod $name {
            #![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "one use may be of two kinds")]
            #![expect(clippy::$lint, reason = "it is what is looked for")]
            $($code)*
        })*
    };
}

uses! {
    a_file: disallowed_methods { fn f() -> bool { std::fs::read("x").is_ok() } }
    imports_over_lines: disallowed_methods {
        use std::{
            collections::BTreeMap,
            fs,
        };
        fn f() -> bool { fs::read("x").is_ok() }
    }
    another_name_for_std: disallowed_methods {
        use std as s;
        fn f() -> bool { s::env::var("x").is_ok() }
    }
    everything: disallowed_methods {
        use std::env::*;
        fn f() -> usize { args().count() }
    }
    a_function_by_another_name: disallowed_methods {
        use std::process::exit as leave;
        fn f() { leave(1) }
    }
    a_channel: disallowed_methods { fn f() { drop(std::sync::mpsc::channel::<u8>()) } }
    the_end_of_a_channel: disallowed_types { fn f(to: &std::sync::mpsc::Sender<u8>) -> bool { to.send(1).is_ok() } }
    the_clock: disallowed_methods { fn f() -> bool { std::time::Instant::now().elapsed().is_zero() } }
    the_time_by_type: disallowed_types {
        use std::time::SystemTime as Time;
        fn f(t: Time) -> Time { t }
    }
    a_thread: disallowed_methods { fn f() { drop(std::thread::spawn(|| ())) } }
    a_thread_by_builder: disallowed_types { fn f() { drop(std::thread::Builder::new()) } }
    a_process: disallowed_types { fn f() { drop(std::process::Command::new("x")) } }
    a_socket: disallowed_types { fn f() -> bool { std::net::TcpStream::connect("x:1").is_ok() } }
    the_streams: disallowed_methods { fn f() { drop(std::io::stdout()) } }
    a_line_printed: disallowed_macros { fn f() { println!() } }
    a_path_asked: disallowed_methods { fn f() -> bool { std::path::Path::new("x").exists() } }
}

//! Bounded closures with what every Unix has. On Linux the same code is compiled for this test.
//!
//! It has a `main` of its own because the harness's threads would disturb: a process may be forked only while it has one.

#[cfg(unix)]
mod unix {
    #[cfg(not(target_os = "linux"))]
    use lisp_sandbox as portable;
    #[cfg(target_os = "linux")]
    use lisp_sandbox::portable;
    use lisp_sandbox::{BoundedError, Bounds, Layer, State};
    use std::io::Write;
    use std::time::{Duration, Instant};

    /// What this way of running has anywhere.
    const CONTENT: &[Layer] = &[Layer::WallKill, Layer::FdsClosed];
    const TIMEOUT_MS: u64 = 150;
    /// A deadline, and what a busy machine needs.
    const KILLED: Duration = Duration::from_secs(60);

    /// In a process with one thread, whether it can be counted or not.
    fn run<T: serde::Serialize + serde::de::DeserializeOwned>(
        bounds: &Bounds,
        work: impl FnOnce() -> T,
    ) -> Result<T, BoundedError> {
        portable::run_bounded_despite_threads(bounds, work)
    }

    fn bounds() -> Bounds {
        Bounds::new(Duration::from_millis(TIMEOUT_MS), 64 << 20).requiring(CONTENT)
    }

    fn patient() -> Bounds {
        Bounds::new(Duration::from_secs(5), 64 << 20).requiring(CONTENT)
    }

    fn error<T: std::fmt::Debug>(result: Result<T, BoundedError>) -> String {
        match result {
            Err(BoundedError::ExecutionError(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    fn is_kept() -> bool {
        portable::capabilities().expect("capabilities").layers.is_active(Layer::RlimitAs)
    }

    pub(crate) fn it_says_what_is_missing() {
        let said = portable::capabilities().expect("capabilities");
        print!("{said}");
        assert_eq!(said.layers.0.len(), Layer::ALL.len());
        for layer in [Layer::Seccomp, Layer::NoNewPrivs, Layer::Landlock, Layer::NetNamespace, Layer::MemoryCgroup] {
            assert!(matches!(said.layers.state(layer), State::Unavailable { why } if !why.is_empty()), "{layer}");
        }
        for layer in [Layer::WallKill, Layer::FdsClosed, Layer::RlimitCpu, Layer::RlimitFsize, Layer::RlimitCore] {
            assert!(said.layers.is_active(layer), "{layer}: {:?}", said.layers.state(layer));
        }
        assert!(said.missing.contains(&Layer::Seccomp) && said.error.is_none());
        assert!(said.to_string().contains("nothing runs"), "{said}");
    }

    pub(crate) fn it_refuses_unless_the_caller_is_content() {
        let default = Bounds::new(Duration::from_secs(5), 64 << 20);
        let why = error(run(&default, || 1));
        assert!(why.contains("is required"), "{why}");
        for layer in [Layer::Seccomp, Layer::NetNamespace, Layer::NoNewPrivs] {
            let why = error(run(&default.clone().requiring(&[layer]), || 1));
            assert!(why.contains(layer.name()) && why.contains("set-up"), "{why}");
        }
        assert_eq!(run(&patient(), || 6 * 7), Ok(42));
        assert_eq!(run(&Bounds::new(Duration::ZERO, 1 << 24), || 1), Err(BoundedError::Timeout(0)));
        assert!(error(run(&Bounds::new(Duration::MAX, 0), || 1)).contains("at least"));
        assert_eq!(run(&Bounds::new(Duration::MAX, u64::MAX).requiring(CONTENT), || 1), Ok(1));
        assert_eq!(run(&patient(), || run(&patient(), || 1).is_err()), Ok(true));
    }

    pub(crate) fn it_ends_at_the_deadline() {
        let spin = || loop {
            std::hint::spin_loop();
        };
        let sleep = || -> i32 {
            loop {
                std::thread::sleep(Duration::from_secs(600));
            }
        };
        let begun = Instant::now();
        assert_eq!(run::<()>(&bounds(), spin), Err(BoundedError::Timeout(TIMEOUT_MS)));
        assert!(begun.elapsed() < KILLED, "{:?}", begun.elapsed());
        let begun = Instant::now();
        assert_eq!(run(&bounds(), sleep), Err(BoundedError::Timeout(TIMEOUT_MS)));
        assert!(begun.elapsed() < KILLED, "{:?}", begun.elapsed());
        // It keeps on talking.
        let talk = || -> i32 {
            loop {
                eprint!("x");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        assert_eq!(run(&bounds(), talk), Err(BoundedError::Timeout(TIMEOUT_MS)));
    }

    pub(crate) fn it_has_so_much_memory() {
        if !is_kept() {
            println!("skipped: rlimit_as [this system does not keep it]");
            return;
        }
        let held =
            |bytes: usize| move || std::hint::black_box(vec![1_u8; bytes]).iter().map(|&b| u64::from(b)).sum::<u64>();
        assert_eq!(run(&patient(), held(56 << 20)), Ok(56 << 20));
        for bytes in [72 << 20, 1 << 40] {
            assert_eq!(run(&patient(), held(bytes)), Err(BoundedError::MemoryExceeded(64 << 20)));
        }
        let strict = patient().requiring(&[Layer::WallKill, Layer::FdsClosed, Layer::RlimitAs]);
        assert_eq!(run(&strict, || 1), Ok(1));
    }

    pub(crate) fn it_tells_ends_apart() {
        assert!(error(run(&patient(), || -> i32 { panic!("as it must") })).contains("panicked: as it must"));
        assert!(error(run(&patient(), || -> i32 { std::process::abort() })).contains("aborted"));
        assert!(error(run(&patient(), || -> i32 { std::process::exit(0) })).contains("without a result"));
        assert!(error(run(&patient(), || -> i32 { std::process::exit(3) })).contains("code 3"));
        let overflow = || {
            #[allow(unconditional_recursion, reason = "this is what it is for")]
            fn deeper(n: u64) -> u64 {
                let here = std::hint::black_box([n; 64]);
                deeper(n + 1) + here[(n % 64) as usize]
            }
            deeper(0)
        };
        assert!(error(run(&patient(), overflow)).contains("stack"));
        let long = error(run(&patient().result_bytes(1000), || "x".repeat(100_000)));
        assert!(long.contains("more than 1000 bytes"), "{long}");
        let flood = || -> i32 {
            loop {
                eprint!("{}", "x".repeat(10_000));
            }
        };
        assert!(error(run(&patient(), flood)).contains("standard error"));
    }

    pub(crate) fn it_cannot_forge() {
        use std::os::fd::FromRawFd;
        // What a closure writes to its channel itself is a violation, whatever it then answers.
        let send = |bytes: &'static [u8]| {
            move || {
                #[allow(unsafe_code, reason = "a payload does what closures must not")]
                // SAFETY: the process ends before the other owner of this descriptor would close it.
                let mut channel = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(3) });
                channel.write_all(bytes).map_or(1, |()| 2)
            }
        };
        for bytes in [b"R\x01\0\0\x007".as_slice(), b"\xff\xff\xff\xff\xff\xff", b"R\xff\xff\xff\xff", b"L\x02\0\0\0{}"]
        {
            let why = error(run(&patient(), send(bytes)));
            assert!(why.contains("process sent") || why.contains("without a result"), "{why}");
        }
    }

    pub(crate) fn it_has_no_descriptors_and_leaves_no_files() {
        let file = std::env::temp_dir().join(format!("ptcl-portable-{}", std::process::id()));
        let planted = std::fs::File::create(&file).expect("a file");
        let open = run(&patient(), || (4..256).filter(|&fd| is_open(fd)).count());
        assert_eq!(open, Ok(0));
        let write = || std::fs::write(std::env::temp_dir().join("ptcl-too-long"), "x").is_err();
        // To write beyond the size that files may have is a signal, or an error.
        assert!(!matches!(run(&patient(), write), Ok(false)));
        let _ = std::fs::remove_file(std::env::temp_dir().join("ptcl-too-long"));
        drop(planted);
        std::fs::remove_file(file).expect("removed");
    }

    fn is_open(fd: i32) -> bool {
        #[allow(unsafe_code, reason = "a payload does what closures must not")]
        // SAFETY: a question about a number.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        flags >= 0
    }

    /// What a closure starts is gone when its result is there.
    pub(crate) fn nothing_stays() {
        let before = descriptors();
        for _ in 0..50 {
            assert_eq!(run(&patient(), || 1), Ok(1));
        }
        let left = run(&patient(), || {
            #[allow(unsafe_code, reason = "a payload does what closures must not")]
            // SAFETY: the copy does nothing but sleep.
            match unsafe { libc::fork() } {
                0 => loop {
                    std::thread::sleep(Duration::from_secs(600));
                },
                pid => pid,
            }
        });
        // An ordinary user may have no more processes; root may, and then it does not stay.
        let pid = left.expect("a pid");
        let begun = Instant::now();
        while pid > 0 && is_alive(pid) && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(pid < 0 || !is_alive(pid), "{pid} lives");
        assert_eq!(descriptors(), before);
    }

    fn is_alive(pid: i32) -> bool {
        #[allow(unsafe_code, reason = "a payload does what closures must not")]
        // SAFETY: no signal is sent.
        let known = unsafe { libc::kill(pid, 0) } == 0;
        // Whoever adopts it may not have reaped it yet.
        known && !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default().contains(") Z ")
    }

    fn descriptors() -> usize {
        (0..256).filter(|&fd| is_open(fd)).count()
    }

    /// Where threads can be counted, one more than one is refused.
    pub(crate) fn threads_are_refused() {
        let refused = std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || receiver.recv());
            let refused = portable::run_bounded(&patient(), || 1);
            drop(sender);
            refused
        });
        assert!(error(refused).contains("threads"));
        // The system counts a thread a moment longer than it runs.
        let begun = Instant::now();
        let mut alone = portable::run_bounded_measured(&patient(), || 1);
        while alone.0.is_err() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
            alone = portable::run_bounded_measured(&patient(), || 1);
        }
        if cfg!(target_os = "linux") {
            assert_eq!(alone.0, Ok(1));
            assert!(alone.1.wall > Duration::ZERO && alone.1.rss_peak_bytes > 0);
        }
    }

    pub(crate) const TESTS: &[(&str, fn())] = &[
        ("it_says_what_is_missing", it_says_what_is_missing),
        ("it_refuses_unless_the_caller_is_content", it_refuses_unless_the_caller_is_content),
        ("it_ends_at_the_deadline", it_ends_at_the_deadline),
        ("it_has_so_much_memory", it_has_so_much_memory),
        ("it_tells_ends_apart", it_tells_ends_apart),
        ("it_cannot_forge", it_cannot_forge),
        ("it_has_no_descriptors_and_leaves_no_files", it_has_no_descriptors_and_leaves_no_files),
        ("nothing_stays", nothing_stays),
        ("threads_are_refused", threads_are_refused),
    ];
}

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    #[cfg(unix)]
    {
        let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
        for (name, test) in
            unix::TESTS.iter().filter(|row| only.as_ref().is_none_or(|only| row.0.contains(only.as_str())))
        {
            test();
            println!("test {name} ... ok");
        }
    }
    #[cfg(not(unix))]
    println!("skipped: there is no process layer here");
}

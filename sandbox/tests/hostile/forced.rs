//! Systems that give less: this test again, under a filter that answers some calls with an error, or with low limits.
//!
//! Whatever is missing is said; what is required and missing refuses; a program runs as it should or not at all.

use crate::payloads::raw;
use crate::rows::NAMESPACES;
use crate::{Tally, bounds, builder};
use lisp_runtime::Input;
use lisp_sandbox::{Layer, Sandbox, State, capabilities, run_bounded, testing};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// With a name: the case that this process is to be.
pub(crate) const ARGUMENT: &str = "--forced";

struct Case {
    name: &'static str,
    calls: &'static [(i64, i32)],
    /// What is lost with them.
    lost: &'static [Layer],
    /// A program runs all the same.
    runs: bool,
    /// So does a bounded closure.
    closure: bool,
}

const fn does_without(name: &'static str, calls: &'static [(i64, i32)], lost: &'static [Layer]) -> Case {
    Case { name, calls, lost, runs: true, closure: true }
}

const fn refuses(name: &'static str, calls: &'static [(i64, i32)], lost: &'static [Layer]) -> Case {
    Case { name, calls, lost, runs: false, closure: false }
}

const CASES: &[Case] = &[
    does_without("landlock_enosys", &[(libc::SYS_landlock_create_ruleset, libc::ENOSYS)], &[Layer::Landlock]),
    does_without("landlock_eopnotsupp", &[(libc::SYS_landlock_create_ruleset, libc::EOPNOTSUPP)], &[Layer::Landlock]),
    does_without("landlock_eperm", &[(libc::SYS_landlock_restrict_self, libc::EPERM)], &[Layer::Landlock]),
    does_without("unshare_enosys", &[(libc::SYS_unshare, libc::ENOSYS)], NAMESPACES),
    does_without("unshare_eperm", &[(libc::SYS_unshare, libc::EPERM)], NAMESPACES),
    does_without("mount_eperm", &[(libc::SYS_mount, libc::EPERM)], &[Layer::MountNamespace]),
    does_without("pivot_root_enosys", &[(libc::SYS_pivot_root, libc::ENOSYS)], &[Layer::MountNamespace]),
    does_without("capset_eperm", &[(libc::SYS_capset, libc::EPERM)], &[Layer::NoCapabilities]),
    does_without(
        "mkdir_erofs",
        &[(libc::SYS_mkdir, libc::EROFS), (libc::SYS_mkdirat, libc::EROFS)],
        &[Layer::MemoryCgroup],
    ),
    does_without(
        "mkdir_enospc",
        &[(libc::SYS_mkdir, libc::ENOSPC), (libc::SYS_mkdirat, libc::ENOSPC)],
        &[Layer::MemoryCgroup],
    ),
    does_without("clone3_enosys", &[(libc::SYS_clone3, libc::ENOSYS)], &[]),
    does_without("memfd_enosys", &[(libc::SYS_memfd_create, libc::ENOSYS)], &[]),
    does_without("close_range_enosys", &[(libc::SYS_close_range, libc::ENOSYS)], &[]),
    refuses("pidfd_enosys", &[(libc::SYS_pidfd_open, libc::ENOSYS)], &[Layer::WallKill]),
    // A closure can be killed by its number.
    Case {
        closure: true,
        ..refuses("pidfd_signal", &[(libc::SYS_pidfd_send_signal, libc::EPERM)], &[Layer::WallKill])
    },
    refuses("seccomp_enosys", &[(libc::SYS_seccomp, libc::ENOSYS)], &[Layer::Seccomp, Layer::ChildSeccomp]),
    refuses("seccomp_einval", &[(libc::SYS_seccomp, libc::EINVAL)], &[Layer::Seccomp, Layer::ChildSeccomp]),
    refuses("prctl_eperm", &[(libc::SYS_prctl, libc::EPERM)], &[]),
    refuses("prlimit_eperm", &[(libc::SYS_prlimit64, libc::EPERM)], &[Layer::RlimitAs, Layer::RlimitCpu]),
    refuses("fork_eagain", &[(libc::SYS_clone, libc::EAGAIN)], &[]),
    refuses("dup_emfile", &[(libc::SYS_dup3, libc::EMFILE)], &[]),
    refuses("socketpair_emfile", &[(libc::SYS_socketpair, libc::EMFILE)], &[]),
];

/// What a process with low limits is.
const LIMITS: &[(&str, &[(u32, u64)])] = &[
    (
        "low_hard_limits",
        &[
            (libc::RLIMIT_AS, 1 << 30),
            (libc::RLIMIT_CPU, 30),
            (libc::RLIMIT_FSIZE, 0),
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_MEMLOCK, 0),
            (libc::RLIMIT_STACK, 1 << 20),
            (libc::RLIMIT_NOFILE, 24),
        ],
    ),
    ("eight_descriptors", &[(libc::RLIMIT_NOFILE, 8)]),
    ("little_memory", &[(libc::RLIMIT_AS, 24 << 20)]),
];

/// The memory cgroup goes while the sandbox is there, and another cannot be made.
const NO_OTHER_GROUP: &str = "no_other_group";

/// Every case, in a process of its own.
pub(crate) fn all(tally: &mut Tally) {
    let names = CASES.iter().map(|case| case.name).chain(LIMITS.iter().map(|row| row.0)).chain([NO_OTHER_GROUP]);
    for name in names {
        let begun = Instant::now();
        let output = Command::new("/proc/self/exe").args([ARGUMENT, name, &crate::paced_ms(1).to_string()]).output();
        let took = begun.elapsed();
        let said = output.as_ref().map_or_else(ToString::to_string, |output| {
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
        });
        let good = output.is_ok_and(|output| output.status.success()) && took < crate::paced(20_000);
        tally.check(&format!("51, 53 {name}"), good, format_args!("after {took:?}: {said}"));
    }
    descriptors_run_out(tally);
    processes_run_out(tally);
}

/// One case; the process says what is wrong.
pub(crate) fn inside(name: &str) -> ExitCode {
    let mut tally = Tally { mode: name.to_owned(), ..Tally::default() };
    if let Some(case) = CASES.iter().find(|case| case.name == name) {
        // Before the calls fail, for what it is the case that fails and nothing else.
        tally.check("a closure before", closure_runs() == Ok(true), "it does not run");
        tally.check("the filter", testing::answer(case.calls).is_ok(), "it cannot be put on");
        under(&mut tally, case);
    } else if let Some((_, limits)) = LIMITS.iter().find(|row| row.0 == name) {
        for &(resource, max) in *limits {
            set_limit(resource, [max; 2]);
        }
        value_or_set_up(&mut tally, name);
        if name == "low_hard_limits" {
            let sandbox = builder().build();
            tally.check("a program runs", sandbox.is_ok_and(|sandbox| runs(&sandbox) == Ok(true)), "it does not");
            // They go to a template in a file, and a file that is too long would end this process.
            let set = crate::engine().import("rows", "[1, 2]").expect("a data set");
            let refused = builder().data_set(&set).build().err().map(|error| error.to_string());
            let good = refused.as_ref().is_some_and(|why| why.contains("data sets"));
            tally.check("data sets are refused", good, format_args!("{refused:?}"));
        }
    } else if name == NO_OTHER_GROUP {
        crate::memory::no_other_group(&mut tally);
    } else {
        tally.check(name, false, "there is no such case");
    }
    if tally.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn under(tally: &mut Tally, case: &Case) {
    let built = builder().build();
    match &built {
        Ok(sandbox) => {
            let saw = runs(sandbox);
            let good = if case.runs { saw == Ok(true) } else { saw.is_err() };
            tally.check("a program", good, format_args!("{saw:?}"));
        }
        Err(error) => tally.check("no program", !case.runs, error),
    }
    let saw = closure_runs();
    let good = if case.closure { saw == Ok(true) } else { saw.is_err() };
    tally.check("a closure", good, format_args!("{saw:?}"));
    if case.closure {
        let endless = run_bounded(&bounds(), || crate::payloads::spin(&testing::bounded_channel()));
        let saw = crate::short_bounded(endless);
        tally.check("an endless closure", saw == "T", saw);
    }
    for &layer in case.lost {
        let refused = builder().require(layer).build().err().map(|error| error.to_string());
        // The first that is missing is named.
        let good = refused.as_ref().is_some_and(|why| case.lost.iter().any(|layer| why.contains(layer.name())));
        tally.check(&format!("{layer} required"), good, format_args!("{refused:?}"));
    }
    match capabilities() {
        Ok(said) => {
            for &layer in case.lost {
                let state = said.layers.state(layer);
                let why = matches!(state, State::Unavailable { why } | State::Degraded { why, .. } if !why.is_empty());
                tally.check(&format!("{layer} is said"), why, format_args!("{state:?}"));
                let missing = said.required.contains(&layer) == said.missing.contains(&layer);
                tally.check(&format!("{layer} is missing"), missing, format_args!("{:?}", said.missing));
            }
            let held = Layer::ALL.iter().filter(|layer| !case.lost.contains(layer));
            let gone: Vec<&Layer> = held.filter(|&&layer| unexpected(layer, said.layers.state(layer), case)).collect();
            tally.check("nothing else is lost", gone.is_empty(), format_args!("{gone:?}"));
            let good = said.missing.is_empty() && said.error.is_none();
            tally.check("what is said of it all", good == case.runs, &said);
        }
        Err(error) => tally.check("what is said of it all", !case.runs, error),
    }
}

/// A layer of a case that is to lose others only. Where nothing runs any more it does not matter.
fn unexpected(layer: Layer, state: &State, case: &Case) -> bool {
    // This one is root's as a rule.
    case.runs && layer != Layer::MemoryCgroup && matches!(state, State::Unavailable { .. })
}

/// A value, or an error that is of the set-up; anything else is neither.
fn runs(sandbox: &Sandbox) -> Result<bool, String> {
    let outcome = sandbox.eval("(+ 40 2)", &Input::new());
    match outcome.problem() {
        None => Ok(outcome.value::<i64>().is_ok_and(|n| n == 42)),
        Some(problem) if problem.reason() == lisp_runtime::Reason::HostFault => Err(problem.error.message.clone()),
        Some(_) => Ok(false),
    }
}

fn closure_runs() -> Result<bool, String> {
    match run_bounded(&bounds(), || vec![42_u8; 3]) {
        Ok(all) => Ok(all == [42; 3]),
        Err(lisp_sandbox::BoundedError::ExecutionError(why)) => Err(why),
        Err(other) => Ok(matches!(other, lisp_sandbox::BoundedError::MemoryExceeded(0))),
    }
}

/// Both modes: a value as it should be, or an error of the set-up.
fn value_or_set_up(tally: &mut Tally, what: &str) {
    let closure = closure_runs();
    let good = closure.as_ref().map_or_else(|why| why.contains("set-up"), |good| *good);
    tally.check(&format!("53 {what}: a closure"), good, format_args!("{closure:?}"));
    let program = match builder().build() {
        Ok(sandbox) => runs(&sandbox),
        Err(error) => Err(error.to_string()),
    };
    tally.check(&format!("53 {what}: a program"), program != Ok(false), format_args!("{program:?}"));
}

fn set_limit(resource: u32, limit: [u64; 2]) -> [u64; 2] {
    let mut old = [0_u64; 2];
    raw(libc::SYS_prlimit64, [0, resource as usize, limit.as_ptr() as usize, old.as_mut_ptr() as usize, 0, 0]);
    old
}

fn limit(resource: u32) -> [u64; 2] {
    let mut old = [0_u64; 2];
    raw(libc::SYS_prlimit64, [0, resource as usize, 0, old.as_mut_ptr() as usize, 0, 0]);
    old
}

/// 53: with fewer and fewer descriptors every step that takes one fails in its turn. Afterwards all is well.
fn descriptors_run_out(tally: &mut Tally) {
    crate::scenes::wait_for_threads();
    let old = limit(libc::RLIMIT_NOFILE);
    for max in (3..=20).rev() {
        set_limit(libc::RLIMIT_NOFILE, [max, old[1]]);
        value_or_set_up(tally, &format!("{max} descriptors"));
        set_limit(libc::RLIMIT_NOFILE, old);
    }
    tally.check("53 then a closure", closure_runs() == Ok(true), "it does not run");
    let sandbox = builder().build();
    tally.check("53 then a program", sandbox.is_ok_and(|sandbox| runs(&sandbox) == Ok(true)), "it does not run");
}

/// 53: no more processes for this user. Only for one without rights is that so.
fn processes_run_out(tally: &mut Tally) {
    if raw(libc::SYS_geteuid, [0; 6]) == 0 {
        return tally.skip("rlimit_nproc", "53 root may have any number of processes; fork_eagain stands for it");
    }
    let sandbox = builder().build().expect("a sandbox");
    let old = set_limit(libc::RLIMIT_NPROC, [0, limit(libc::RLIMIT_NPROC)[1]]);
    let (closure, another) = (closure_runs(), builder().build().map(drop));
    let program = runs(&sandbox);
    set_limit(libc::RLIMIT_NPROC, old);
    let refused = closure.as_ref().is_err_and(|why| why.contains("set-up: fork"));
    tally.check("53 no more processes: a closure", refused, format_args!("{closure:?}"));
    tally.check("53 no more processes: a template", another.is_err(), "it starts");
    // The template has the limit it was started with.
    tally.check("53 no more processes: a program", program == Ok(true), format_args!("{program:?}"));
    tally.check("53 then a closure", closure_runs() == Ok(true), "it does not run");
    tally.check("53 then a template", builder().build().is_ok(), "it does not start");
}

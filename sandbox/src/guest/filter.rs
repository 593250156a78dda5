//! The seccomp filters: a table of the allowed system calls, and the filter program made from it.
//!
//! A filter is a binary search over intervals of system call numbers, so that few instructions are executed. A system
//! call that is not in the table kills the process.

use crate::kernel::sys::{Instruction, arch};

/// What a filter does with a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Allows it.
    Allow,
    /// Fails it with an error number.
    Errno(i32),
    /// Ends the process with SIGSYS.
    Kill,
    /// Allows it if the low halves of these arguments have no bits of these masks.
    Clear(&'static [(u8, u32)]),
    /// Allows it if the low half of the argument has all bits of `set` and none of `clear`.
    Bits { arg: u8, set: u32, clear: u32 },
    /// Allows it if the argument is one of these.
    OneOf { arg: u8, values: &'static [u32] },
    /// Allows it if the argument is this value; otherwise fails it with an error number.
    EqualOr { arg: u8, value: u32, errno: i32 },
    /// Allows it if the low half of the argument is this value.
    Equal { arg: u8, value: u32 },
    /// Allows it if the low halves of the two arguments have these values.
    Both([(u8, u32); 2]),
    /// If the low half of the argument is this value, ends the process with a SIGSYS that it can handle; otherwise
    /// kills it.
    Trap { arg: u8, value: u32 },
}

/// System calls by number.
pub(crate) type Table = Vec<(i64, Rule)>;

const PROT_EXEC: u32 = libc::PROT_EXEC as u32;
/// All flags of `mmap` except those of private memory without a file. Huge pages, locked memory, memory that is filled
/// at once or shared, and all flags of later kernels are forbidden.
const NOT_PRIVATE_MEMORY: u32 =
    !((libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE | libc::MAP_STACK) as u32);

/// The flags without which `clone` does not start a thread of the same process.
const THREAD: u32 = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u32;
/// All flags with which C libraries start a thread. The last is musl's and has no effect.
const OF_THREADS: u32 = THREAD
    | (libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID
        | libc::CLONE_DETACHED) as u32;
/// All flags with which C libraries fork, and the signal of the end.
const OF_FORKS: u32 = (libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID) as u32 | 0xff;
const START_THREADS: Rule = Rule::Bits { arg: 0, set: THREAD, clear: !OF_THREADS };

/// The operations of locks, of waits with a time limit and for the end of a thread, with the flags that C libraries and
/// the standard library use. Those on locks with priority inheritance are forbidden.
const FUTEXES: &[u32] = &{
    const PRIVATE: u32 = libc::FUTEX_PRIVATE_FLAG as u32;
    const REALTIME: u32 = libc::FUTEX_CLOCK_REALTIME as u32;
    const WAIT: u32 = libc::FUTEX_WAIT as u32;
    const WAKE: u32 = libc::FUTEX_WAKE as u32;
    const REQUEUE: u32 = libc::FUTEX_REQUEUE as u32;
    const WAIT_BITSET: u32 = libc::FUTEX_WAIT_BITSET as u32;
    [
        WAIT,
        WAIT | PRIVATE,
        WAKE,
        WAKE | PRIVATE,
        REQUEUE | PRIVATE,
        WAIT_BITSET,
        WAIT_BITSET | PRIVATE,
        WAIT_BITSET | REALTIME,
        WAIT_BITSET | PRIVATE | REALTIME,
    ]
};

/// The calls that every process may make: compute, allocate memory that is not executable, and use its channel.
fn common() -> Table {
    use Rule::{Allow, Clear, EqualOr, Errno, OneOf};
    let mut table: Table = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_sendto,
        libc::SYS_recvfrom,
        libc::SYS_ppoll,
        libc::SYS_fstat,
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_setitimer,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_restart_syscall,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getrandom,
        libc::SYS_getrusage,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ]
    .map(|call| (call, Allow))
    .into();
    table.extend([
        (libc::SYS_mmap, Clear(&[(2, PROT_EXEC), (3, NOT_PRIVATE_MEMORY)])),
        (libc::SYS_mprotect, Clear(&[(2, PROT_EXEC)])),
        (libc::SYS_mremap, OneOf { arg: 3, values: &[libc::MREMAP_MAYMOVE as u32] }),
        // C libraries try other advice and do without it.
        (libc::SYS_madvise, EqualOr { arg: 2, value: libc::MADV_DONTNEED as u32, errno: libc::EINVAL }),
        (libc::SYS_futex, OneOf { arg: 1, values: FUTEXES }),
        (libc::SYS_fcntl, OneOf { arg: 1, values: &[libc::F_GETFD as u32, libc::F_GETFL as u32] }),
        (libc::SYS_ioctl, Errno(libc::ENOTTY)),
    ]);
    // Libraries try these calls and have a fallback for when they fail.
    for call in [libc::SYS_clone3, libc::SYS_statx] {
        table.push((call, Errno(libc::ENOSYS)));
    }
    for call in [libc::SYS_openat, libc::SYS_newfstatat, libc::SYS_faccessat, libc::SYS_readlinkat, libc::SYS_getcwd] {
        table.push((call, Errno(libc::EACCES)));
    }
    #[cfg(target_arch = "x86_64")]
    {
        table.push((libc::SYS_poll, Allow));
        for call in [libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink] {
            table.push((call, Errno(libc::EACCES)));
        }
    }
    table
}

/// The additional calls of a template, which forks, monitors, reaps and kills its children and sends descriptors; and
/// of a child that locks itself down. None of them loosens a restriction: limits can only be lowered, and filters only
/// be added.
const OF_TEMPLATE: [(i64, Rule); 12] = [
    (libc::SYS_clone, Rule::Clear(&[(0, !(OF_FORKS | OF_THREADS))])),
    (libc::SYS_wait4, Rule::Allow),
    (libc::SYS_pidfd_open, Rule::Allow),
    (libc::SYS_pidfd_send_signal, Rule::Allow),
    (libc::SYS_sendmsg, Rule::Allow),
    (libc::SYS_recvmsg, Rule::Allow),
    (libc::SYS_prctl, Rule::Both([(0, libc::PR_SET_PDEATHSIG.cast_unsigned()), (1, libc::SIGKILL.cast_unsigned())])),
    (libc::SYS_prlimit64, Rule::Equal { arg: 0, value: 0 }),
    (libc::SYS_seccomp, Rule::Equal { arg: 0, value: libc::SECCOMP_SET_MODE_FILTER }),
    (libc::SYS_getppid, Rule::Allow),
    (libc::SYS_close_range, Rule::Allow),
    (libc::SYS_dup3, Rule::Allow),
];

/// How other C libraries fork.
const FORK: &[(i64, Rule)] = &[
    #[cfg(all(target_env = "musl", target_arch = "x86_64"))]
    (libc::SYS_fork, Rule::Allow),
    #[cfg(target_env = "musl")]
    (libc::SYS_set_tid_address, Rule::Allow),
];

/// The calls by which C libraries send the abort signal, and the number of the argument that is the signal.
const ABORT: &[(i64, u8)] = &[
    (libc::SYS_tgkill, 2),
    #[cfg(target_env = "musl")]
    (libc::SYS_tkill, 1),
];

/// The table for the template, and for its children until they are locked down.
pub(crate) fn template() -> Table {
    let mut table = common();
    table.extend(OF_TEMPLATE);
    table.extend(FORK);
    table.extend(ABORT.iter().map(|&(call, _)| (call, Rule::Allow)));
    table
}

/// The filter of a locked-down child, on top of the [template's](template). Calls that the template may make beyond the
/// [common](common) ones end the child. It can abort but send no other signal. With `threads` it can start threads, but
/// no processes.
pub(crate) fn child(threads: bool) -> Vec<Instruction> {
    let mut table: Table = OF_TEMPLATE.iter().chain(FORK).map(|&(call, _)| (call, Rule::Kill)).collect();
    // A call to abort names a process, but ends the calling one.
    table.extend(ABORT.iter().map(|&(call, arg)| (call, Rule::Trap { arg, value: libc::SIGABRT.cast_unsigned() })));
    if threads {
        table.iter_mut().filter(|row| row.0 == libc::SYS_clone).for_each(|row| row.1 = START_THREADS);
    }
    program_or(table, Rule::Allow)
}

/// The table for a process that is locked down in one step. With `threads` it can start threads, but no processes.
pub(crate) fn alone(pid: i32, threads: bool) -> Table {
    let mut table = common();
    table.extend(ABORT.iter().map(|&(call, _)| (call, Rule::Equal { arg: 0, value: pid.cast_unsigned() })));
    if threads {
        table.push((libc::SYS_clone, START_THREADS));
    }
    table
}

const LD_W_ABS: u16 = 0x20;
const JMP_JA: u16 = 0x05;
const JMP_JEQ_K: u16 = 0x15;
const JMP_JGE_K: u16 = 0x35;
const JMP_JSET_K: u16 = 0x45;
const RET_K: u16 = 0x06;

const RET_KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const RET_ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// The offsets of the data that a filter checks.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGS: u32 = 16;

fn step(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

fn ret(k: u32) -> Instruction {
    step(RET_K, k, 0, 0)
}

/// Returns the program for a table; calls that are not in it kill the process.
pub(crate) fn program(table: Table) -> Vec<Instruction> {
    program_or(table, Rule::Kill)
}

/// Returns the program for a table, with another rule for calls that are not in it.
fn program_or(mut table: Table, otherwise: Rule) -> Vec<Instruction> {
    table.sort_by_key(|&(call, _)| call);
    let mut program =
        vec![step(LD_W_ABS, ARCH, 0, 0), step(JMP_JEQ_K, arch(), 1, 0), ret(RET_KILL), step(LD_W_ABS, NUMBER, 0, 0)];
    program.extend(search(&intervals(&table, otherwise)));
    program
}

/// For tests: returns a program that fails some calls with an error number and allows all others.
#[cfg(feature = "testing")]
pub(crate) fn refusing(calls: &[(i64, i32)]) -> Vec<Instruction> {
    let mut program = vec![step(LD_W_ABS, NUMBER, 0, 0)];
    for &(call, errno) in calls {
        program.push(step(JMP_JEQ_K, u32::try_from(call).unwrap_or(u32::MAX), 0, 1));
        program.extend(leaf(Rule::Errno(errno)));
    }
    program.push(ret(RET_ALLOW));
    program
}

/// Returns the rule for each interval of numbers, as the number it starts at and the rule.
fn intervals(table: &Table, otherwise: Rule) -> Vec<(u32, Rule)> {
    let mut starts: Vec<(u32, Rule)> = vec![(0, otherwise)];
    let mut push = |from: u32, rule: Rule| match starts.last_mut() {
        Some(last) if last.0 == from => last.1 = rule,
        Some(last) if last.1 == rule => {}
        _ => starts.push((from, rule)),
    };
    for &(call, rule) in table {
        let Ok(call) = u32::try_from(call) else { continue };
        push(call, rule);
        push(call + 1, otherwise);
    }
    // Neighbours may have the same rule.
    starts.dedup_by(|next, last| next.1 == last.1);
    starts
}

fn search(intervals: &[(u32, Rule)]) -> Vec<Instruction> {
    if let [(_, rule)] = intervals {
        return leaf(*rule);
    }
    let (left, right) = intervals.split_at(intervals.len() / 2);
    let (start, left, right) = (right[0].0, search(left), search(right));
    let mut program = match u8::try_from(left.len()) {
        Ok(skip) => vec![step(JMP_JGE_K, start, skip, 0)],
        Err(_) => {
            vec![step(JMP_JGE_K, start, 0, 1), step(JMP_JA, u32::try_from(left.len()).unwrap_or(u32::MAX), 0, 0)]
        }
    };
    program.extend(left);
    program.extend(right);
    program
}

fn leaf(rule: Rule) -> Vec<Instruction> {
    let low = |arg: u8| step(LD_W_ABS, ARGS + 8 * u32::from(arg), 0, 0);
    let all = |tests: [(Instruction, u32); 2]| {
        let steps = tests.into_iter().flat_map(|(load, value)| [load, step(JMP_JEQ_K, value, 1, 0), ret(RET_KILL)]);
        steps.chain([ret(RET_ALLOW)]).collect()
    };
    match rule {
        Rule::Allow => vec![ret(RET_ALLOW)],
        Rule::Kill => vec![ret(RET_KILL)],
        Rule::Errno(errno) => vec![ret(libc::SECCOMP_RET_ERRNO | errno.cast_unsigned())],
        Rule::Clear(masks) => {
            let steps = masks.iter().flat_map(|&(arg, mask)| [low(arg), step(JMP_JSET_K, mask, 0, 1), ret(RET_KILL)]);
            steps.chain([ret(RET_ALLOW)]).collect()
        }
        Rule::EqualOr { arg, value, errno } => {
            let failed = ret(libc::SECCOMP_RET_ERRNO | errno.cast_unsigned());
            vec![low(arg), step(JMP_JEQ_K, value, 1, 0), failed, ret(RET_ALLOW)]
        }
        Rule::Bits { arg, set, clear } => {
            let mut program = vec![low(arg), step(JMP_JSET_K, clear, 0, 1), ret(RET_KILL)];
            for bit in (0..32).map(|bit| 1 << bit).filter(|bit| set & bit != 0) {
                program.extend([step(JMP_JSET_K, bit, 1, 0), ret(RET_KILL)]);
            }
            program.push(ret(RET_ALLOW));
            program
        }
        Rule::OneOf { arg, values } => {
            let mut program = vec![low(arg)];
            for &value in values {
                program.extend([step(JMP_JEQ_K, value, 0, 1), ret(RET_ALLOW)]);
            }
            program.push(ret(RET_KILL));
            program
        }
        Rule::Equal { arg, value } => vec![low(arg), step(JMP_JEQ_K, value, 1, 0), ret(RET_KILL), ret(RET_ALLOW)],
        Rule::Both([first, second]) => all([(low(first.0), first.1), (low(second.0), second.1)]),
        Rule::Trap { arg, value } => {
            vec![low(arg), step(JMP_JEQ_K, value, 1, 0), ret(RET_KILL), ret(libc::SECCOMP_RET_TRAP)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets a program and returns its result.
    fn run(program: &[Instruction], arch: u32, number: u32, args: [u64; 6]) -> u32 {
        let (mut at, mut a) = (0, 0);
        loop {
            let i = program[at];
            at += 1;
            let jump = |taken: bool| usize::from(if taken { i.jt } else { i.jf });
            match i.code {
                LD_W_ABS if i.k == NUMBER => a = number,
                LD_W_ABS if i.k == ARCH => a = arch,
                LD_W_ABS => a = (args[((i.k - ARGS) / 8) as usize] >> (8 * (i.k % 8))) as u32,
                JMP_JA => at += i.k as usize,
                JMP_JEQ_K => at += jump(a == i.k),
                JMP_JGE_K => at += jump(a >= i.k),
                JMP_JSET_K => at += jump(a & i.k != 0),
                _ => return i.k,
            }
        }
    }

    fn expected(table: &Table, otherwise: Rule, number: u32, args: [u64; 6]) -> u32 {
        let rule = table.iter().find(|row| row.0 == i64::from(number)).map_or(otherwise, |row| row.1);
        let arg = |at: u8| args[at as usize] as u32;
        let allowed = match rule {
            Rule::Allow => true,
            Rule::Kill => false,
            Rule::Errno(errno) => return libc::SECCOMP_RET_ERRNO | errno as u32,
            Rule::Clear(masks) => masks.iter().all(|&(at, mask)| arg(at) & mask == 0),
            Rule::EqualOr { arg: at, value, .. } if arg(at) == value => true,
            Rule::EqualOr { errno, .. } => return libc::SECCOMP_RET_ERRNO | errno as u32,
            Rule::Bits { arg: at, set, clear } => arg(at) & set == set && arg(at) & clear == 0,
            Rule::OneOf { arg: at, values } => values.contains(&arg(at)),
            Rule::Equal { arg: at, value } => arg(at) == value,
            Rule::Both(all) => all.iter().all(|&(at, value)| arg(at) == value),
            Rule::Trap { arg: at, value } if arg(at) == value => return libc::SECCOMP_RET_TRAP,
            Rule::Trap { .. } => false,
        };
        if allowed { RET_ALLOW } else { RET_KILL }
    }

    #[test]
    fn a_program_does_what_its_table_says() {
        let deadly = [libc::PR_SET_PDEATHSIG as u64, libc::SIGKILL as u64, 6, 0, 0, 0];
        let all = [[0; 6], [77; 6], [7; 6], [u64::from(THREAD); 6], [1; 6], [4; 6], [6; 6], [34; 6], deadly];
        for (table, otherwise) in [
            (template(), Rule::Kill),
            (alone(77, true), Rule::Kill),
            (vec![(libc::SYS_tgkill, Rule::Trap { arg: 2, value: 6 }), (libc::SYS_clone, Rule::Kill)], Rule::Allow),
        ] {
            let program = program_or(table.clone(), otherwise);
            assert!(program.len() < 400, "{}", program.len());
            for number in 0..700 {
                for args in &all {
                    let want = expected(&table, otherwise, number, *args);
                    assert_eq!(run(&program, arch(), number, *args), want, "{number} {args:?}");
                }
            }
            assert_eq!(run(&program, 0x4000_0003, 1, [0; 6]), RET_KILL);
        }
        assert_eq!(run(&program(template()), arch(), 0x4000_0000 + 1, [0; 6]), RET_KILL);
    }

    /// With its own filter on top of the template's, a child can make the common calls, and abort.
    #[test]
    fn a_child_may_do_what_any_code_may() {
        let (child, threads, any) = (child(false), child(true), common());
        for &(call, _) in &template() {
            let number = u32::try_from(call).unwrap();
            let is_common = any.iter().any(|row| row.0 == call);
            let returned = run(&child, arch(), number, [0, libc::SIGKILL as u64, libc::SIGKILL as u64, 0, 0, 0]);
            assert_eq!(returned == RET_ALLOW, is_common, "{number}");
        }
        let clone = |filter: &[Instruction], flags: i32| run(filter, arch(), libc::SYS_clone as u32, [flags as u64; 6]);
        let thread = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND;

        assert_eq!((clone(&child, thread), clone(&threads, thread)), (RET_KILL, RET_ALLOW));
        for flags in [libc::SIGCHLD, libc::CLONE_VM | libc::CLONE_VFORK, thread | libc::CLONE_NEWUSER] {
            assert_eq!(clone(&threads, flags), RET_KILL, "{flags:x}");
        }
        // The template forks, and only that, with whatever its children may start.
        let template = program(template());
        let fork = libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
        assert_eq!((clone(&template, fork), clone(&template, thread)), (RET_ALLOW, RET_ALLOW));
        for flag in [libc::CLONE_NEWUSER, libc::CLONE_VFORK, libc::CLONE_PARENT, libc::CLONE_PTRACE, libc::CLONE_PIDFD]
        {
            assert_eq!(
                (clone(&template, fork | flag), clone(&threads, thread | flag)),
                (RET_KILL, RET_KILL),
                "{flag:x}"
            );
        }
        let abort = [1, 1, libc::SIGABRT as u64, 0, 0, 0];
        assert_eq!(run(&child, arch(), libc::SYS_tgkill as u32, abort), libc::SECCOMP_RET_TRAP);
    }

    #[test]
    fn no_call_has_two_rules() {
        for table in [template(), alone(1, true)] {
            let mut calls: Vec<i64> = table.iter().map(|row| row.0).collect();
            calls.sort_unstable();
            let all = calls.len();
            calls.dedup();
            assert_eq!(calls.len(), all);
        }
    }
}

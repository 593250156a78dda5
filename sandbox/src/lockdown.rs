//! The layers a process puts on, in their order, and what became of each.

use crate::filter::{self, Rule};
use crate::sys;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

macro_rules! layers {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// One thing that keeps a program in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Layer { $($(#[$doc])* $variant,)* }

        impl Layer {
            /// All layers, in the order they are put on.
            pub const ALL: &'static [Layer] = &[$(Layer::$variant),*];

            /// Its name in a report.
            pub const fn name(self) -> &'static str {
                match self { $(Layer::$variant => $name,)* }
            }
        }
    };
}

layers! {
    /// The host kills at the deadline, through a descriptor of the process that nothing can redirect.
    WallKill => "wall_kill",
    /// No descriptor but the run's own channel is open.
    FdsClosed => "fds_closed",
    /// The kernel, short of memory, kills a run before the host.
    OomFirst => "oom_first",
    /// A memory cgroup: what all runs of a sandbox take together is limited, the kernel's memory for them included.
    MemoryCgroup => "memory_cgroup",
    /// A namespace of users: no rights over anything outside.
    UserNamespace => "user_namespace",
    /// A namespace of processes: others cannot be named, and all die with the template.
    PidNamespace => "pid_namespace",
    /// A namespace of the network without any interface that is up.
    NetNamespace => "net_namespace",
    /// A namespace of mounts with an empty root.
    MountNamespace => "mount_namespace",
    /// Namespaces of shared memory, message queues and the host's name.
    IpcNamespace => "ipc_namespace",
    /// The address space is limited.
    RlimitAs => "rlimit_as",
    /// Processor time is limited, in whole seconds.
    RlimitCpu => "rlimit_cpu",
    /// No file can be written, in memory either.
    RlimitFsize => "rlimit_fsize",
    /// No core is dumped.
    RlimitCore => "rlimit_core",
    /// The process cannot be looked into by others, and dumps no core to a pipe.
    Undumpable => "undumpable",
    /// No capabilities.
    NoCapabilities => "no_capabilities",
    /// No program that is started gains rights.
    NoNewPrivs => "no_new_privs",
    /// Landlock: no file, no port, no signal beyond.
    Landlock => "landlock",
    /// The process dies with the one that forked it.
    ParentDeath => "parent_death",
    /// Seccomp: few system calls are let through.
    Seccomp => "seccomp",
    /// Seccomp: what the template needs is taken away from its children.
    ChildSeccomp => "child_seccomp",
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What became of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// It holds.
    Active,
    /// It holds in part.
    Degraded {
        /// What is missing.
        why: String,
        /// What stands in for it.
        fallback: String,
    },
    /// The system does not give it.
    Unavailable {
        /// What the system says.
        why: String,
    },
    /// The host has turned it off.
    Disabled,
}

/// What became of every layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers(pub Vec<(Layer, State)>);

impl Layers {
    /// What became of one.
    pub fn state(&self, layer: Layer) -> &State {
        self.0.iter().find(|row| row.0 == layer).map_or(&State::Disabled, |row| &row.1)
    }

    /// Does it hold?
    pub fn is_active(&self, layer: Layer) -> bool {
        *self.state(layer) == State::Active
    }

    pub(crate) fn set(&mut self, layer: Layer, state: State) {
        match self.0.iter_mut().find(|row| row.0 == layer) {
            Some(row) => row.1 = state,
            None => self.0.push((layer, state)),
        }
    }
}

/// Which layers are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    off: Vec<Layer>,
}

impl Plan {
    /// All of them but these.
    pub(crate) fn without(off: &[Layer]) -> Self {
        Plan { off: off.to_vec() }
    }

    pub(crate) fn wants(&self, layer: Layer) -> bool {
        !self.off.contains(&layer)
    }
}

/// A step of the set-up that failed, before anything of the program's ran.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("sandbox set-up: {step}: {why}")]
pub struct SetupError {
    /// Which step.
    pub step: String,
    /// What the system says.
    pub why: String,
}

impl SetupError {
    pub(crate) fn new(step: impl fmt::Display, why: impl fmt::Display) -> Self {
        SetupError { step: step.to_string(), why: why.to_string() }
    }
}

/// Puts on layers one by one, and keeps the account.
pub(crate) struct Dressing<'a> {
    plan: &'a Plan,
    layers: Layers,
    /// For tests: this step fails.
    fail_at: Option<Layer>,
}

impl<'a> Dressing<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        Dressing { plan, layers: Layers(Vec::new()), fail_at: None }
    }

    #[cfg(feature = "testing")]
    pub(crate) fn failing_at(mut self, layer: Option<Layer>) -> Self {
        self.fail_at = layer;
        self
    }

    /// Puts on one layer; whether a missing one matters is not decided here.
    pub(crate) fn try_on(&mut self, layer: Layer, work: impl FnOnce() -> io::Result<()>) {
        let state = if !self.plan.wants(layer) {
            State::Disabled
        } else if self.fail_at == Some(layer) {
            State::Unavailable { why: "made to fail".to_owned() }
        } else {
            match work() {
                Ok(()) => State::Active,
                Err(error) => State::Unavailable { why: error.to_string() },
            }
        };
        self.layers.set(layer, state);
    }

    /// Puts on one layer without which the process must not go on.
    pub(crate) fn must(&mut self, layer: Layer, work: impl FnOnce() -> io::Result<()>) -> Result<(), SetupError> {
        self.try_on(layer, work);
        match self.layers.state(layer) {
            State::Unavailable { why } => Err(SetupError::new(layer, why)),
            _ => Ok(()),
        }
    }

    pub(crate) fn note(&mut self, layer: Layer, state: State) {
        let state = if self.plan.wants(layer) { state } else { State::Disabled };
        self.layers.set(layer, state);
    }

    pub(crate) fn state(&self, layer: Layer) -> State {
        self.layers.state(layer).clone()
    }

    pub(crate) fn done(self) -> Layers {
        self.layers
    }
}

/// Lowers a limit, soft and hard; never above what the process may have.
pub(crate) fn limit(resource: Resource, wanted: u64) -> io::Result<()> {
    let hard = sys::hard_limit(resource)?.map_or(wanted, |hard| hard.min(wanted));
    Ok(setrlimit(resource, Rlimit { current: Some(hard), maximum: Some(hard) })?)
}

/// Limits processor time. The kernel ends the process with a signal of its own at the first second, and in any case at the
/// next one.
pub(crate) fn limit_cpu(seconds: u64) -> io::Result<()> {
    let hard = sys::hard_limit(Resource::Cpu)?.unwrap_or(u64::MAX).min(seconds.saturating_add(1));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(seconds.min(hard)), maximum: Some(hard) })?)
}

/// Limits that are the same for every process of the layer.
pub(crate) fn fixed_limits(dressing: &mut Dressing<'_>, descriptors: u64) {
    dressing.try_on(Layer::RlimitFsize, || limit(Resource::Fsize, 0));
    dressing.try_on(Layer::RlimitCore, || limit(Resource::Core, 0));
    for resource in [Resource::Memlock, Resource::Msgqueue] {
        // They belong to no layer of their own: the calls that would use them are forbidden besides.
        let _ = limit(resource, 0);
    }
    let _ = limit(Resource::Nofile, descriptors);
}

/// Namespaces, together where the system allows it. Says whether there is one of processes: then the caller is not in it
/// yet, its next child is.
pub(crate) fn namespaces(dressing: &mut Dressing<'_>) -> bool {
    const PARTS: [(Layer, i32); 5] = [
        (Layer::UserNamespace, libc::CLONE_NEWUSER),
        (Layer::PidNamespace, libc::CLONE_NEWPID),
        (Layer::NetNamespace, libc::CLONE_NEWNET),
        (Layer::MountNamespace, libc::CLONE_NEWNS),
        (Layer::IpcNamespace, libc::CLONE_NEWIPC | libc::CLONE_NEWUTS),
    ];
    let wanted = PARTS.iter().filter(|(layer, _)| dressing.plan.wants(*layer) && dressing.fail_at != Some(*layer));
    let flags = wanted.fold(0, |flags, (_, flag)| flags | flag);
    let together = if flags == 0 { Ok(()) } else { sys::unshare(flags) };
    for (layer, flag) in PARTS {
        dressing.try_on(layer, || match &together {
            Ok(()) => Ok(()),
            // One by one, a privileged user has them all but that of users.
            Err(_) if layer != Layer::UserNamespace => sys::unshare(flag),
            Err(error) => Err(io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EPERM))),
        });
    }
    dressing.layers.is_active(Layer::PidNamespace)
}

/// Makes the root an empty directory that cannot be written to.
pub(crate) fn empty_root(dressing: &mut Dressing<'_>) {
    if !dressing.layers.is_active(Layer::MountNamespace) {
        return;
    }
    if let Err(error) = pivot() {
        let state = State::Degraded {
            why: format!("the root is not empty: {error}"),
            fallback: "landlock and seccomp forbid files".to_owned(),
        };
        dressing.layers.set(Layer::MountNamespace, state);
    }
}

fn pivot() -> io::Result<()> {
    use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // Any directory does: it is covered from here on.
    mount("none", "/proc", "tmpfs", quiet, Some(c"size=4k,mode=555"))?;
    rustix::process::chdir("/proc")?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    Ok(rustix::mount::mount_remount("/", quiet | MountFlags::RDONLY, c"")?)
}

/// What every process of the layer gives up, but for its system calls.
pub(crate) fn give_up(dressing: &mut Dressing<'_>) {
    dressing.try_on(Layer::NoCapabilities, || {
        let none = rustix::thread::CapabilitySet::empty();
        let sets = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        Ok(rustix::thread::set_capabilities(None, sets)?)
    });
    dressing.try_on(Layer::NoNewPrivs, || Ok(rustix::thread::set_no_new_privs(true)?));
    dressing.try_on(Layer::Undumpable, || {
        Ok(rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?)
    });
    dressing.try_on(Layer::Landlock, || sys::landlock_nothing(sys::landlock_version()?));
    if dressing.layers.is_active(Layer::Landlock)
        && let Ok(version @ ..6) = sys::landlock_version()
    {
        let state = State::Degraded {
            why: format!("version {version} knows no scopes"),
            fallback: "seccomp forbids signals and sockets".to_owned(),
        };
        dressing.layers.set(Layer::Landlock, state);
    }
}

/// Restricts system calls to a table's.
pub(crate) fn restrict(dressing: &mut Dressing<'_>, table: filter::Table) {
    dressing.try_on(Layer::Seccomp, || sys::install_filter(&filter::program(table, Rule::Kill), false));
}

/// Has the kernel choose this process, and those it forks, before the host's when memory runs out.
pub(crate) fn first_to_go() -> io::Result<()> {
    const PATH: &str = "/proc/self/oom_score_adj";
    const RAISED: i32 = 500;
    let now: i32 = std::fs::read_to_string(PATH)?.trim().parse().map_err(io::Error::other)?;
    // It can be raised by everybody, and lowered by few.
    if now < RAISED { std::fs::write(PATH, RAISED.to_string()) } else { Ok(()) }
}

/// Binds this process's life to that of the one that forked it, which had the pid `parent`.
pub(crate) fn die_with_parent(parent: rustix::process::Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    match rustix::process::getppid() {
        Some(now) if now == parent => Ok(()),
        _ => Err(io::Error::other("the parent is gone")),
    }
}

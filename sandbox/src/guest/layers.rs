//! The layers of protection, in the order in which a process installs them, and the state of each.

use crate::kernel::unix;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

macro_rules! layers {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// A layer of protection around a program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Layer { $($(#[$doc])* $variant,)* }

        impl Layer {
            /// All layers, in the order in which they are installed.
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
    /// The process dies with the process that forked it.
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

/// The state of a layer.
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

/// The state of every layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers(pub Vec<(Layer, State)>);

impl Layers {
    /// The state of a layer.
    pub fn state(&self, layer: Layer) -> &State {
        self.0.iter().find(|row| row.0 == layer).map_or(&State::Disabled, |row| &row.1)
    }

    /// Does it hold?
    pub fn is_active(&self, layer: Layer) -> bool {
        *self.state(layer) == State::Active
    }

    /// The first of some that was tried and does not hold, or was not tried at all, and why. One that tests turn off holds.
    pub(crate) fn missing(&self, required: &[Layer]) -> Option<SetupError> {
        let why = |layer: Layer| match self.0.iter().find(|row| row.0 == layer) {
            None => Some("this way of running does without it"),
            Some((_, State::Unavailable { why } | State::Degraded { why, .. })) => Some(why.as_str()),
            Some(_) => None,
        };
        required.iter().find_map(|&layer| Some(SetupError::new(format_args!("{layer} is required"), why(layer)?)))
    }

    pub(crate) fn set(&mut self, layer: Layer, state: State) {
        match self.0.iter_mut().find(|row| row.0 == layer) {
            Some(row) => row.1 = state,
            None => self.0.push((layer, state)),
        }
    }
}

/// The layers that are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LayerSet {
    off: Vec<Layer>,
}

impl LayerSet {
    /// All of them but these.
    pub(crate) fn without(off: &[Layer]) -> Self {
        LayerSet { off: off.to_vec() }
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

/// Installs layers one by one, and keeps their states.
pub(crate) struct LayerInstaller<'a> {
    pub(crate) wanted: &'a LayerSet,
    pub(crate) layers: Layers,
    /// For tests: this step fails.
    pub(crate) fail_at: Option<Layer>,
}

impl<'a> LayerInstaller<'a> {
    pub(crate) fn new(wanted: &'a LayerSet) -> Self {
        LayerInstaller { wanted, layers: Layers(Vec::new()), fail_at: None }
    }

    #[cfg(feature = "testing")]
    pub(crate) fn failing_at(mut self, layer: Option<Layer>) -> Self {
        self.fail_at = layer;
        self
    }

    /// Installs a layer; whether a missing layer matters is not decided here.
    pub(crate) fn install(&mut self, layer: Layer, work: impl FnOnce() -> io::Result<()>) {
        let state = if !self.wanted.wants(layer) {
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

    /// Installs a layer without which the process must not go on.
    #[cfg(target_os = "linux")]
    pub(crate) fn must(&mut self, layer: Layer, work: impl FnOnce() -> io::Result<()>) -> Result<(), SetupError> {
        self.install(layer, work);
        match self.layers.state(layer) {
            State::Unavailable { why } => Err(SetupError::new(layer, why)),
            _ => Ok(()),
        }
    }

    pub(crate) fn note(&mut self, layer: Layer, state: State) {
        let state = if self.wanted.wants(layer) { state } else { State::Disabled };
        self.layers.set(layer, state);
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn state(&self, layer: Layer) -> State {
        self.layers.state(layer).clone()
    }

    pub(crate) fn done(self) -> Layers {
        self.layers
    }
}

/// Lowers a limit, soft and hard; never above what the process may have.
pub(crate) fn limit(resource: Resource, wanted: u64) -> io::Result<()> {
    let hard = unix::hard_limit(resource)?.map_or(wanted, |hard| hard.min(wanted));
    Ok(setrlimit(resource, Rlimit { current: Some(hard), maximum: Some(hard) })?)
}

/// Limits processor time. The kernel ends the process with a signal of its own at the first second, and in any case at the
/// next one.
pub(crate) fn limit_cpu(seconds: u64) -> io::Result<()> {
    let hard = unix::hard_limit(Resource::Cpu)?.unwrap_or(u64::MAX).min(seconds.saturating_add(1));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(seconds.min(hard)), maximum: Some(hard) })?)
}

/// Points standard input and output at `/dev/null`.
pub(crate) fn silence() -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

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

            /// Returns its name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Layer::$variant => $name,)* }
            }
        }
    };
}

layers! {
    /// The host kills at the deadline, through a descriptor that always refers to this process.
    WallKill => "wall_kill",
    /// No descriptor is open except the run's own channel.
    FdsClosed => "fds_closed",
    /// When the machine runs out of memory, the kernel kills a run before the host.
    OomFirst => "oom_first",
    /// A memory cgroup limits all runs of a sandbox together, including the kernel's memory for them.
    MemoryCgroup => "memory_cgroup",
    /// A user namespace: no rights over anything outside.
    UserNamespace => "user_namespace",
    /// A PID namespace: processes outside are not visible, and all processes in it end with the template.
    PidNamespace => "pid_namespace",
    /// A network namespace in which no interface is up.
    NetNamespace => "net_namespace",
    /// A mount namespace with an empty root.
    MountNamespace => "mount_namespace",
    /// Namespaces for shared memory, message queues and the host name.
    IpcNamespace => "ipc_namespace",
    /// The address space is limited.
    RlimitAs => "rlimit_as",
    /// Processor time is limited, in whole seconds.
    RlimitCpu => "rlimit_cpu",
    /// No file can be written, not even one in memory.
    RlimitFsize => "rlimit_fsize",
    /// No core file is written.
    RlimitCore => "rlimit_core",
    /// Other processes cannot inspect the process, and it cannot pipe a core dump to a program.
    Undumpable => "undumpable",
    /// The process has no capabilities.
    NoCapabilities => "no_capabilities",
    /// Executing a program gains no rights.
    NoNewPrivs => "no_new_privs",
    /// Landlock: no files, no ports, and no signals to processes outside.
    Landlock => "landlock",
    /// The process ends with the process that forked it.
    ParentDeath => "parent_death",
    /// Seccomp allows only a few system calls.
    Seccomp => "seccomp",
    /// Seccomp takes the calls that only the template needs away from its children.
    ChildSeccomp => "child_seccomp",
}

impl Layer {
    const fn is_namespace(self) -> bool {
        use Layer::{IpcNamespace, MountNamespace, NetNamespace, PidNamespace, UserNamespace};
        matches!(self, UserNamespace | PidNamespace | NetNamespace | MountNamespace | IpcNamespace)
    }
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
    /// The layer is active.
    Active,
    /// The layer is partly active.
    Degraded {
        /// What is missing.
        why: String,
        /// What replaces the missing part.
        fallback: String,
    },
    /// The system does not support the layer.
    Unavailable {
        /// The error of the system.
        why: String,
    },
    /// The host has turned the layer off.
    Disabled,
}

/// The state of every layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers(pub Vec<(Layer, State)>);

impl Layers {
    /// Returns the state of a layer.
    pub fn state(&self, layer: Layer) -> &State {
        self.0.iter().find(|row| row.0 == layer).map_or(&State::Disabled, |row| &row.1)
    }

    /// Returns true if the layer is active.
    pub fn is_active(&self, layer: Layer) -> bool {
        *self.state(layer) == State::Active
    }

    /// Returns the error for the first required layer that is not active, or was not tried. Layers that tests turn off
    /// count as active.
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

/// The layers to install: all of them, except that a host may do without namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LayerSet {
    pub(crate) namespaces: bool,
    #[cfg(feature = "testing")]
    #[serde(default)]
    pub(crate) impaired: Impaired,
}

/// For tests: layers that are turned off, and one that fails.
#[cfg(feature = "testing")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Impaired {
    pub(crate) off: Vec<Layer>,
    pub(crate) fails: Option<Layer>,
}

impl LayerSet {
    pub(crate) fn all() -> Self {
        LayerSet {
            namespaces: true,
            #[cfg(feature = "testing")]
            impaired: Impaired::default(),
        }
    }

    pub(crate) fn wants(&self, layer: Layer) -> bool {
        #[cfg(feature = "testing")]
        if self.impaired.off.contains(&layer) {
            return false;
        }
        self.namespaces || !layer.is_namespace()
    }

    /// Returns true if the layer is wanted and no test makes it fail.
    #[cfg(target_os = "linux")]
    pub(crate) fn can_install(&self, layer: Layer) -> bool {
        self.wants(layer) && self.check(layer).is_ok()
    }

    /// Fails if a test wants this layer to fail.
    #[cfg(feature = "testing")]
    fn check(&self, layer: Layer) -> io::Result<()> {
        match self.impaired.fails == Some(layer) {
            true => Err(io::Error::other("made to fail")),
            false => Ok(()),
        }
    }

    #[cfg(not(feature = "testing"))]
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "tests make it fail")]
    fn check(&self, _: Layer) -> io::Result<()> {
        Ok(())
    }
}

/// A setup step that failed before the program was started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("sandbox set-up: {step}: {why}")]
pub struct SetupError {
    /// The name of the step.
    pub step: String,
    /// The error of the system.
    pub why: String,
}

impl SetupError {
    pub(crate) fn new(step: impl fmt::Display, why: impl fmt::Display) -> Self {
        SetupError { step: step.to_string(), why: why.to_string() }
    }
}

/// Installs layers one by one, and records their states.
pub(crate) struct LayerInstaller<'a> {
    pub(crate) wanted: &'a LayerSet,
    pub(crate) layers: Layers,
}

impl<'a> LayerInstaller<'a> {
    pub(crate) fn new(wanted: &'a LayerSet) -> Self {
        LayerInstaller { wanted, layers: Layers(Vec::new()) }
    }

    /// Installs a layer and records its state; the caller decides whether a missing layer matters.
    pub(crate) fn install(&mut self, layer: Layer, work: impl FnOnce() -> io::Result<()>) {
        let state = if !self.wanted.wants(layer) {
            State::Disabled
        } else {
            match self.wanted.check(layer).and_then(|()| work()) {
                Ok(()) => State::Active,
                Err(error) => State::Unavailable { why: error.to_string() },
            }
        };
        self.layers.set(layer, state);
    }

    /// Installs a layer that the process must not run without.
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

/// Lowers a limit, soft and hard; never raises it.
pub(crate) fn limit(resource: Resource, wanted: u64) -> io::Result<()> {
    let hard = unix::hard_limit(resource)?.map_or(wanted, |hard| hard.min(wanted));
    Ok(setrlimit(resource, Rlimit { current: Some(hard), maximum: Some(hard) })?)
}

/// Limits processor time. The kernel sends a signal of its own at this second, and kills the process at the next one.
pub(crate) fn limit_cpu(seconds: u64) -> io::Result<()> {
    let hard = unix::hard_limit(Resource::Cpu)?.unwrap_or(u64::MAX).min(seconds.saturating_add(1));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(seconds.min(hard)), maximum: Some(hard) })?)
}

/// Redirects standard input and output to `/dev/null`.
pub(crate) fn silence() -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

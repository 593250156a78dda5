//! The steps by which a process locks itself down.

use super::filter;
use super::layers::{Layer, LayerInstaller, State, limit};
use crate::kernel::sys::{self, Instruction};
use rustix::process::Resource;
use std::io;

/// Sets the limits that are the same for every process.
pub(crate) fn fixed_limits(installer: &mut LayerInstaller<'_>, descriptors: u64) {
    installer.install(Layer::RlimitFsize, || limit(Resource::Fsize, 0));
    installer.install(Layer::RlimitCore, || limit(Resource::Core, 0));
    for resource in [Resource::Memlock, Resource::Msgqueue] {
        // These belong to no layer: the calls that need them are forbidden anyway.
        let _ = limit(resource, 0);
    }
    let _ = limit(Resource::Nofile, descriptors);
}

/// Creates the namespaces, in one call if the system allows it. Returns true if there is a PID namespace. The caller is
/// not in it, but its next child is.
pub(crate) fn namespaces(installer: &mut LayerInstaller<'_>) -> bool {
    const PARTS: [(Layer, i32); 5] = [
        (Layer::UserNamespace, libc::CLONE_NEWUSER),
        (Layer::PidNamespace, libc::CLONE_NEWPID),
        (Layer::NetNamespace, libc::CLONE_NEWNET),
        (Layer::MountNamespace, libc::CLONE_NEWNS),
        (Layer::IpcNamespace, libc::CLONE_NEWIPC | libc::CLONE_NEWUTS),
    ];
    let wanted = PARTS.iter().filter(|(layer, _)| installer.wanted.can_install(*layer));
    let flags = wanted.fold(0, |flags, (_, flag)| flags | flag);
    let together = if flags == 0 { Ok(()) } else { sys::unshare(flags) };
    for (layer, flag) in PARTS {
        installer.install(layer, || match &together {
            Ok(()) => Ok(()),
            // One by one, a privileged user gets all except the user namespace.
            Err(_) if layer != Layer::UserNamespace => sys::unshare(flag),
            Err(error) => Err(io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EPERM))),
        });
    }
    installer.layers.is_active(Layer::PidNamespace)
}

/// Makes the root an empty, read-only directory.
pub(crate) fn empty_root(installer: &mut LayerInstaller<'_>) {
    if !installer.layers.is_active(Layer::MountNamespace) {
        return;
    }
    if let Err(error) = pivot() {
        let state = State::Degraded {
            why: format!("the root is not empty: {error}"),
            fallback: "landlock and seccomp forbid files".to_owned(),
        };
        installer.layers.set(Layer::MountNamespace, state);
    }
}

fn pivot() -> io::Result<()> {
    use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // Any directory works: the mount hides it.
    mount("none", "/proc", "tmpfs", quiet, Some(c"size=4k,mode=555"))?;
    rustix::process::chdir("/proc")?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    Ok(rustix::mount::mount_remount("/", quiet | MountFlags::RDONLY, c"")?)
}

/// Drops the rights that no process needs, except system calls.
pub(crate) fn give_up(installer: &mut LayerInstaller<'_>) {
    installer.install(Layer::NoCapabilities, || {
        let none = rustix::thread::CapabilitySet::empty();
        let sets = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        Ok(rustix::thread::set_capabilities(None, sets)?)
    });
    installer.install(Layer::NoNewPrivs, || Ok(rustix::thread::set_no_new_privs(true)?));
    installer.install(Layer::Undumpable, || {
        Ok(rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?)
    });
    installer.install(Layer::Landlock, || sys::landlock_nothing(sys::landlock_version()?));
    if installer.layers.is_active(Layer::Landlock)
        && let Ok(version @ ..6) = sys::landlock_version()
    {
        let state = State::Degraded {
            why: format!("version {version} knows no scopes"),
            fallback: "seccomp forbids signals and sockets".to_owned(),
        };
        installer.layers.set(Layer::Landlock, state);
    }
}

/// Restricts the system calls to those of a table.
pub(crate) fn restrict(installer: &mut LayerInstaller<'_>, table: filter::Table) {
    installer.install(Layer::Seccomp, || sys::install_filter(&filter::program(table), false));
}

/// Restricts a template. Returns the filters for its children, without and with threads. Each child adds one of them to
/// the template's when it locks itself down.
pub(crate) fn restrict_template(installer: &mut LayerInstaller<'_>) -> Option<[Vec<Instruction>; 2]> {
    restrict(installer, filter::template());
    installer.install(Layer::ChildSeccomp, || Ok(()));
    if !installer.layers.is_active(Layer::Seccomp) {
        installer.note(Layer::ChildSeccomp, installer.state(Layer::Seccomp));
    }
    installer.layers.is_active(Layer::ChildSeccomp).then(|| [false, true].map(filter::child))
}

/// Makes the kernel kill this process, and those it forks, before the host when memory runs out.
pub(crate) fn first_to_go() -> io::Result<()> {
    const PATH: &str = "/proc/self/oom_score_adj";
    const RAISED: i32 = 500;
    let now: i32 = std::fs::read_to_string(PATH)?.trim().parse().map_err(io::Error::other)?;
    // Every process may raise it, but few may lower it.
    if now < RAISED { std::fs::write(PATH, RAISED.to_string()) } else { Ok(()) }
}

/// Makes this process end with the process that forked it, whose pid was `parent`.
pub(crate) fn die_with_parent(parent: rustix::process::Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    match rustix::process::getppid() {
        Some(now) if now == parent => Ok(()),
        _ => Err(io::Error::other("the parent is gone")),
    }
}

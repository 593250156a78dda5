//! A memory cgroup for the processes of a sandbox: templates, and with them every run they fork.
//!
//! The ceiling is one for all of them together, and what the kernel takes on their behalf counts. It costs a run nothing: its
//! process is born in the group. When the ceiling is met the kernel kills the largest of them; whoever finds a run killed by
//! nobody asks here whether it was that ([`Group::take_kill`]).
//!
//! The group is made inside the one that the host is in: what bounds the host bounds it too. Under version 2 a group that gives controllers to
//! groups inside it has no processes of its own. There the host goes into a group [`HOST`] inside its own, or was started in one of that name, and the
//! group for runs stands beside that.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a version of cgroups names things.
#[derive(Debug)]
struct Files {
    limit: &'static str,
    /// Memory and swap together, or swap alone: what keeps a group from going on in swap.
    swap: &'static str,
    /// Where the kernel counts those it has killed, in a line `oom_kill N`.
    events: &'static str,
}

const V1: Files =
    Files { limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes", events: "memory.oom_control" };
const V2: Files = Files { limit: "memory.max", swap: "memory.swap.max", events: "memory.events" };

/// A group that is there; dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Group {
    dir: PathBuf,
    files: &'static Files,
    limit: u64,
    /// How many kills have been told to somebody.
    told: Mutex<u64>,
}

/// The group of the host under version 2, inside the one that has the groups of its sandboxes.
const HOST: &str = "ptcl-host";
/// What the names of groups begin with; then comes the pid of the host, and a number.
const NAME: &str = "ptc-lisp-";
/// How long the last process of a group may take to be gone.
const LAST: Duration = Duration::from_secs(2);

impl Group {
    /// Makes a group inside this process's own, with a ceiling in bytes; without one, three quarters of what there is.
    pub(crate) fn new(limit: Option<u64>) -> io::Result<Group> {
        let (parent, files) = parent()?;
        if files.limit == V2.limit {
            give_memory(&parent)?;
        }
        Group::within(&parent, files, limit.unwrap_or_else(|| most(&parent, files) / 4 * 3))
    }

    fn within(parent: &Path, files: &'static Files, limit: u64) -> io::Result<Group> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        sweep(parent);
        let dir = parent.join(format!("{NAME}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir(&dir).map_err(|error| told("mkdir", error))?;
        // From here on whatever fails removes it again.
        let group = Group { dir, files, limit, told: Mutex::new(0) };
        let path = group.dir.join(files.limit);
        if !path.exists() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the memory controller is not on in this group"));
        }
        std::fs::write(&path, limit.to_string()).map_err(|error| told(files.limit, error))?;
        let swap = if files.swap == V2.swap { 0 } else { limit };
        // Not every kernel accounts for swap.
        let _ = std::fs::write(group.dir.join(files.swap), swap.to_string());
        *group.told.lock().unwrap_or_else(PoisonError::into_inner) = group.kills()?;
        Ok(group)
    }

    /// Where a process writes `0` to join.
    pub(crate) fn door(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Has nobody removed it? It can be removed while no process is in it.
    pub(crate) fn is_there(&self) -> bool {
        self.dir.exists()
    }

    /// The ceiling.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    fn kills(&self) -> io::Result<u64> {
        let text = std::fs::read_to_string(self.dir.join(self.files.events))?;
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|n| n.trim().parse().ok()).ok_or_else(|| told(self.files.events, "no count of kills"))
    }

    /// Has the kernel killed one more than have been told? Each is told once.
    pub(crate) fn take_kill(&self) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let more = self.kills().is_ok_and(|kills| kills > *told);
        *told += u64::from(more);
        more
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that is killed leaves a little later.
        let until = Instant::now() + LAST;
        while let Err(error) = std::fs::remove_dir(&self.dir) {
            if error.kind() == io::ErrorKind::NotFound || Instant::now() >= until {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn told(step: &str, why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{step}: {why}"))
}

/// Joins a group; for a process that is not locked in yet.
pub(crate) fn join(door: &Path) -> io::Result<()> {
    std::fs::write(door, "0")
}

/// Groups that this process has made and that are there.
#[cfg(feature = "testing")]
pub(crate) fn all() -> Vec<PathBuf> {
    let Ok((parent, _)) = parent() else { return Vec::new() };
    let ours = format!("{NAME}{}-", std::process::id());
    let all = std::fs::read_dir(parent).into_iter().flatten().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().starts_with(&ours)).map(|entry| entry.path()).collect()
}

/// Removes groups of hosts that were killed. One that has processes cannot be removed.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let host = name.strip_prefix(NAME).and_then(|rest| rest.split('-').next());
        if host.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// Has a group of version 2 give the memory controller to groups inside it. A host that is in it by itself goes into one of
/// those; with other processes in it that cannot be done.
fn give_memory(parent: &Path) -> io::Result<()> {
    let given = parent.join("cgroup.subtree_control");
    let names = std::fs::read_to_string(&given).map_err(|error| told("cgroup.subtree_control", error))?;
    if names.split_whitespace().any(|name| name == "memory") {
        return Ok(());
    }
    let give = || std::fs::write(&given, "+memory");
    match give() {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
        done => return done.map_err(|error| told("cgroup.subtree_control", error)),
    }
    let leaf = parent.join(HOST);
    let made = std::fs::create_dir(&leaf);
    let given = join(&leaf.join("cgroup.procs")).and_then(|()| give());
    given.map_err(|error| {
        // As it was before.
        let _ = join(&parent.join("cgroup.procs"));
        if made.is_ok() {
            let _ = std::fs::remove_dir(&leaf);
        }
        let why = format!(
            "{error}; start the host alone in a group that it may change, or in one named {HOST} inside such a group"
        );
        told("cgroup.subtree_control", why)
    })
}

/// The directory in which groups are made: that of this process's group, or the one above when its group is [`HOST`].
fn parent() -> io::Result<(PathBuf, &'static Files)> {
    let (own, files) = own()?;
    match own.parent() {
        Some(above) if own.ends_with(HOST) && files.limit == V2.limit => Ok((above.to_owned(), files)),
        _ => Ok((own, files)),
    }
}

/// The directory of this process's group.
fn own() -> io::Result<(PathBuf, &'static Files)> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| told(path, error));
    find(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
}

/// Finds the group from the kernel's texts: the groups of the process, and the mounts.
fn find(groups: &str, mounts: &str) -> io::Result<(PathBuf, &'static Files)> {
    // A line is `number:controllers:path`; the one without controllers is that of version 2.
    let line = |wanted: fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            wanted(controllers).then_some(path)
        })
    };
    let v1 = line(|controllers| controllers.split(',').any(|name| name == "memory"));
    let v2 = line(str::is_empty);
    let (path, kind, files) = match (v1, v2) {
        (Some(path), _) => (path, "cgroup", &V1),
        (None, Some(path)) => (path, "cgroup2", &V2),
        (None, None) => return Err(io::Error::new(io::ErrorKind::Unsupported, "no cgroups")),
    };
    // A mount is `id parent dev root point options [more] - kind source options`.
    let mounted = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let (here, options) = (right.next()?, right.nth(1)?);
        let fits = here == kind && (kind == "cgroup2" || options.split(',').any(|option| option == "memory"));
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        let inside = path.strip_prefix(root.trim_end_matches('/'))?;
        fits.then(|| Path::new(point).join(inside.trim_start_matches('/')))
    });
    mounted.map(|dir| (dir, files)).ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "no cgroups are mounted"))
}

/// What the group, or else the machine, has in bytes.
fn most(parent: &Path, files: &Files) -> u64 {
    let group = std::fs::read_to_string(parent.join(files.limit)).ok().and_then(|text| text.trim().parse().ok());
    let system = rustix::system::sysinfo();
    let machine = (system.totalram as u64).saturating_mul(u64::from(system.mem_unit));
    machine.min(group.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
            31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = |groups, mounts| find(groups, mounts).map(|(dir, files)| (dir, files.limit)).ok();
        let v1 = found("4:memory:/a/b\n0::/x\n", mounts);
        assert_eq!(v1, Some((PathBuf::from("/sys/fs/cgroup/memory/a/b"), V1.limit)));
        let v2 = found("0::/x/y\n", mounts);
        assert_eq!(v2, Some((PathBuf::from("/sys/fs/cgroup/unified/x/y"), V2.limit)));
        // In a container a part of the tree is mounted.
        let part = mounts.replace("0:26 / ", "0:26 /docker/1 ");
        let inside = found("4:memory:/docker/1/job\n", &part);
        assert_eq!(inside, Some((PathBuf::from("/sys/fs/cgroup/memory/job"), V1.limit)));
        assert_eq!(found("4:memory:/elsewhere\n", &part), None);
        assert_eq!(found("", mounts), None);
        assert_eq!(found("4:memory:/a\n", ""), None);
    }

    /// Who gives memory to groups inside it does so once, and says what is in the way.
    #[test]
    fn memory_is_given_once() {
        let dir = std::env::temp_dir().join(format!("ptcl-cgroup-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert!(give_memory(&dir).unwrap_err().to_string().starts_with("cgroup.subtree_control: "));
        let given = dir.join("cgroup.subtree_control");
        std::fs::write(&given, "cpu memory\n").unwrap();
        give_memory(&dir).unwrap();
        assert_eq!(std::fs::read_to_string(&given).unwrap(), "cpu memory\n");
        std::fs::write(&given, "cpu\n").unwrap();
        give_memory(&dir).unwrap();
        assert_eq!(std::fs::read_to_string(&given).unwrap(), "+memory");
        assert!(!dir.join(HOST).exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_directory_without_the_controller_is_no_group() {
        let dir = std::env::temp_dir().join(format!("ptcl-no-cgroup-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let error = Group::within(&dir, &V2, 1 << 20).unwrap_err();
        assert!(error.to_string().contains("not on"), "{error}");
        // Nothing is left of the attempt.
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir(&dir).unwrap();
        assert!(Group::within(&dir, &V2, 1 << 20).unwrap_err().to_string().contains("mkdir"));
    }
}

//! A memory cgroup for the processes of a sandbox: its templates, and every run that they fork.
//!
//! One limit applies to all of them together, including the kernel's memory on their behalf. It costs a run nothing,
//! because its process starts in the group. When the limit is reached the kernel kills the largest process.
//! [`Group::take_kill`] tells whether that is why a run was killed. Under version 2 the number of processes and threads
//! is limited too, where the system allows it.
//!
//! The group is created inside the one of the host, so the host's limits apply too. Under version 2 a group that gives
//! controllers to groups inside it has no processes of its own. There the host moves into a group [`HOST`] inside its
//! own, unless it was started in one with that name, and the group for runs is created beside that.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The file names of a version of cgroups.
#[derive(Debug)]
struct Files {
    limit: &'static str,
    /// Memory and swap together, or swap alone: limited so that the group cannot exceed its limit by swapping.
    swap: &'static str,
    /// Where the kernel counts its kills, in a line `oom_kill N`.
    events: &'static str,
    /// The number of processes and threads. Under version 1 it is in another tree.
    tasks: Option<&'static str>,
}

const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    swap: "memory.memsw.limit_in_bytes",
    events: "memory.oom_control",
    tasks: None,
};
const V2: Files =
    Files { limit: "memory.max", swap: "memory.swap.max", events: "memory.events", tasks: Some("pids.max") };

/// An existing group; removed when dropped.
#[derive(Debug)]
pub(crate) struct Group {
    dir: PathBuf,
    files: &'static Files,
    limit: u64,
    /// The number of kills reported so far.
    reported: Mutex<u64>,
}

/// The group of the host under version 2, next to the groups of its sandboxes.
const HOST: &str = "ptcl-host";
/// The prefix of the names of groups; followed by the pid of the host and a number.
const NAME: &str = "ptc-lisp-";
/// How long to wait until the last process of a group has left it.
const LAST: Duration = Duration::from_secs(2);

impl Group {
    /// Creates a group inside this process's own, with a limit in bytes and one for the number of processes and threads.
    /// The default is three quarters of the available memory.
    pub(crate) fn new(limit: Option<u64>, tasks: u64) -> io::Result<Group> {
        let (parent, files) = parent()?;
        if files.limit == V2.limit {
            give_controllers(&parent)?;
        }
        let group = Group::within(&parent, files, limit.unwrap_or_else(|| max(&parent, files) / 4 * 3))?;
        group.limit_tasks(tasks)?;
        Ok(group)
    }

    /// Limits the number of processes and threads, if the group has the controller.
    fn limit_tasks(&self, tasks: u64) -> io::Result<()> {
        match self.files.tasks.map(|name| (name, self.dir.join(name))) {
            Some((name, path)) if path.exists() => {
                std::fs::write(path, tasks.to_string()).map_err(|error| failed(name, error))
            }
            _ => Ok(()),
        }
    }

    fn within(parent: &Path, files: &'static Files, limit: u64) -> io::Result<Group> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        sweep(parent);
        let dir = parent.join(format!("{NAME}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir(&dir).map_err(|error| failed("mkdir", error))?;
        // From here on, an error removes the group again.
        let group = Group { dir, files, limit, reported: Mutex::new(0) };
        let path = group.dir.join(files.limit);
        if !path.exists() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the memory controller is not on in this group"));
        }
        std::fs::write(&path, limit.to_string()).map_err(|error| failed(files.limit, error))?;
        let swap = if files.swap == V2.swap { 0 } else { limit };
        // Not every kernel accounts for swap.
        let _ = std::fs::write(group.dir.join(files.swap), swap.to_string());
        *group.reported.lock().unwrap_or_else(PoisonError::into_inner) = group.kills()?;
        Ok(group)
    }

    /// Returns the file to which a process writes `0` to join.
    pub(crate) fn join_file(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Returns true if the directory exists. It can be removed while no process is in it.
    pub(crate) fn is_there(&self) -> bool {
        self.dir.exists()
    }

    /// Returns the limit.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    fn kills(&self) -> io::Result<u64> {
        let text = std::fs::read_to_string(self.dir.join(self.files.events))?;
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|n| n.trim().parse().ok()).ok_or_else(|| failed(self.files.events, "no count of kills"))
    }

    /// Returns true if the kernel has killed a process that was not reported yet. Each kill is reported once.
    pub(crate) fn take_kill(&self) -> bool {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let more = self.kills().is_ok_and(|kills| kills > *reported);
        *reported += u64::from(more);
        more
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A killed process leaves the group a little later.
        let until = Instant::now() + LAST;
        while let Err(error) = std::fs::remove_dir(&self.dir) {
            if error.kind() == io::ErrorKind::NotFound || Instant::now() >= until {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn failed(step: &str, why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{step}: {why}"))
}

/// Joins a group; for a process that is not locked down yet.
pub(crate) fn join(join_file: &Path) -> io::Result<()> {
    std::fs::write(join_file, "0")
}

/// Returns the groups created by this process that still exist.
#[cfg(feature = "testing")]
pub(crate) fn all() -> Vec<PathBuf> {
    let Ok((parent, _)) = parent() else { return Vec::new() };
    let ours = format!("{NAME}{}-", std::process::id());
    let all = std::fs::read_dir(parent).into_iter().flatten().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().starts_with(&ours)).map(|entry| entry.path()).collect()
}

/// Removes groups of hosts that were killed. A group with processes cannot be removed.
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

/// Makes a group of version 2 give the memory controller to groups inside it, and that of processes if it has one. A
/// host that is alone in it moves into one of those; with other processes in it this is not possible.
fn give_controllers(parent: &Path) -> io::Result<()> {
    let given = parent.join("cgroup.subtree_control");
    let names = std::fs::read_to_string(&given).map_err(|error| failed("cgroup.subtree_control", error))?;
    let available = std::fs::read_to_string(parent.join("cgroup.controllers")).unwrap_or_default();
    let has = |text: &str, wanted: &str| text.split_whitespace().any(|name| name == wanted);
    let pids = if has(&available, "pids") && !has(&names, "pids") { "+pids" } else { "" };
    if has(&names, "memory") {
        if !pids.is_empty() {
            // The layer is the limit of memory; this one may be missing.
            let _ = std::fs::write(&given, pids);
        }
        return Ok(());
    }
    let give = || std::fs::write(&given, format!("+memory {pids}"));
    match give() {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
        done => return done.map_err(|error| failed("cgroup.subtree_control", error)),
    }
    let leaf = parent.join(HOST);
    let made = std::fs::create_dir(&leaf);
    let given = join(&leaf.join("cgroup.procs")).and_then(|()| give());
    given.map_err(|error| {
        // Restores the previous state.
        let _ = join(&parent.join("cgroup.procs"));
        if made.is_ok() {
            let _ = std::fs::remove_dir(&leaf);
        }
        let why = format!(
            "{error}; start the host alone in a group that it may change, or in one named {HOST} inside such a group"
        );
        failed("cgroup.subtree_control", why)
    })
}

/// Returns the directory in which groups are created: that of this process's group, or its parent if the group is
/// [`HOST`].
fn parent() -> io::Result<(PathBuf, &'static Files)> {
    let (own, files) = own()?;
    match own.parent() {
        Some(above) if own.ends_with(HOST) && files.limit == V2.limit => Ok((above.to_owned(), files)),
        _ => Ok((own, files)),
    }
}

/// Returns the directory of this process's group.
fn own() -> io::Result<(PathBuf, &'static Files)> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| failed(path, error));
    find(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
}

/// Finds the group from the contents of two files in `/proc`: the groups of the process, and the mounts.
fn find(groups: &str, mounts: &str) -> io::Result<(PathBuf, &'static Files)> {
    // A line is `number:controllers:path`; the line of version 2 has no controllers.
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

/// Returns the memory of the group, or of the machine, in bytes.
fn max(parent: &Path, files: &Files) -> u64 {
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
        // In a container only a part of the tree is mounted.
        let part = mounts.replace("0:26 / ", "0:26 /docker/1 ");
        let inside = found("4:memory:/docker/1/job\n", &part);
        assert_eq!(inside, Some((PathBuf::from("/sys/fs/cgroup/memory/job"), V1.limit)));
        assert_eq!(found("4:memory:/elsewhere\n", &part), None);
        assert_eq!(found("", mounts), None);
        assert_eq!(found("4:memory:/a\n", ""), None);
    }

    /// Tests that the controller is enabled once, and that the error names the obstacle.
    #[test]
    fn memory_is_given_once() {
        let dir = std::env::temp_dir().join(format!("ptcl-cgroup-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert!(give_controllers(&dir).unwrap_err().to_string().starts_with("cgroup.subtree_control: "));
        let given = dir.join("cgroup.subtree_control");
        let gives = |before: &str| {
            std::fs::write(&given, before).unwrap();
            give_controllers(&dir).unwrap();
            std::fs::read_to_string(&given).unwrap()
        };
        assert_eq!(["cpu memory\n", "cpu\n"].map(gives), ["cpu memory\n", "+memory "]);
        // The processes are counted where the group can do that.
        std::fs::write(dir.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        let all = ["cpu memory pids\n", "cpu memory\n", "cpu\n"];
        assert_eq!(all.map(gives), ["cpu memory pids\n", "+pids", "+memory +pids"]);
        assert!(!dir.join(HOST).exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn processes_are_limited_where_they_are_counted() {
        let dir = std::env::temp_dir().join(format!("ptcl-tasks-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (limit, reported) = (dir.join("pids.max"), Mutex::new(0));
        let group = Group { dir: dir.clone(), files: &V2, limit: 1, reported };
        group.limit_tasks(7).unwrap();
        assert!(!limit.exists());
        std::fs::write(&limit, "max\n").unwrap();
        group.limit_tasks(7).unwrap();
        assert_eq!(std::fs::read_to_string(&limit).unwrap(), "7");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_directory_without_the_controller_is_no_group() {
        let dir = std::env::temp_dir().join(format!("ptcl-no-cgroup-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let error = Group::within(&dir, &V2, 1 << 20).unwrap_err();
        assert!(error.to_string().contains("not on"), "{error}");
        // The attempt leaves nothing behind.
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir(&dir).unwrap();
        assert!(Group::within(&dir, &V2, 1 << 20).unwrap_err().to_string().contains("mkdir"));
    }
}

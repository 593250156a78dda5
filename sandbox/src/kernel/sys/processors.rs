//! The processors that a process may run on.

use crate::kernel::unix::result;
use std::io;
use std::mem::size_of;

/// A set of processors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processors(libc::cpu_set_t);

impl Processors {
    /// Returns the processors that this thread may run on. Fails on systems with more than 1,024.
    pub(crate) fn allowed() -> io::Result<Processors> {
        let mut set = none();
        // SAFETY: the set is a live variable of the given size.
        result(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) }.into())?;
        Ok(Processors(set))
    }

    /// Returns a set with one processor; an empty one if the number is out of range.
    pub(crate) fn only(number: usize) -> Processors {
        let mut set = none();
        if number < libc::CPU_SETSIZE as usize {
            // SAFETY: the set has room for the number.
            unsafe { libc::CPU_SET(number, &mut set) };
        }
        Processors(set)
    }

    /// Returns their numbers, in order.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        // SAFETY: as above.
        (0..libc::CPU_SETSIZE as usize).filter(|&number| unsafe { libc::CPU_ISSET(number, &self.0) }).collect()
    }

    /// Restricts this thread, and everything it starts, to these processors.
    pub(crate) fn stay(&self) -> io::Result<()> {
        // SAFETY: the set is a live variable of the given size.
        result(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const self.0) }.into()).map(drop)
    }

    /// Lets a child of the template run on these processors.
    pub(crate) fn let_run(&self, pid: i32) -> io::Result<()> {
        // SAFETY: the set is a live variable of the given size.
        let code = unsafe { libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &raw const self.0) };
        result(code.into()).map(drop)
    }

    /// Returns the processor on which this thread is running now.
    pub(crate) fn current() -> Option<usize> {
        // SAFETY: the call takes no arguments.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
}

fn none() -> libc::cpu_set_t {
    // SAFETY: an all-zero set is an empty one.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_told_to() {
        let allowed = Processors::allowed().unwrap();
        let first = allowed.numbers()[0];
        let stayed = std::thread::spawn(move || {
            Processors::only(first).stay().unwrap();
            (Processors::allowed().unwrap().numbers(), Processors::current())
        });
        assert_eq!(stayed.join().unwrap(), (vec![first], Some(first)));
        assert_eq!(Processors::allowed().unwrap().numbers(), allowed.numbers());
        assert!(Processors::only(usize::MAX).numbers().is_empty());
    }
}

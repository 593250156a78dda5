//! The pages of code and constants that every child touches, mapped in the template so that a fork copies the mapping.
//!
//! A fork leaves out the page tables of what is mapped from files, so that a child faults each of them in again, 16 pages
//! at a time: 40 faults for an empty program, two fifths of its time with the end of the mappings. It does copy them for a
//! mapping that has had a private page. So the template drops what is mapped and runs a program while every second page is
//! marked, which keeps the kernel from mapping more than the page that is touched; and that twice. The first time shows
//! which mappings are used, and a page of each is made private. The second time, when the template is locked in and does
//! nothing any more but run the program, leaves those pages mapped that a child touches and no others: each costs in a fork
//! and in the end of a child (`docs/performance.md`). Then the marks are taken away.
//!
//! Constants that the loader has changed would all be copied; they are moved to a file, and from there on are like code.
//! Where the pages of code that are used crowd, a copy of the code in a huge page takes their place: one entry for all.
//!
//! Nothing depends on it: where a step does not work, children fault. The same goes for [`gather`].

use crate::kernel::sys::{self, Advice};
use crate::kernel::unix;
use rustix::fs::MemfdFlags;
use rustix::process::Resource;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The least size of a mapping that is watched. Smaller ones are a few faults at most.
const LEAST: usize = 4 << 10;

const HUGE: usize = 2 << 20;

/// How many pages of a huge one have to be used for it to be worth its memory.
const CROWDED: usize = 64;

/// Mappings that are watched.
pub(crate) struct Watch {
    ranges: Vec<Range<usize>>,
    /// Those of them that are code.
    codes: Vec<Range<usize>>,
    memory: File,
    pages: File,
}

impl Watch {
    /// Begins to watch what is mapped from files and cannot be written to.
    pub(crate) fn begin() -> io::Result<Watch> {
        let memory = File::options().read(true).write(true).open("/proc/self/mem")?;
        let pages = File::open("/proc/self/pagemap")?;
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let constants = |line: &&str| line.contains(" r--p ");
        for changed in maps.lines().filter(constants).filter_map(of_file).filter(|range| !is_untouched(&pages, range)) {
            let _ = move_to_file(&memory, &changed);
        }
        let mut ranges: Vec<Range<usize>> = maps.lines().filter_map(of_file).collect();
        ranges.retain(|range| is_untouched(&pages, range));
        for range in &ranges {
            sys::advise(range.clone(), Advice::Drop)?;
            for page in range.clone().step_by(2 * page_size()) {
                sys::advise(page..page + page_size(), Advice::Mark)?;
            }
        }
        let mut codes: Vec<Range<usize>> =
            maps.lines().filter(|line| line.contains(" r-xp ")).filter_map(of_file).collect();
        codes.retain(|code| ranges.contains(code));
        Ok(Watch { ranges, codes, memory, pages })
    }

    /// Chooses the mappings that were touched meanwhile: forks copy their page tables from here on.
    pub(crate) fn choose(mut self) -> Hot {
        self.move_into_huge_pages();
        let used = self.ranges.iter().filter(|range| self.touched(range) > 0);
        used.for_each(|range| drop(self.make_private(range.start)));
        Hot { ranges: self.ranges }
    }

    /// How many pages of a range were touched.
    fn touched(&self, range: &Range<usize>) -> usize {
        entries(&self.pages, range).map_or(0, |pages| pages.iter().filter(|page| *page & PRESENT != 0).count())
    }

    /// Puts a copy of the code in the place of the file's where the pages that are used lie close enough together: what a
    /// huge page covers is one entry in a child's page tables.
    fn move_into_huge_pages(&mut self) {
        let mut rest = Vec::with_capacity(self.ranges.len() + 1);
        for code in &self.codes {
            let windows = code.start.next_multiple_of(HUGE)..code.end / HUGE * HUGE;
            for start in windows.step_by(HUGE) {
                let window = start..start + HUGE;
                if self.touched(&window) < CROWDED || sys::move_into_huge_page(window.clone()).is_err() {
                    continue;
                }
                // It is not the file's any more, and must not be dropped.
                for range in self.ranges.drain(..) {
                    let (before, after) =
                        (range.start..range.end.min(window.start), range.start.max(window.end)..range.end);
                    rest.extend([before, after].into_iter().filter(|part| !part.is_empty()));
                }
                std::mem::swap(&mut self.ranges, &mut rest);
            }
        }
    }

    /// Writes a byte where it stands already, past the protection of the page, which becomes a copy of the file's.
    fn make_private(&self, at: usize) -> io::Result<()> {
        let mut byte = [0];
        self.memory.read_exact_at(&mut byte, at as u64)?;
        self.memory.write_all_at(&byte, at as u64)
    }
}

/// Has what the loader has changed, and nobody changes any more, come from a file that has it so: all of it would be in each
/// child's page tables otherwise, and few of it is used.
fn move_to_file(memory: &File, range: &Range<usize>) -> io::Result<()> {
    const PART: usize = 4 << 10;
    // Beyond that limit a write ends the process.
    if unix::soft_limit(Resource::Fsize)?.is_some_and(|most| most < range.len() as u64) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let file = File::from(rustix::fs::memfd_create("constants", MemfdFlags::CLOEXEC)?);
    for start in range.clone().step_by(PART) {
        let mut bytes = [0; PART];
        let part = &mut bytes[..PART.min(range.end - start)];
        memory.read_exact_at(part, start as u64)?;
        file.write_all_at(part, (start - range.start) as u64)?;
    }
    sys::map_constants(range.clone(), &file)
}

/// Mappings whose page tables forks copy, as far as they are used, and others that were watched with them.
pub(crate) struct Hot {
    ranges: Vec<Range<usize>>,
}

impl Hot {
    /// Begins anew with nothing touched.
    pub(crate) fn drop_all(&self) {
        for range in &self.ranges {
            // Also the pages made private: what is in them is what is in the file.
            let _ = sys::advise(range.clone(), Advice::Drop);
        }
    }

    /// Touches the page that an address is on, if it is watched.
    pub(crate) fn touch(&self, address: usize) {
        if self.ranges.iter().any(|range| range.contains(&address)) {
            sys::touch(address);
        }
    }

    /// Ends it. What is touched from here on is mapped as usual, with its neighbours.
    pub(crate) fn keep(&self) {
        for range in &self.ranges {
            let _ = sys::advise(range.clone(), Advice::Unmark);
        }
    }
}

/// The stack of the one thread, where it ends by now.
pub(crate) struct Stack(usize);

impl Stack {
    pub(crate) fn as_it_is() -> Option<Stack> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let line = maps.lines().find(|line| line.ends_with("[stack]"))?;
        usize::from_str_radix(line.split_once('-')?.0, 16).ok().map(Stack)
    }

    /// Gives back the pages that only calls before this one have used, and that children would have copies of.
    pub(crate) fn drop_used(&self) {
        let _ = sys::drop_stack_from(self.0);
    }
}

/// Keeps large data in huge pages: a fork then copies one entry for each, not one for each of its 512 small ones. With 25 MB
/// of data a run's process takes half the processor time, as little as without data.
pub(crate) fn gather() -> io::Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for range in maps.lines().filter_map(of_memory) {
        let whole = range.start.next_multiple_of(HUGE)..range.end / HUGE * HUGE;
        for start in whole.step_by(HUGE) {
            // Pages that nobody has touched cannot be gathered, and need not be.
            let _ = sys::advise(start..start + HUGE, Advice::Gather);
        }
    }
    Ok(())
}

/// The place of memory that is of no file.
fn of_memory(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights, path) = (words.next()?, words.next()?, words.nth(3).unwrap_or_default());
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    (rights == "rw-p" && (path.is_empty() || path == "[heap]")).then_some(number(start)?..number(end)?)
}

fn page_size() -> usize {
    rustix::param::page_size()
}

/// The place of a mapping from a file that cannot be written to.
fn of_file(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights, path) = (words.next()?, words.next()?, words.nth(3)?);
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let fits = matches!(rights, "r-xp" | "r--p") && path.starts_with('/');
    let range = number(start)?..number(end)?;
    (fits && range.len() >= LEAST).then_some(range)
}

/// In an entry of the page map: the page is there; it is the file's own.
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;
const SWAPPED: u64 = 1 << 62;

/// Are all pages the file's own? Others, as those that the loader has relocated, must not be dropped.
fn is_untouched(pages: &File, range: &Range<usize>) -> bool {
    let own = |page: &u64| page & SWAPPED == 0 && (page & PRESENT == 0 || page & OF_FILE != 0);
    entries(pages, range).is_ok_and(|pages| pages.iter().all(own))
}

fn entries(pages: &File, range: &Range<usize>) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; range.len() / page_size() * 8];
    pages.read_exact_at(&mut bytes, (range.start / page_size() * 8) as u64)?;
    Ok(bytes.chunks_exact(8).map(|entry| entry.try_into().map_or(SWAPPED, u64::from_ne_bytes)).collect())
}

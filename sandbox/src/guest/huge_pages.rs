//! Keeps large data in huge pages: a fork then copies one page table entry for each, instead of one for each of its 512
//! small pages. With 25 MB of data this halves the processor time of a run's process, to that of a run without data.

use crate::kernel::sys;
use std::io;
use std::ops::Range;

const HUGE: usize = 2 << 20;

/// Moves the memory of this process into huge pages.
pub(crate) fn gather() -> io::Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for range in maps.lines().filter_map(of_memory) {
        let whole = range.start.next_multiple_of(HUGE)..range.end / HUGE * HUGE;
        for start in whole.step_by(HUGE) {
            // Pages that were never touched cannot be moved, which does not matter.
            let _ = sys::gather(start..start + HUGE);
        }
    }
    Ok(())
}

/// Returns the address range of an anonymous mapping.
fn of_memory(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights, path) = (words.next()?, words.next()?, words.nth(3).unwrap_or_default());
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    (rights == "rw-p" && (path.is_empty() || path == "[heap]")).then_some(number(start)?..number(end)?)
}

//! The regular expressions of a run: their compiled forms, which its heaps share, and what each heap has paid for.

use super::Ctx;
use crate::Table;
use crate::heap::Res;
use crate::regex::{Compiled, Extent, Linear, PatternCost, Regexes, SearchCache, SearchCaches};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The maximum size of patterns and their compiled forms on the account of one heap, in bytes. Beyond it they are
/// forgotten, and paid for again when they are used again: a program may create any number of patterns. It is fixed,
/// and not a part of the memory limit, so that fuel does not depend on the limit.
const HELD_BYTES: usize = 4 << 20;

/// The regular expressions of a heap.
#[derive(Default)]
pub(super) struct Patterns {
    /// The compiled forms, by pattern: those of a run, including its workers.
    compiled: Arc<Mutex<Regexes>>,
    /// The patterns that this heap was charged for.
    paid: RefCell<Arc<PaidPatterns>>,
    /// Those that the heaps below were charged for before this one started.
    inherited: Option<Arc<InheritedPatterns>>,
    /// The bytes of memory that the paid patterns and their compiled forms take.
    bytes: Cell<usize>,
    /// What this heap's searches have cached.
    searches: RefCell<SearchCaches>,
}

/// The paid patterns, by what they have to match.
type PaidPatterns = [Table<Box<str>, Paid>; 2];

/// What workers get from their caller: the compiled forms, and the paid patterns.
pub(crate) struct InheritedPatterns {
    /// Weak, because the number of heaps that share them bounds their size, and this is not a heap.
    compiled: Weak<Mutex<Regexes>>,
    paid: Arc<PaidPatterns>,
    below: Option<Arc<InheritedPatterns>>,
}

/// What was paid for a pattern.
#[derive(Clone, Copy)]
struct Paid {
    /// The fuel spent when it was first used: work that is done again from an earlier point is charged again.
    /// `u64::MAX` if it was paid for in a heap below, where no work of this one starts over.
    asked: u64,
    /// Whether its compiled form is charged to the memory account.
    held: bool,
}

// Heaps of several threads share them; this check makes a violation a compile error.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Regexes>();
};

impl Patterns {
    /// Creates those of a worker.
    pub(super) fn of_worker(inherited: &Arc<InheritedPatterns>) -> Self {
        let compiled = inherited.compiled.upgrade().unwrap_or_default();
        Patterns { compiled, inherited: Some(inherited.clone()), ..Patterns::default() }
    }

    fn paid(&self, pattern: &str, extent: Extent) -> Option<Paid> {
        let of = |paid: &PaidPatterns| paid[extent as usize].get(pattern).copied();
        if let Some(paid) = of(&self.paid.borrow()) {
            return Some(paid);
        }
        let mut below = self.inherited.as_deref();
        while let Some(inherited) = below {
            if let Some(paid) = of(&inherited.paid) {
                return Some(Paid { asked: u64::MAX, ..paid });
            }
            below = inherited.below.as_deref();
        }
        None
    }

    fn note(&self, pattern: &str, extent: Extent, paid: Paid) {
        // Only abandoned workers may still share it: then it is copied once.
        Arc::make_mut(&mut self.paid.borrow_mut())[extent as usize].insert(pattern.into(), paid);
    }

    /// Returns a compiled form; compiles it if it is not cached.
    fn compiled(&self, pattern: &str, extent: Extent) -> Res<(Compiled, PatternCost)> {
        // Twice what the heaps have on their accounts, so that for each form that is compiled again unpaid another was
        // paid.
        let kept = Arc::strong_count(&self.compiled).saturating_mul(2 * HELD_BYTES);
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(pattern, extent, kept)
    }
}

impl Ctx {
    /// Returns what this run's workers get. Called before the heap is suspended, because it reads what only the owner
    /// may read.
    pub(crate) fn inherited_patterns(&self) -> Arc<InheritedPatterns> {
        let paid = self.patterns.paid.borrow().clone();
        let below = self.patterns.inherited.clone();
        Arc::new(InheritedPatterns { compiled: Arc::downgrade(&self.patterns.compiled), paid, below })
    }

    /// Returns the compiled form of a regular expression and its cost. The first use of a pattern is charged for
    /// compiling it, whether or not it was compiled before.
    pub(crate) fn regex(&self, pattern: &str, extent: Extent) -> Res<(Compiled, PatternCost)> {
        self.charge_pattern(pattern, extent)?;
        let got = self.patterns.compiled(pattern, extent)?;
        if let Some(paid) = self.patterns.paid(pattern, extent).filter(|paid| !paid.held) {
            self.hold_pattern(got.1.kept)?;
            self.patterns.note(pattern, extent, Paid { held: true, ..paid });
        }
        Ok(got)
    }

    /// Returns the cache for searches with a pattern. It has to be put back after the search.
    pub(crate) fn take_search_cache(&self, linear: &Arc<Linear>) -> SearchCache {
        self.patterns.searches.borrow_mut().take(linear)
    }

    /// Keeps the cache of a search for the next one with the same pattern.
    pub(crate) fn put_search_cache(&self, linear: &Arc<Linear>, cache: SearchCache) {
        self.patterns.searches.borrow_mut().put(linear, cache);
    }

    /// Charges fuel for compiling a pattern, unless this heap was charged for it before.
    pub(crate) fn charge_pattern(&self, pattern: &str, extent: Extent) -> Res<()> {
        /// The size of a table entry.
        const ENTRY: usize = 64;
        let asked = self.spent();
        match self.patterns.paid(pattern, extent) {
            Some(paid) if paid.asked != asked => return Ok(()),
            Some(_) => {}
            // It will be rejected for its length.
            None if pattern.len() > Regexes::PATTERN_BYTES => return Ok(()),
            None => {
                self.hold_pattern(pattern.len() + ENTRY)?;
                self.patterns.note(pattern, extent, Paid { asked, held: false });
            }
        }
        self.charge(Regexes::fuel(pattern))
    }

    /// Charges memory for a pattern. If there is too much, all earlier patterns are released, as if none had been used
    /// yet.
    fn hold_pattern(&self, bytes: usize) -> Res<()> {
        let before = self.patterns.bytes.get();
        if before > 0 && before + bytes > HELD_BYTES {
            self.patterns.bytes.set(0);
            self.patterns.paid.replace(Arc::default());
            self.release_external(before);
        }
        self.charge_external(bytes)?;
        self.patterns.bytes.set(self.patterns.bytes.get() + bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Heap;

    fn run() -> Ctx {
        Ctx::new(Heap::new(1, 100_000))
    }

    fn worker(of: &Ctx) -> Ctx {
        Ctx::of_worker(Heap::new(2, 100_000), &of.inherited_patterns())
    }

    fn linear(heap: &Ctx) -> Arc<crate::regex::Linear> {
        match heap.regex("(a+)b", Extent::Part).unwrap().0 {
            Compiled::Linear(linear) => linear,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_worker_finds_what_its_parent_compiled() {
        let heap = run();
        let (ours, workers) = (linear(&heap), linear(&worker(&heap)));
        assert!(Arc::ptr_eq(&ours, &workers));
        assert!(!Arc::ptr_eq(&ours, &linear(&run())), "another run compiles for itself");
    }

    #[test]
    fn a_worker_pays_for_what_its_parents_have_not_paid() {
        let heap = run();
        let spent = |heap: &Ctx, pattern: &str| {
            let before = heap.spent();
            heap.regex(pattern, Extent::Part).unwrap();
            heap.charge(1).unwrap();
            heap.spent() - before
        };
        assert!(spent(&heap, "a") > 1);
        let first = worker(&heap);
        assert_eq!((spent(&first, "a"), spent(&first, "b") > 1, spent(&first, "b")), (1, true, 1));
        let second = worker(&first);
        assert_eq!((spent(&second, "a"), spent(&second, "b")), (1, 1));
        assert!(spent(&heap, "b") > 1, "the parent has not paid for it");
    }

    /// The cache of compiled patterns is bounded by the number of heaps, and so is what is charged, however many
    /// patterns there are.
    #[test]
    fn patterns_without_number_are_forgotten() {
        let heap = Ctx::new(Heap::new(1, 1 << 30));
        let (mut max, mut paid) = (0, 0);
        for i in 0..4_000 {
            let before = heap.spent();
            heap.regex(&format!(r"\w\w{i}"), Extent::Part).unwrap();
            paid += usize::from(heap.spent() > before);
            max = max.max(heap.account().used);
        }
        let kept = heap.patterns.compiled.lock().unwrap().bytes();
        assert!(max > HELD_BYTES / 2 && max <= HELD_BYTES, "{max}");
        assert!(kept > 0 && kept <= 2 * HELD_BYTES, "{kept}");
        assert_eq!(paid, 4_000);
        let before = heap.spent();
        heap.regex(r"\w\w0", Extent::Part).unwrap();
        assert!(heap.spent() > before, "it was forgotten, and is paid for again");
    }
}

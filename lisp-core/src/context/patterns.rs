//! The regular expressions of a run: their compiled forms, which its heaps share, and what each heap has paid for.

use super::Ctx;
use crate::Table;
use crate::heap::Res;
use crate::regex::{Compiled, Extent, PatternCost, Regexes};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The most bytes of patterns and their compiled forms on the account of one heap. Beyond it they are forgotten, and paid
/// for anew when they are used again: a program may make any number of patterns. A number of its own and no part of the
/// budget, so that fuel does not depend on that.
const HELD_BYTES: usize = 4 << 20;

/// What a heap knows of regular expressions.
#[derive(Default)]
pub(super) struct Patterns {
    /// The compiled forms, by pattern: those of a run, its workers included.
    compiled: Arc<Mutex<Regexes>>,
    /// The patterns that this heap was charged for.
    paid: RefCell<Arc<PaidPatterns>>,
    /// Those that the heaps below were charged for before this one began.
    inherited: Option<Arc<InheritedPatterns>>,
    /// What the patterns that were paid for, and their compiled forms, take of what is held.
    bytes: Cell<usize>,
}

/// The patterns that were paid for, by what they have to match.
type PaidPatterns = [Table<Box<str>, Paid>; 2];

/// What workers get from their caller: the compiled forms, and which patterns are paid for.
pub(crate) struct InheritedPatterns {
    /// How many share them bounds what they take, and this is none of those.
    compiled: Weak<Mutex<Regexes>>,
    paid: Arc<PaidPatterns>,
    below: Option<Arc<InheritedPatterns>>,
}

/// What was paid for a pattern.
#[derive(Clone, Copy)]
struct Paid {
    /// The fuel spent when it was first used: work that is done again from before is charged again. `u64::MAX` when it was
    /// paid for in a heap below, to which no work of this one goes back.
    asked: u64,
    /// Its compiled form is on the account.
    held: bool,
}

// Heaps of several threads share them, and nothing else would say so.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Regexes>();
};

impl Patterns {
    /// Those of a worker.
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
        // Only workers that were abandoned share it still: then it is copied once.
        Arc::make_mut(&mut self.paid.borrow_mut())[extent as usize].insert(pattern.into(), paid);
    }

    /// A compiled form, compiled now if it is not kept.
    fn compiled(&self, pattern: &str, extent: Extent) -> Res<(Compiled, PatternCost)> {
        // Twice what the heaps have on their accounts, so that for each form that is compiled again unpaid another was paid.
        let kept = Arc::strong_count(&self.compiled).saturating_mul(2 * HELD_BYTES);
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(pattern, extent, kept)
    }
}

impl Ctx {
    /// What this run's workers get. Made before the heap is put to rest: it looks at what only the owner may.
    pub(crate) fn inherited_patterns(&self) -> Arc<InheritedPatterns> {
        let paid = self.patterns.paid.borrow().clone();
        let below = self.patterns.inherited.clone();
        Arc::new(InheritedPatterns { compiled: Arc::downgrade(&self.patterns.compiled), paid, below })
    }

    /// The compiled form of a regular expression and what it costs. The first use of a pattern is charged for compiling it,
    /// whether another has done that or not.
    pub(crate) fn regex(&self, pattern: &str, extent: Extent) -> Res<(Compiled, PatternCost)> {
        self.charge_pattern(pattern, extent)?;
        let got = self.patterns.compiled(pattern, extent)?;
        if let Some(paid) = self.patterns.paid(pattern, extent).filter(|paid| !paid.held) {
            self.hold_pattern(got.1.kept)?;
            self.patterns.note(pattern, extent, Paid { held: true, ..paid });
        }
        Ok(got)
    }

    /// Fuel for compiling a pattern, when it has not been charged for in this heap.
    pub(crate) fn charge_pattern(&self, pattern: &str, extent: Extent) -> Res<()> {
        /// An entry of a table.
        const ENTRY: usize = 64;
        let asked = self.spent();
        match self.patterns.paid(pattern, extent) {
            Some(paid) if paid.asked != asked => return Ok(()),
            Some(_) => {}
            // It is refused for its length.
            None if pattern.len() > Regexes::PATTERN_BYTES => return Ok(()),
            None => {
                self.hold_pattern(pattern.len() + ENTRY)?;
                self.patterns.note(pattern, extent, Paid { asked, held: false });
            }
        }
        self.charge(Regexes::fuel(pattern))
    }

    /// Takes bytes of a pattern on the account. When they are too many, all before are taken off it, as if none had been
    /// used yet.
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

    /// What is kept compiled is bounded by the number of heaps, and so is what is on an account, however many patterns.
    #[test]
    fn patterns_without_number_are_forgotten() {
        let heap = Ctx::new(Heap::new(1, 1 << 30));
        let (mut most, mut paid) = (0, 0);
        for i in 0..4_000 {
            let before = heap.spent();
            heap.regex(&format!(r"\w\w{i}"), Extent::Part).unwrap();
            paid += usize::from(heap.spent() > before);
            most = most.max(heap.account().used);
        }
        let kept = heap.patterns.compiled.lock().unwrap().bytes();
        assert!(most > HELD_BYTES / 2 && most <= HELD_BYTES, "{most}");
        assert!(kept > 0 && kept <= 2 * HELD_BYTES, "{kept}");
        assert_eq!(paid, 4_000);
        let before = heap.spent();
        heap.regex(r"\w\w0", Extent::Part).unwrap();
        assert!(heap.spent() > before, "it was forgotten, and is paid for anew");
    }
}

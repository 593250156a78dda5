//! The slots of parallel workers under every order in which threads can interleave: the same file, over the atomics of
//! a model checker.

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
}
#[path = "../../src/drive/budget.rs"]
#[allow(dead_code, unreachable_pub, reason = "the model asks for what matters to it, and exports nothing")]
mod budget;

use budget::ParallelBudget;
use loom::thread;
use std::sync::Arc;

/// Two threads and this one want slots of a budget of two: never more than two are held, no slot is lost, and nobody is
/// refused while one is free.
#[test]
fn slots_are_neither_lost_nor_given_twice() {
    // Without a bound it takes minutes, and finds no more.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let budget = Arc::new(ParallelBudget::new(2));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let budget = budget.clone();
                thread::spawn(move || {
                    let slot = budget.try_acquire();
                    assert!(budget.in_use() <= 2);
                    slot.is_some()
                })
            })
            .collect();
        let mine = budget.try_acquire();
        assert!(budget.in_use() <= 2);
        let taken = others.into_iter().filter_map(|thread| thread.join().ok()).filter(|&taken| taken).count();
        assert!(taken + usize::from(mine.is_some()) >= 2, "two slots and three askers");
        drop(mine);
        assert_eq!(budget.in_use(), 0);
        assert!(budget.peak() <= 2);
        assert!(budget.try_acquire().is_some());
    });
}

/// One slot: who is refused can only have met the other holding it, and who gives it back frees it.
#[test]
fn a_refusal_has_a_holder() {
    loom::model(|| {
        let budget = Arc::new(ParallelBudget::new(1));
        let other = {
            let budget = budget.clone();
            thread::spawn(move || drop(budget.try_acquire()))
        };
        let mine = budget.try_acquire();
        if mine.is_none() {
            // The other had it: when it has ended, the slot is free.
            other.join().unwrap();
            assert!(budget.try_acquire().is_some());
        } else {
            drop(mine);
            other.join().unwrap();
        }
        assert_eq!(budget.in_use(), 0);
    });
}

/// A refused attempt leaves no trace, not even for a moment: when this thread is refused the slot it has just given
/// back, the other one has it.
#[test]
fn a_refusal_hides_no_slot() {
    loom::model(|| {
        let budget = Arc::new(ParallelBudget::new(1));
        let first = budget.try_acquire();
        let other = {
            let budget = budget.clone();
            thread::spawn(move || budget.try_acquire().is_some())
        };
        drop(first);
        let refused = budget.try_acquire().is_none();
        let other_had_it = other.join().unwrap();
        assert!(!refused || other_had_it);
        assert_eq!(budget.in_use(), 0);
    });
}

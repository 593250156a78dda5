//! A stable sort whose comparison may fail.

use super::{Heap, Res};
use std::cmp::Ordering;

/// Sorts a few copies of values, or of places of values, stably. The comparison may fail, which a sort of the standard
/// library cannot bear. The caller charges for it; the scratch space is metered here.
pub fn merge_sort<T: Copy>(h: &Heap, items: &mut [T], mut compare: impl FnMut(T, T) -> Res<Ordering>) -> Res<()> {
    const RUN: usize = 8;
    let n = items.len();
    for (number, run) in items.chunks_mut(RUN).enumerate() {
        if number.is_multiple_of(64) {
            h.look()?;
        }
        for i in 1..run.len() {
            let item = run[i];
            let mut at = i;
            while at > 0 && compare(run[at - 1], item)? == Ordering::Greater {
                run[at] = run[at - 1];
                at -= 1;
            }
            run[at] = item;
        }
    }
    if n <= RUN {
        return Ok(());
    }
    h.room(std::mem::size_of_val(items))?;
    let mut scratch: Vec<T> = Vec::with_capacity(n);
    let mut width = RUN;
    while width < n {
        scratch.clear();
        for pair in items.chunks(width.saturating_mul(2)) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(h, &mut scratch, left, right, &mut compare)?;
        }
        items.copy_from_slice(&scratch);
        width = width.saturating_mul(2);
    }
    Ok(())
}

/// So many comparisons without a look at the clock.
const LOOK: u32 = 1_024;

fn merge<T: Copy>(
    h: &Heap,
    out: &mut Vec<T>,
    mut left: &[T],
    mut right: &[T],
    compare: &mut impl FnMut(T, T) -> Res<Ordering>,
) -> Res<()> {
    // Runs that are in order already are the usual case for sorted data: one comparison.
    if let (Some(&last), Some(&first)) = (left.last(), right.first())
        && compare(last, first)? != Ordering::Greater
    {
        out.extend_from_slice(left);
        out.extend_from_slice(right);
        return Ok(());
    }
    let mut steps = 0u32;
    while let (Some((&a, left_rest)), Some((&b, right_rest))) = (left.split_first(), right.split_first()) {
        steps += 1;
        if steps.is_multiple_of(LOOK) {
            h.look()?;
        }
        if compare(a, b)? == Ordering::Greater {
            out.push(b);
            right = right_rest;
        } else {
            out.push(a);
            left = left_rest;
        }
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
    Ok(())
}

//! A stable sort whose comparison may fail.

use super::{Heap, Res};
use std::cmp::Ordering;

/// The number of elements copied between two polls.
const PIECE: usize = 4_096;

/// Sorts copies of values, or of positions of values, stably. The comparison may fail, which the standard library's
/// sorts do not support. The caller charges for it; the scratch space is metered here.
pub(crate) fn merge_sort<T: Copy>(
    h: &Heap,
    items: &mut [T],
    mut compare: impl FnMut(T, T) -> Res<Ordering>,
) -> Res<()> {
    const RUN: usize = 8;
    for run in items.chunks_mut(RUN) {
        h.poll_every(RUN * 2)?;
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
    merge_runs(h, items, RUN, compare)
}

/// Merges sorted runs of `width` elements until everything is sorted, like [`merge_sort`].
fn merge_runs<T: Copy>(
    h: &Heap,
    items: &mut [T],
    mut width: usize,
    mut compare: impl FnMut(T, T) -> Res<Ordering>,
) -> Res<()> {
    let n = items.len();
    if n <= width {
        return Ok(());
    }
    h.check_available(std::mem::size_of_val(items))?;
    let mut scratch: Vec<T> = Vec::with_capacity(n);
    while width < n {
        scratch.clear();
        for pair in items.chunks(width.saturating_mul(2)) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(h, &mut scratch, left, right, &mut compare)?;
        }
        for (to, from) in items.chunks_mut(PIECE).zip(scratch.chunks(PIECE)) {
            h.poll_every(to.len() / 4)?;
            to.copy_from_slice(from);
        }
        width = width.saturating_mul(2);
    }
    Ok(())
}

fn merge<T: Copy>(
    h: &Heap,
    out: &mut Vec<T>,
    mut left: &[T],
    mut right: &[T],
    compare: &mut impl FnMut(T, T) -> Res<Ordering>,
) -> Res<()> {
    // Runs already in order are common in sorted data: one comparison.
    if let (Some(&last), Some(&first)) = (left.last(), right.first())
        && compare(last, first)? != Ordering::Greater
    {
        append(h, out, left)?;
        return append(h, out, right);
    }
    let mut steps = 0;
    while let (Some((&a, left_rest)), Some((&b, right_rest))) = (left.split_first(), right.split_first()) {
        steps += 1;
        if steps == PIECE {
            h.poll_every(steps)?;
            steps = 0;
        }
        if compare(a, b)? == Ordering::Greater {
            out.push(b);
            right = right_rest;
        } else {
            out.push(a);
            left = left_rest;
        }
    }
    h.poll_every(steps)?;
    append(h, out, left)?;
    append(h, out, right)
}

fn append<T: Copy>(h: &Heap, out: &mut Vec<T>, items: &[T]) -> Res<()> {
    for piece in items.chunks(PIECE) {
        h.poll_every(piece.len() / 4)?;
        out.extend_from_slice(piece);
    }
    Ok(())
}

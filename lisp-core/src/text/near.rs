//! Names that are similar to an unknown one.

/// The maximum number of names compared, of which a run may have very many: a few milliseconds at worst.
pub(crate) const MAX: usize = 400;

/// Returns the names most similar to an unknown one, nearest first, at most `count`; none if no name is similar. Names
/// that share a part between `-` or `_` are similar too.
pub fn near_names<'a>(name: &str, names: impl Iterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let parts = |text: &str| text.split(['-', '_']).filter(|part| part.len() > 2).map(str::to_lowercase).collect();
    let wanted: Vec<String> = if name.len() > LONGEST { Vec::new() } else { parts(name) };
    // Among names that are equally similar by their parts, prefers one of about this length.
    let mut near: Vec<(usize, usize, &str)> = names
        .take(MAX)
        .filter_map(|other| {
            let max = (name.len().min(other.len()) / 3).clamp(1, 4);
            let far = if other.len().abs_diff(name.len()) <= max { distance(name, other) } else { usize::MAX };
            let shared = || {
                let others: Vec<String> = parts(other);
                wanted.iter().filter(|part| others.contains(part)).count()
            };
            match far <= max && far < name.len().min(other.len()) {
                true => Some((far, 0, other)),
                // After all names with almost the same spelling; the more parts are shared, the nearer.
                false => Some(shared())
                    .filter(|&shared| shared > 0)
                    .map(|shared| (100 - shared.min(50), other.len().abs_diff(name.len()), other)),
            }
        })
        .collect();
    near.sort_unstable();
    near.into_iter().take(count).map(|(_, _, other)| other).collect()
}

/// Longer names are not similar to any other.
const LONGEST: usize = 64;

/// Returns how many characters must be changed, added, removed or swapped with their neighbour.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    match a.len() > LONGEST || b.len() > LONGEST {
        true => usize::MAX,
        false => distance_within(a, b, LONGEST).unwrap_or(usize::MAX),
    }
}

/// Returns the distance of two names if it is at most so much. Compares only characters whose places differ by no more.
pub(crate) fn distance_within(a: &str, b: &str, max: usize) -> Option<usize> {
    /// What lies outside the band is farther than allowed.
    const FAR: usize = usize::MAX / 2;
    if a.len() > LONGEST || b.len() > LONGEST {
        return None;
    }
    let (a, b) = differing(a, b);
    let mut chars = [['\0'; LONGEST]; 2];
    let [a, b] =
        [(a, 0), (b, 1)].map(|(text, at)| (text.chars().zip(&mut chars[at]).map(|(c, to)| *to = c).count(), at));
    let (a, b) = (&chars[a.1][..a.0], &chars[b.1][..b.0]);
    if a.len().abs_diff(b.len()) > max {
        return None;
    }
    let mut rows = [[FAR; LONGEST + 1]; 3];
    for (j, distance) in rows[0].iter_mut().enumerate().take(b.len().min(max) + 1) {
        *distance = j;
    }
    for i in 1..=a.len() {
        let [last_but_one, last, row] = [(i + 1) % 3, (i + 2) % 3, i % 3];
        rows[row] = [FAR; LONGEST + 1];
        if i <= max {
            rows[row][0] = i;
        }
        let mut least = rows[row][0];
        for j in i.saturating_sub(max).max(1)..=b.len().min(i.saturating_add(max)) {
            let other = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[last][j] + 1).min(rows[row][j - 1] + 1).min(rows[last][j - 1] + other);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[last_but_one][j - 2] + 1);
            }
            rows[row][j] = best;
            least = least.min(best);
        }
        if least > max.saturating_add(1) {
            return None;
        }
    }
    Some(rows[a.len() % 3][b.len()]).filter(|&distance| distance <= max)
}

/// Returns what two texts have between what both begin and end with.
fn differing<'t>(a: &'t str, b: &'t str) -> (&'t str, &'t str) {
    let begin = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum::<usize>();
    let (a, b) = (&a[begin..], &b[begin..]);
    let end =
        a.chars().rev().zip(b.chars().rev()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum::<usize>();
    (&a[..a.len() - end], &b[..b.len() - end])
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, distance, distance_within, near_names};

    #[test]
    fn swapped_letters_are_one_change() {
        assert_eq!(distance("ab", "ba"), 1);
    }

    /// A limit changes no distance that it allows.
    #[test]
    fn a_distance_within_a_limit_is_the_distance() {
        let letters = [
            "",
            "a",
            "b",
            "ab",
            "ba",
            "abc",
            "acb",
            "bca",
            "abcd",
            "badc",
            "xabcd",
            "abxyd",
            "aabbcc",
            "\u{e9}t\u{e9}",
        ];
        for a in letters {
            for b in letters {
                let whole = distance(a, b);
                for max in 0..8 {
                    assert_eq!(distance_within(a, b, max), Some(whole).filter(|far| *far <= max), "{a} {b} {max}");
                }
            }
        }
        assert_eq!(distance_within(&"a".repeat(LONGEST + 1), "a", LONGEST), None);
    }

    #[test]
    fn the_nearest_names_come_first() {
        let tools = ["search_orders", "list_orders", "get_weather", "search_customers", "search_order"];
        assert_eq!(near_names("serch_orders", tools.into_iter(), 2), ["search_orders", "search_order"]);
        assert_eq!(near_names("orders_of", tools.into_iter(), 9), ["list_orders", "search_orders"]);
        assert_eq!(near_names("timeout", ["parallel_timeout_ms", "timeout_ms"].into_iter(), 1), ["timeout_ms"]);
        assert!(near_names("refund", tools.into_iter(), 9).is_empty());
    }
}

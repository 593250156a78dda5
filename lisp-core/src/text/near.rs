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
    if a.len() > LONGEST || b.len() > LONGEST {
        return usize::MAX;
    }
    // What both begin and end with does not matter.
    let begin = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum::<usize>();
    let (a, b) = (&a[begin..], &b[begin..]);
    let end =
        a.chars().rev().zip(b.chars().rev()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum::<usize>();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let same = usize::from(a[i - 1] != b[j - 1]);
                let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            }
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, near_names};

    #[test]
    fn swapped_letters_are_one_change() {
        assert_eq!(distance("ab", "ba"), 1);
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

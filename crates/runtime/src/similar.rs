//! Which known name a person most likely meant who typed another one.

/// Most names that are compared, since each costs some time of a network thread.
const MAX_NAMES: usize = 256;
/// Longest name that is compared.
const MAX_BYTES: usize = 64;
/// Characters of a name that may differ, for each character that it has.
const DIFFERENCES: usize = 3;

/// The known name that is nearest to another one; none where all differ in more than a third of it.
///
/// A name that begins as another ends counts as one difference: `loud` is near `louder`.
pub fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    if name.is_empty() || name.len() > MAX_BYTES {
        return None;
    }
    let near = |one: &&str| one.len() <= MAX_BYTES && one.len().abs_diff(name.len()) <= MAX_BYTES / 2;
    let measured = known.take(MAX_NAMES).filter(near).map(|one| (distance(&name, &one.to_lowercase()), one));
    let (differences, nearest) = measured.min()?;
    (differences * DIFFERENCES <= name.chars().count()).then_some(nearest)
}

/// In how many characters two names differ: inserted, left out, replaced, or swapped with the next.
fn distance(one: &str, other: &str) -> usize {
    let begins = |long: &str, short: &str| short.len() >= DIFFERENCES && long.starts_with(short);
    if one != other && (begins(one, other) || begins(other, one)) {
        return 1;
    }
    let [one, other]: [Vec<char>; 2] = [one, other].map(|name| name.chars().collect());
    // Two rows above the one that is filled: a swap looks back over both.
    let mut above: [Vec<usize>; 2] = [Vec::new(), (0..=other.len()).collect()];
    for (at, letter) in one.iter().enumerate() {
        let mut row = vec![at + 1];
        for (to, wanted) in other.iter().enumerate() {
            let mut least = (above[1][to] + usize::from(letter != wanted)).min(above[1][to + 1] + 1).min(row[to] + 1);
            if at > 0 && to > 0 && *letter == other[to - 1] && one[at - 1] == *wanted {
                least = least.min(above[0][to - 1] + 1);
            }
            row.push(least);
        }
        above.swap(0, 1);
        above[1] = row;
    }
    above[1][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_no_distant_one() {
        let known = ["louder", "iris", "resnet50_v2"];
        for (name, meant) in [
            ("loud", Some("louder")),
            ("Louder", Some("louder")),
            ("luoder", Some("louder")),
            ("iriss", Some("iris")),
            ("irsi", Some("iris")),
            ("resnet", Some("resnet50_v2")),
            ("resnet50-v2", Some("resnet50_v2")),
            ("predict", None),
            ("i", None),
            ("", None),
        ] {
            assert_eq!(similar(name, known.into_iter()), meant, "{name}");
        }
        assert_eq!(similar(&"x".repeat(65), known.into_iter()), None);
    }

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert_eq!((distance("äöü", "aöü"), distance("", "abc"), distance("kitten", "sitting")), (1, 3, 3));
    }
}

//! `CUDA_VISIBLE_DEVICES`, read as CUDA reads it.

/// How the UUIDs of whole GPUs begin, and those of parts of GPUs.
const GPU: &str = "GPU-";
pub const MIG: &str = "MIG-";

/// Positions of the GPUs that a text of `CUDA_VISIBLE_DEVICES` makes visible, in its order.
///
/// The text is a list of numbers, or of UUIDs, which may be cut short while they name one GPU alone. It ends at the
/// first entry that names none. A list that names a GPU twice makes none visible.
///
/// Source: CUDA C++ Programming Guide, "CUDA Environment Variables"; PyTorch's `torch.cuda.device_count` for numbers
/// with text behind them and for GPUs that are named twice.
pub fn choose(text: &str, uuids: &[&str]) -> Vec<usize> {
    // The first entry says which kind of list it is; an entry of another kind names no GPU.
    let kind = [GPU, MIG].into_iter().find(|kind| text.trim_start().starts_with(kind));
    let mut chosen = Vec::new();
    for entry in text.split(',').map(str::trim) {
        let named = match kind {
            Some(kind) => with_prefix(entry, kind, uuids),
            None => with_number(entry, uuids.len()),
        };
        let Some(place) = named else { break };
        if chosen.contains(&place) {
            return Vec::new();
        }
        chosen.push(place);
    }
    chosen
}

fn with_prefix(entry: &str, kind: &str, uuids: &[&str]) -> Option<usize> {
    let mut named = uuids.iter().enumerate().filter(|(_, uuid)| uuid.starts_with(entry));
    let (place, _) = named.next().filter(|_| entry.starts_with(kind))?;
    named.next().is_none().then_some(place)
}

/// A number as C's `strtoul` reads it: what follows its digits does not count.
fn with_number(entry: &str, count: usize) -> Option<usize> {
    let digits = entry.strip_prefix('+').unwrap_or(entry);
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok().filter(|&number| number < count)
}

#[cfg(test)]
mod tests {
    use super::choose;

    const UUIDS: [&str; 3] = ["GPU-11aa", "GPU-11bb", "GPU-22cc"];

    #[test]
    fn numbers_choose_and_order() {
        for (text, chosen) in [("0,1,2", vec![0, 1, 2]), ("2,0", vec![2, 0]), (" 1 , 0 ", vec![1, 0]), ("+1", vec![1])]
        {
            assert_eq!(choose(text, &UUIDS), chosen, "{text}");
        }
    }

    #[test]
    fn a_list_ends_at_the_first_entry_that_names_no_gpu() {
        for (text, chosen) in [
            ("", vec![]),
            ("-1", vec![]),
            ("-1,0", vec![]),
            ("0,-1,1", vec![0]),
            ("1,3,0", vec![1]),
            ("0,,1", vec![0]),
            ("0,99999999999999999999,1", vec![0]),
            ("NoDevFiles", vec![]),
            ("2,GPU-11aa", vec![2]),
            ("GPU-22cc,0", vec![2]),
            ("GPU-22cc,GPU-33,GPU-11aa", vec![2]),
            ("MIG-11aa", vec![]),
        ] {
            assert_eq!(choose(text, &UUIDS), chosen, "{text}");
        }
    }

    #[test]
    fn a_uuid_may_be_cut_short_while_it_names_one_gpu() {
        for (text, chosen) in [
            ("GPU-22cc", vec![2]),
            ("GPU-2,GPU-11b", vec![2, 1]),
            ("GPU-11", vec![]),
            ("GPU-22cc, GPU-1", vec![2]),
            ("gpu-22cc", vec![]),
        ] {
            assert_eq!(choose(text, &UUIDS), chosen, "{text}");
        }
    }

    #[test]
    fn a_gpu_named_twice_leaves_none() {
        for text in ["0,0", "1,0,1", "GPU-22cc,GPU-2"] {
            assert_eq!(choose(text, &UUIDS), [], "{text}");
        }
    }

    #[test]
    fn text_behind_a_number_does_not_count() {
        assert_eq!(choose("1gpu2,2ampere", &UUIDS), [1, 2]);
    }

    #[test]
    fn without_gpus_nothing_is_chosen() {
        assert_eq!(choose("0,GPU-11aa", &[]), []);
    }
}

//! A shorter input that fails as well.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::{env, fs};

use super::input::Input;

/// Names the file that holds the input.
const INPUT: &str = "ALIPES_FUZZ_INPUT";

/// Shrinks the input of a file and prints what is left; then the check has the last word.
///
/// # Panics
///
/// If the input fails, as it should; or if there is none.
pub(super) fn file(check: &dyn Fn(&[u8])) {
    let path = env::var_os(INPUT).expect("ALIPES_FUZZ_INPUT names a file");
    let input = fs::read(path).expect("an input");
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    let shortest = shrink(input, |input| catch_unwind(AssertUnwindSafe(|| check(input))).is_err());
    set_hook(hook);
    println!("\n{:?}", Input(shortest.clone()));
    check(&shortest);
}

/// The input without all that can be left out, one piece at a time.
fn shrink(mut input: Vec<u8>, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    if !fails(&input) {
        return input;
    }
    let mut size = input.len().next_power_of_two();
    while size > 0 {
        let mut at = 0;
        while at < input.len() {
            let mut shorter = input.clone();
            shorter.drain(at..(at + size).min(input.len()));
            if fails(&shorter) { input = shorter } else { at += size }
        }
        size /= 2;
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let fails = |input: &[u8]| input.contains(&b'x') && input.contains(&b'y');
        assert_eq!(shrink(b"aaaxbbbbbbbycc".to_vec(), fails), b"xy");
        assert_eq!(shrink(b"fine".to_vec(), fails), b"fine");
    }
}

//! Fuzzers: each is a test that gives a decoder ever new bytes.
//!
//! `cargo test` tries the vectors of former failures, the seeds, and some thousand damaged seeds, which are the same in
//! every run. `make fuzz` builds the same tests with `--cfg fuzzing` and runs them under libFuzzer, which searches for
//! inputs that reach new code, for as long as it is told.
//!
//! A fuzzer stands in a module `fuzz`: that is how `make fuzz` finds it.

mod choices;
mod input;
#[cfg(fuzzing)]
mod libfuzzer;
mod plan;
mod replay;
mod shrink;

use std::env;

pub use choices::{Choices, pieces};
use plan::Plan;

/// What a fuzzer does instead of replaying: `name`, `run` or `shrink`.
const TASK: &str = "ALIPES_FUZZ";

/// A decoder's fuzzer.
pub struct Fuzzer(Plan);

impl Fuzzer {
    /// A fuzzer with inputs to begin with. Its name is that of its vectors, its corpus and its line in the table of
    /// `make fuzz`.
    pub fn new(name: &'static str, seeds: impl IntoIterator<Item = Vec<u8>>) -> Fuzzer {
        Fuzzer(Plan::new(name, seeds.into_iter().collect()))
    }

    /// Adds words of the format.
    #[must_use]
    pub fn words<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Fuzzer {
        self.0.words.extend(words.into_iter().map(str::to_owned));
        self
    }

    /// Lets inputs be so long, in bytes.
    #[must_use]
    pub fn longest(self, longest: usize) -> Fuzzer {
        Fuzzer(Plan { longest, ..self.0 })
    }

    /// Tries so many damaged seeds where nobody searches: fewer, of a decoder that takes long.
    #[must_use]
    pub fn inputs(self, inputs: u32) -> Fuzzer {
        Fuzzer(Plan { inputs, ..self.0 })
    }

    /// Gives the decoder its inputs. `check` panics at one that breaks a promise.
    ///
    /// # Panics
    ///
    /// If `check` does, with the shortest input that was found for it.
    pub fn run(self, check: impl Fn(&[u8]) + 'static) {
        match env::var(TASK).as_deref() {
            Ok("name") => println!("\nfuzzer {}", self.0.name),
            Ok("shrink") => shrink::file(&check),
            #[cfg(fuzzing)]
            Ok("run") => libfuzzer::run(&self.0, check),
            _ => replay::all(&self.0, &check),
        }
    }
}

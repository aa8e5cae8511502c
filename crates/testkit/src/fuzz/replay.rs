//! A fuzzer without libFuzzer: what failed before, the seeds, and damaged seeds.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::input::Input;
use super::plan::Plan;
use crate::corpus::fuzz_vectors;
use crate::mutation::damaged;

/// Attempts to make a failing input shorter.
const SHRINKS: u32 = 20_000;

/// Tries all of them.
pub(super) fn all(plan: &Plan, check: &dyn Fn(&[u8])) {
    let vectors = fuzz_vectors(plan.name);
    let whole = vectors.iter().map(|vector| &vector.bytes).chain(&plan.seeds);
    whole.for_each(|input| shown(plan.name, input, check));
    let corpus: Vec<Vec<u8>> = plan.seeds.iter().cloned().chain(vectors.into_iter().map(|it| it.bytes)).collect();
    let config =
        Config { cases: plan.inputs, max_shrink_iters: SHRINKS, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let longest = plan.longest;
    let inputs = damaged(corpus).prop_map(move |mut bytes| {
        bytes.truncate(longest);
        Input(bytes)
    });
    // Hundreds of inputs fail while one is made shorter; the last is shown below.
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    let outcome = runner.run(&inputs, |input| {
        check(&input.0);
        Ok(())
    });
    set_hook(hook);
    if let Err(failure) = outcome {
        panic!("{}: {failure}", plan.name);
    }
}

/// Checks an input, and shows it where that fails.
fn shown(name: &str, input: &[u8], check: &dyn Fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(input))) {
        eprintln!("{name}: {:?}", Input(input.to_vec()));
        resume_unwind(panic);
    }
}

//! Tests that hold state of the whole process: counters, limits, a library that is opened once.
//!
//! `cargo nextest` gives each test a process; `cargo test` runs the tests of a crate as threads of one. Such a test
//! begins with `alipes_testkit::own_process!()`, which under `cargo test` runs it again in a child process.

use std::env;
use std::process::Command;

/// Set in the child, to the name of the test that it runs.
const CHILD: &str = "ALIPES_TEST_IN_OWN_PROCESS";

/// Ends the calling test early where a child process has run it; in that child, and under nextest, goes on.
#[macro_export]
macro_rules! own_process {
    () => {{
        fn marker() {}
        if !$crate::is_in_own_process(::std::any::type_name_of_val(&marker)) {
            return;
        }
    }};
}

/// Whether this process runs the calling test alone. Where it does not, a child has just run the test and passed.
///
/// `marker` is the path of a function inside the test: it ends in `::marker`, and its first part is the crate.
///
/// # Panics
///
/// If the test fails in the child.
pub fn is_in_own_process(marker: &str) -> bool {
    if env::var_os("NEXTEST_EXECUTION_MODE").is_some_and(|mode| mode == "process-per-test") {
        return true;
    }
    let path = marker.strip_suffix("::marker").expect("a path from own_process!");
    let (_, test) = path.split_once("::").expect("a path inside a crate");
    let test = test.replace("::{{closure}}", "");
    if env::var(CHILD).is_ok_and(|running| running == test) {
        return true;
    }
    let mut child = Command::new(env::current_exe().expect("a test program"));
    child.args([&test, "--exact", "--nocapture", "--include-ignored"]).env(CHILD, &test);
    let output = child.output().expect("a child process");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test} failed in its own process:\n{stdout}{stderr}");
    assert!(stdout.contains("1 passed"), "the child ran no test named {test}:\n{stdout}");
    false
}

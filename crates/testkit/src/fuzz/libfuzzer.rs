//! libFuzzer, which measures what code an input reaches, and makes inputs from those that reached new code.

#![allow(unsafe_code, reason = "libFuzzer is written in C++")]

use std::cell::OnceCell;
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::{CString, c_char, c_int};
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libfuzzer_sys as _;

use super::plan::Plan;
use crate::corpus::fuzz_vectors;

/// The folder of all corpora.
const FOLDER: &str = "ALIPES_FUZZ_FOLDER";

/// How long to search, in seconds.
const SECONDS: &str = "ALIPES_FUZZ_SECONDS";

/// An input that takes longer than so many seconds is a failure: they take microseconds.
const SLOWEST: &str = "-timeout=10";

/// So is one for which the process needs more memory, in MiB, or sets aside more at once.
const MEMORY: [&str; 2] = ["-rss_limit_mb=2048", "-malloc_limit_mb=256"];

type Check = Box<dyn Fn(&[u8])>;

/// What libFuzzer calls with each input.
type Callback = extern "C" fn(data: *const u8, size: usize) -> c_int;

unsafe extern "C" {
    fn LLVMFuzzerRunDriver(argc: *mut c_int, argv: *mut *mut *mut c_char, callback: Callback) -> c_int;
}

thread_local! {
    static CHECK: OnceCell<Check> = const { OnceCell::new() };
}

/// Searches; libFuzzer ends the process with what it has found.
pub(super) fn run(plan: &Plan, check: impl Fn(&[u8]) + 'static) {
    let folder = PathBuf::from(env::var_os(FOLDER).expect("ALIPES_FUZZ_FOLDER names a folder")).join(plan.name);
    let (corpus, crashes, words) = (folder.join("corpus"), folder.join("crashes"), folder.join("words"));
    for made in [&corpus, &crashes] {
        fs::create_dir_all(made).expect("a folder for inputs");
    }
    let vectors = fuzz_vectors(plan.name);
    for seed in vectors.iter().map(|vector| &vector.bytes).chain(&plan.seeds) {
        fs::write(corpus.join(file_name(seed)), seed).expect("a seed");
    }
    let seconds = env::var(SECONDS).expect("ALIPES_FUZZ_SECONDS says how long to search");
    let mut arguments = vec![
        b"fuzz".to_vec(),
        corpus.as_os_str().as_bytes().to_vec(),
        format!("-max_total_time={seconds}").into_bytes(),
        format!("-max_len={}", plan.longest).into_bytes(),
        option("-artifact_prefix=", &crashes.join("")),
        b"-print_final_stats=1".to_vec(),
        b"-reload=0".to_vec(),
        SLOWEST.into(),
    ];
    if !plan.words.is_empty() {
        fs::write(&words, dictionary(&plan.words)).expect("a file of words");
        arguments.push(option("-dict=", &words));
    }
    arguments.extend(MEMORY.map(|limit| limit.as_bytes().to_vec()));
    CHECK.with(|held| held.set(Box::new(check)).ok().expect("one fuzzer runs in a process"));
    drive(arguments);
    panic!("libFuzzer did not begin: it ends the process itself");
}

fn option(name: &str, path: &Path) -> Vec<u8> {
    [name.as_bytes(), path.as_os_str().as_bytes()].concat()
}

/// Names a seed after its content, so that it is written once.
fn file_name(seed: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    format!("seed-{:016x}", hasher.finish())
}

/// Words in libFuzzer's form: a line each, in quotes.
fn dictionary(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let escaped: String = word.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        format!("\"{escaped}\"\n")
    });
    quoted.collect()
}

fn drive(arguments: Vec<Vec<u8>>) {
    let arguments: Vec<CString> =
        arguments.into_iter().map(|argument| CString::new(argument).expect("no zero byte")).collect();
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
    let mut count = c_int::try_from(pointers.len()).expect("a few arguments");
    pointers.push(std::ptr::null_mut());
    let mut list = pointers.as_mut_ptr();
    // SAFETY: a list of so many strings with a null behind it, which outlive the call; libFuzzer only reads them.
    unsafe { LLVMFuzzerRunDriver(&mut count, &mut list, take) };
}

/// A panic in here aborts the process, at which libFuzzer writes the input to the folder of crashes.
extern "C" fn take(data: *const u8, size: usize) -> c_int {
    let input = if size == 0 {
        &[]
    } else {
        // SAFETY: libFuzzer lends so many bytes for the time of the call.
        unsafe { std::slice::from_raw_parts(data, size) }
    };
    CHECK.with(|check| check.get().expect("set before the search")(input));
    0
}

/// libfuzzer-sys refers to this in the entry that its own macro makes, which nobody calls here.
#[unsafe(no_mangle)]
extern "C" fn rust_fuzzer_test_input(_: &[u8]) -> i32 {
    unreachable!("inputs come to `take`")
}

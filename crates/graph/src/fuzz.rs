//! The fuzzer of graphs: what must hold of any body and of any condition.

use alipes_testkit::fuzz::Fuzzer;

use super::{Condition, first_holding, instances_of, is_valid, object_text};

const WORDS: [&str; 20] = [
    "\"predictions\":[",
    "\"instances\":",
    "{\"a\":",
    "\"\\ud83d\\ude00\"",
    "1e400",
    "-0.0",
    "null",
    ".#(",
    "==\"",
    "~true",
    "|@reverse",
    "@flatten:{\"deep\":true}",
    "@dig:a",
    "@group",
    "@join",
    "@fromstr",
    "@tostr",
    "{a,b}",
    "!\"x\"",
    "..",
];

#[test]
fn whatever_a_step_answers_conditions_and_texts_end() {
    let pairs = [
        (r#"{"predictions": [{"label": "dog", "n": 1.50}]}"#, "predictions.#(label==\"dog\")"),
        (r#"[{"a": [1, [2]]}, "x"]"#, "[@this].#(#.a|@flatten)"),
        (r#"{"instances": {"\u00fc": null}}"#, "{instances,\"b\":@this}.b|@keys"),
    ];
    // The condition stands in front, and the first NUL ends it.
    let seeds = pairs.map(|(body, path)| format!("{path}\0{body}").into_bytes());
    Fuzzer::new("graph-bodies", seeds).words(WORDS).run(check);
}

fn check(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
    let (path, body) = (String::from_utf8_lossy(&bytes[..end]), bytes.get(end + 1..).unwrap_or_default());
    let condition = Some(Condition::of(&path));
    let held = first_holding(&[condition], body);
    assert_eq!(held.is_ok(), is_valid(body));
    for text in [object_text(body).ok(), instances_of(body)].into_iter().flatten() {
        assert!(is_valid(&text));
        assert_eq!(object_text(&text).as_ref(), Ok(&text), "it is written as it is read");
    }
}

//! The same tokens as the Python wheel, and one error for each text that cannot be tokenized.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use alipes_spec::{DetokenizerSpec, TokenizerSpec};

use super::detokenizer::Detokenizer;
use super::error::{MAX_TOKENS, TextError};
use super::tokenizer::{TokenRows, Tokenizer};
use super::words::Words;

/// What `vectors/text/record.py` wrote for one text or pair.
#[derive(Deserialize)]
struct Recorded {
    text: String,
    pair: Option<String>,
    ids: Vec<i64>,
    types: Vec<i64>,
    mask: Vec<i64>,
    decoded: String,
}

/// A file that is gone after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("alipes-tokenizer-{name}-{}.json", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const KINDS: [&str; 3] = ["wordpiece", "bytes_bpe", "unigram"];

pub(super) fn file(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/text").join(kind).with_extension("json")
}

fn recorded(kind: &str) -> Vec<Recorded> {
    let text = std::fs::read_to_string(file("expected")).expect("it is part of the crate");
    let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(all[kind].clone()).expect("of this form")
}

/// A tokenizer that does what its file says.
fn plain(path: &Path) -> TokenizerSpec {
    TokenizerSpec {
        file: path.to_string_lossy().into(),
        max_length: None,
        pad_to_max_length: false,
        pad_to_multiple_of: None,
        special_tokens: true,
        max_text_bytes: 256 << 10,
        outputs: Vec::new(),
    }
}

fn tokenizer(kind: &str) -> Tokenizer {
    Tokenizer::of(&plain(&file(kind)), Vec::new()).expect("a tokenizer")
}

fn detokenizer(kind: &str) -> Detokenizer {
    let file = file(kind).to_string_lossy().into();
    Detokenizer::of(&DetokenizerSpec { file, special_tokens: false }).expect("a tokenizer")
}

fn rows(tokenizer: &Tokenizer, texts: &[&str]) -> TokenRows {
    tokenizer.rows(&mut Words::default(), texts.iter().map(|text| (text.as_bytes(), None)))
}

fn failure(tokenizer: &Tokenizer, text: &[u8]) -> TextError {
    let mut found = tokenizer.rows(&mut Words::default(), [(text, None)].into_iter());
    assert_eq!(found.failed.len(), 1);
    found.failed.remove(0).1
}

#[test]
fn every_text_has_the_tokens_of_the_wheel() {
    for kind in KINDS {
        let tokenizer = tokenizer(kind);
        for one in recorded(kind) {
            let pair = one.pair.as_ref().map(String::as_bytes);
            let found = tokenizer.rows(&mut Words::default(), [(one.text.as_bytes(), pair)].into_iter());
            assert_eq!(found.failed, [], "{kind} of {:?}", one.text);
            assert_eq!(
                (found.ids, found.types, found.mask),
                (one.ids, one.types, one.mask),
                "{kind} of {:?}",
                one.text
            );
        }
    }
}

#[test]
fn tokens_become_the_text_of_the_wheel() {
    for kind in KINDS {
        let detokenizer = detokenizer(kind);
        for one in recorded(kind) {
            assert_eq!(detokenizer.text(one.ids.into_iter()).expect("text"), one.decoded, "{kind}");
        }
    }
}

#[test]
fn rows_are_filled_up_to_the_longest() {
    let found = rows(&tokenizer("wordpiece"), &["How", "How do I stop?"]);
    assert_eq!(found.ids.len(), 2 * found.width);
    assert_eq!(found.mask[..found.width].iter().sum::<i64>(), 3, "two marks and a word");
    assert!(found.ids[3..found.width].iter().all(|&id| id == 0));
    assert!(found.mask[found.width..].iter().all(|&one| one == 1));
}

#[test]
fn settings_come_before_the_file() {
    let fixed = TokenizerSpec { max_length: Some(6), pad_to_max_length: true, ..plain(&file("wordpiece")) };
    let padded = TokenizerSpec { pad_to_multiple_of: Some(8), ..fixed };
    let found = rows(&Tokenizer::of(&padded, Vec::new()).expect("a tokenizer"), &["How do I stop a server again?"]);
    assert_eq!((found.width, found.mask.iter().sum::<i64>()), (8, 6));
    let bare = TokenizerSpec { special_tokens: false, ..plain(&file("wordpiece")) };
    assert_eq!(rows(&Tokenizer::of(&bare, Vec::new()).expect("a tokenizer"), &["How"]).width, 1);
}

#[test]
fn a_text_that_cannot_be_tokenized_fails_alone() {
    let short = TokenizerSpec { max_text_bytes: 40, ..plain(&file("wordpiece")) };
    let tokenizer = Tokenizer::of(&short, Vec::new()).expect("a tokenizer");
    let texts: [&[u8]; 3] = [b"How", b"caf\xe9", &[b'a'; 41]];
    let found = tokenizer.rows(&mut Words::default(), texts.into_iter().map(|text| (text, None)));
    let wanted = [(1, TextError::NotUtf8 { at: 3 }), (2, TextError::TooLong { bytes: 41, limit: 40 })];
    assert_eq!(found.failed, wanted);
    assert_eq!(found.mask, [1, 1, 1, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_text_without_a_space_is_bounded() {
    let text = "a".repeat(256 << 10);
    for kind in ["bytes_bpe", "unigram"] {
        let tokenizer = tokenizer(kind);
        let refused = failure(&tokenizer, text.as_bytes());
        assert!(matches!(refused, TextError::TooManyTokens { limit: MAX_TOKENS, .. }), "{kind}: {refused}");
        let longer = failure(&tokenizer, format!("{text}a").as_bytes());
        assert_eq!(longer, TextError::TooLong { bytes: text.len() + 1, limit: text.len() });
    }
}

#[test]
fn a_pattern_that_explodes_ends() {
    let mut document: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file("bytes_bpe")).expect("a file")).expect("JSON");
    document["pre_tokenizer"] = serde_json::json!({
        "type": "Split", "pattern": {"Regex": "(a|a)*b"}, "behavior": "Isolated", "invert": false
    });
    let scratch = Scratch::new("explodes");
    let path = &scratch.0;
    std::fs::write(path, document.to_string()).expect("written");
    let tokenizer = Tokenizer::of(&plain(path), Vec::new()).expect("a tokenizer");
    // Its last letter is there, behind another: else a search would end before it began.
    let text = format!("{}cb", "a".repeat(4000));
    assert_eq!(failure(&tokenizer, text.as_bytes()), TextError::Explodes);
    assert_eq!(rows(&tokenizer, &["ab ab"]).failed, []);
}

#[test]
fn numbers_that_are_no_tokens_are_refused() {
    let detokenizer = detokenizer("wordpiece");
    for id in [-1, 1 << 40, 99_999] {
        let refused = detokenizer.text([2, id].into_iter()).expect_err("no token");
        assert!(matches!(refused, TextError::UnknownToken { id: found, at: 1, .. } if found == id), "{refused}");
    }
}

#[test]
fn files_that_are_no_tokenizers_say_so() {
    let scratch = Scratch::new("damaged");
    let path = &scratch.0;
    let opened = |path: &Path| Tokenizer::of(&plain(path), Vec::new()).err().expect("refused").to_string();
    assert!(opened(path).contains("No such file"));
    let whole = std::fs::read(file("wordpiece")).expect("a file");
    for wrong in [&b"{}"[..], b"", b"\xff\xfe", &whole[..whole.len() / 2]] {
        std::fs::write(path, wrong).expect("written");
        assert!(opened(path).contains("it is no tokenizer that this release reads"), "{}", opened(path));
    }
}

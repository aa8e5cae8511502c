//! The engines of texts make the same tokens as the Python wheel, and one error for each text that cannot be tokenized.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alipes_engine::Engine;
use alipes_spec::{DetokenizerSpec, TokenizerSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::detokenizer::Detokenizer;
use super::engines::{Texts, Tokens};
use super::error::{MAX_TOKENS, MAX_WORKED_BYTES, TextError};
use super::locality::MAX_EVEN_BYTES;
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

/// A file like a recorded one with something else in it.
fn changed(kind: &str, scratch: &Scratch, change: impl FnOnce(&mut Value)) -> TokenizerSpec {
    let text = std::fs::read_to_string(file(kind)).expect("a file");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    change(&mut document);
    std::fs::write(&scratch.0, document.to_string()).expect("written");
    plain(&scratch.0)
}

fn replace(pattern: &str, content: &str) -> Value {
    json!({"type": "Replace", "pattern": {"String": pattern}, "content": content})
}

fn template(single: &[Value], ids: usize) -> Value {
    json!({
        "type": "TemplateProcessing", "single": single,
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": vec![2; ids], "tokens": vec!["[CLS]"; ids]}},
    })
}

#[test]
fn a_file_that_asks_for_more_than_the_limits_is_refused_when_it_is_opened() {
    let scratch = Scratch::new("asks");
    let refused = |change: &dyn Fn(&mut Value)| {
        let spec = changed("wordpiece", &scratch, change);
        Tokenizer::of(&spec, Vec::new()).err().expect("refused").to_string()
    };
    let (text, mark) =
        (json!({"Sequence": {"id": "A", "type_id": 0}}), json!({"SpecialToken": {"id": "[CLS]", "type_id": 0}}));
    let padded = |name: &str, value: Value| {
        let mut padding = json!({
            "strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
            "pad_type_id": 0, "pad_token": "[PAD]",
        });
        padding[name] = value;
        refused(&|file| file["padding"] = padding.clone())
    };
    let wide = "rows would be filled up to 4000000000 tokens, the most is 65536";
    assert_eq!(padded("strategy", json!({"Fixed": 4_000_000_000_u64})), wide);
    assert_eq!(padded("pad_to_multiple_of", json!(4_000_000_000_u64)), wide);
    let framed = |pieces: Vec<Value>, ids: usize| refused(&|file| file["post_processor"] = template(&pieces, ids));
    let many = framed([vec![mark.clone(); 5000], vec![text.clone()]].concat(), 1000);
    assert!(many.ends_with("it has 5000000 special tokens around a text, the most is 4096"), "{many}");
    assert!(framed(vec![text.clone(); 5], 1).ends_with("it has 5 texts in the place of one, the most is 4"));
    let twice = template(&[text.clone(), text.clone(), mark, text], 1);
    let nested = refused(&|file| file["post_processor"] = json!({"type": "Sequence", "processors": [twice, twice]}));
    assert!(nested.ends_with("it has 9 texts in the place of one, the most is 4"), "{nested}");
    let long = refused(&|file| file["normalizer"] = replace("a", &"a".repeat(96)));
    assert!(long.ends_with("it has 96 bytes in the place of what it replaces, the most is 64"), "{long}");
    let parts = refused(&|file| {
        let inner = json!({"type": "Sequence", "normalizers": vec![json!({"type": "Lowercase"}); 33]});
        file["normalizer"] = json!({"type": "Sequence", "normalizers": [inner, inner]});
    });
    assert!(parts.ends_with("it has 66 parts that work one after the other, the most is 64"), "{parts}");
    let words = refused(&|file| file["model"]["max_input_chars_per_word"] = json!(1_u64 << 40));
    assert!(words.ends_with("letters in 'max_input_chars_per_word', the most is 1000"), "{words}");
    let added = refused(&|file| file["added_tokens"] = vec![json!({"content": "x".repeat(1 << 20)}); 17].into());
    assert!(added.ends_with("bytes of added tokens, the most is 16777216"), "{added}");
}

#[test]
fn a_table_that_replaces_a_letter_by_a_page_is_refused() {
    let scratch = Scratch::new("table");
    let table = [&4_u32.to_le_bytes()[..], &[0; 4], b"short\0", &[b'x'; 65], b"\0"].concat();
    let table = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, table);
    let spec = changed("unigram", &scratch, |file| {
        file["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": table});
    });
    let refused = Tokenizer::of(&spec, Vec::new()).err().expect("refused").to_string();
    assert!(refused.ends_with("it has 65 bytes in the place of what it replaces, the most is 64"), "{refused}");
}

#[test]
fn a_text_that_replacements_make_too_long_fails_alone() {
    let scratch = Scratch::new("grows");
    let nested = |scratch: &Scratch| {
        changed("unigram", scratch, |file| {
            file["normalizer"] = json!({"type": "Sequence", "normalizers": vec![replace("a", &"a".repeat(60)); 4]});
        })
    };
    let tokenizer = Tokenizer::of(&nested(&scratch), Vec::new()).expect("a tokenizer");
    let grown = TextError::Grows { limit: MAX_WORKED_BYTES };
    assert_eq!(failure(&tokenizer, b"b a"), grown);
    // What replaces nothing in a text does not count.
    assert_eq!(rows(&tokenizer, &[&"b ".repeat(1000)]).failed, []);
    let pair = tokenizer.rows(&mut Words::default(), [(&b"b"[..], Some(&b"a"[..]))].into_iter());
    assert_eq!(pair.failed, [(0, grown)]);
}

#[test]
fn tokens_whose_text_replacements_make_too_long_are_refused() {
    let scratch = Scratch::new("decodes");
    let spec = changed("unigram", &scratch, |file| {
        file["decoder"] = json!({"type": "Sequence", "decoders": vec![replace("a", &"a".repeat(60)); 4]});
    });
    let detokenizer = Detokenizer::of(&DetokenizerSpec { file: spec.file, special_tokens: true }).expect("a tokenizer");
    assert_eq!(detokenizer.text(vec![5; 40].into_iter()), Err(TextError::Grows { limit: MAX_WORKED_BYTES }));
}

#[test]
fn pieces_of_a_text_that_nobody_gets_are_not_made() {
    let scratch = Scratch::new("pieces");
    let spec = changed("wordpiece", &scratch, |file| {
        file["truncation"] =
            json!({"direction": "Right", "max_length": 402, "strategy": "LongestFirst", "stride": 399});
    });
    let tokenizer = Tokenizer::of(&spec, Vec::new()).expect("a tokenizer");
    assert_eq!(rows(&tokenizer, &[&"how ".repeat(60_000)]).width, 402);
}

#[test]
fn only_tokenizers_of_short_words_are_even() {
    let scratch = Scratch::new("even");
    let is_even = |spec: &TokenizerSpec| Tokenizer::of(spec, Vec::new()).expect("a tokenizer").is_even();
    assert_eq!(KINDS.map(|kind| is_even(&plain(&file(kind)))), [true, false, false]);
    let with = |change: &dyn Fn(&mut Value)| is_even(&changed("wordpiece", &scratch, change));
    assert!(!with(&|file| file["model"]["max_input_chars_per_word"] = json!(101)));
    assert!(!with(&|file| file["normalizer"] = json!({"type": "NFKC"})));
    assert!(with(&|file| file["normalizer"] = Value::Null));
}

#[test]
fn a_network_thread_takes_few_short_texts_of_even_tokenizers_and_no_tokens() {
    let texts = |kind| Texts::new(Arc::new(tokenizer(kind)));
    let even = texts("wordpiece");
    assert!(even.sizes_tell(MAX_EVEN_BYTES) && !even.sizes_tell(MAX_EVEN_BYTES + 1));
    assert!(!texts("unigram").sizes_tell(1) && !texts("bytes_bpe").sizes_tell(1));
    assert!(!Tokens::new(Arc::new(detokenizer("wordpiece"))).sizes_tell(8));
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

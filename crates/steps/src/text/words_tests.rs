//! Texts that are put together from words have the tokens that the crate gives to the whole text.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokenizers::Tokenizer;

use super::super::tests::file;
use super::*;

/// A tokenizer of the usual kind, changed.
fn changed(change: impl FnOnce(&mut Value)) -> Tokenizer {
    let text = std::fs::read_to_string(file("wordpiece")).expect("a file");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    document["padding"] = Value::Null;
    change(&mut document);
    Tokenizer::from_bytes(document.to_string()).expect("a tokenizer")
}

fn truncated(max_length: usize, direction: &str) -> Tokenizer {
    changed(|document| {
        document["truncation"]["max_length"] = json!(max_length);
        document["truncation"]["direction"] = json!(direction);
    })
}

/// Tokenizers of all kinds that are put together from words.
fn local() -> Vec<Tokenizer> {
    let added = json!([
        {"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
         "special": true},
        {"id": 2, "content": "[CLS]", "single_word": false, "lstrip": true, "rstrip": true, "normalized": false,
         "special": true},
        {"id": 3, "content": "[SEP]", "single_word": true, "lstrip": false, "rstrip": true, "normalized": false,
         "special": true},
        {"id": 213, "content": "SerVer", "single_word": false, "lstrip": true, "rstrip": false, "normalized": true,
         "special": false},
        {"id": 214, "content": "How", "single_word": true, "lstrip": false, "rstrip": false, "normalized": true,
         "special": false},
    ]);
    let words = json!({"[UNK]": 0, "how": 1, "a": 2, "server": 3, "?": 4, "do": 5});
    vec![
        changed(|_| {}),
        changed(|document| document["truncation"] = Value::Null),
        changed(|document| document["added_tokens"] = added.clone()),
        changed(|document| document["normalizer"]["clean_text"] = json!(false)),
        changed(|document| document["normalizer"]["lowercase"] = json!(false)),
        changed(|document| {
            document["normalizer"] =
                json!({"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]});
            document["pre_tokenizer"] = json!({"type": "Whitespace"});
            document["post_processor"] = Value::Null;
        }),
        changed(|document| {
            document["normalizer"] = Value::Null;
            document["pre_tokenizer"] = json!({"type": "WhitespaceSplit"});
            document["model"] = json!({"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"});
        }),
        truncated(9, "Right"),
        truncated(9, "Left"),
        truncated(3, "Right"),
    ]
}

/// The tokens and types of a text, put together from words; none where the crate is left to it.
fn assembled(words: &mut Words, tokenizer: &Tokenizer, assembly: &Assembly, text: &str) -> Option<Vec<(u32, u32)>> {
    let frame = &assembly.frame;
    let tokens = words.tokens(tokenizer, assembly, text)?;
    let own = frame.cut(tokens).iter().map(|&id| (id, frame.kind));
    Some(frame.before.iter().copied().chain(own).chain(frame.after.iter().copied()).collect())
}

fn whole(tokenizer: &Tokenizer, text: &str, special_tokens: bool) -> Vec<(u32, u32)> {
    let encoding = tokenizer.encode(text, special_tokens).expect("tokens");
    assert!(encoding.get_attention_mask().iter().all(|&one| one == 1));
    encoding.get_ids().iter().copied().zip(encoding.get_type_ids().iter().copied()).collect()
}

/// What sentences are made of, and what could tell a word from its place.
fn any_piece() -> impl Strategy<Value = String> {
    let usual =
        ["how", "How", "do", "I", "stop", "a", "server", "SERVER?", "it's", "[CLS]", "x[SEP]y", "[ CLS ]", "##er"];
    let odd =
        ["\u{b}", "a\u{c}b", "\0", "\u{1b}[0m", "serv\u{1}er", "\u{7f}", "[C\u{2}LS]", "\u{1c}", "\r\n", "  ", "\t"];
    prop_oneof![
        6 => proptest::sample::select(usual.to_vec()).prop_map(str::to_owned),
        2 => proptest::sample::select(odd.to_vec()).prop_map(str::to_owned),
        2 => "[ -~]{0,12}",
        1 => "[\\x00-\\x7f]{0,6}",
        1 => (90usize..130).prop_map(|length| "x".repeat(length)),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    (vec(any_piece(), 0..14), prop_oneof![Just(" "), Just(""), Just("\n"), Just("\t \r")])
        .prop_map(|(pieces, between)| pieces.join(between))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts_have_the_same_tokens_word_by_word(texts in vec(any_text(), 1..12), special_tokens: bool) {
        for tokenizer in local() {
            let assembly = Assembly::of(&tokenizer, special_tokens).expect("it treats words by themselves");
            let mut words = Words::default();
            // Twice: what was learned from the first is used in the second.
            for text in texts.iter().chain(&texts) {
                if let Some(found) = assembled(&mut words, &tokenizer, &assembly, text) {
                    prop_assert_eq!(found, whole(&tokenizer, text, special_tokens), "{:?}", text);
                }
            }
        }
    }
}

#[test]
fn truncation_is_the_same_at_every_length() {
    let text = "How do I stop a server? How can I start it again, please?";
    for direction in ["Right", "Left"] {
        for max_length in 3..40 {
            let tokenizer = truncated(max_length, direction);
            let Some(assembly) = Assembly::of(&tokenizer, true) else { panic!("{max_length} {direction}") };
            let mut words = Words::default();
            let mut assembled_any = false;
            for end in (0..=text.len()).chain(0..=text.len()) {
                let expected = whole(&tokenizer, &text[..end], true);
                let found = assembled(&mut words, &tokenizer, &assembly, &text[..end]);
                assembled_any |= found.is_some();
                assert_eq!(found.unwrap_or_else(|| expected.clone()), expected, "{max_length} {direction} {end}");
            }
            assert!(assembled_any, "{max_length} {direction}");
        }
    }
}

#[test]
fn sentences_are_put_together_once_their_words_are_known() {
    let tokenizer = changed(|_| {});
    let assembly = Assembly::of(&tokenizer, true).expect("it treats words by themselves");
    let mut words = Words::default();
    let text = "how do I stop a server";
    assert!(words.tokens(&tokenizer, &assembly, text).is_some());
    assert_eq!(words.known.len(), 6);
    assert!(words.tokens(&tokenizer, &assembly, "a server stop do I how").is_some());
    assert_eq!(words.known.len(), 6, "nothing was new");
}

#[test]
fn what_is_no_plain_sentence_is_left_to_the_crate() {
    let tokenizer = changed(|_| {});
    let assembly = Assembly::of(&tokenizer, true).expect("it treats words by themselves");
    let mut words = Words::default();
    let many = (0..=MAX_NEW_WORDS).map(|number| format!("w{number} ")).collect::<String>();
    let (long_word, long_text) = ("x".repeat(MAX_WORD_BYTES + 1), "how ".repeat(MAX_TEXT_BYTES / 4 + 1));
    for text in ["où est", &many, &long_word, &long_text] {
        assert!(words.tokens(&tokenizer, &assembly, text).is_none(), "{text:?}");
    }
    // What was learned before the text was given up is known.
    assert!(words.tokens(&tokenizer, &assembly, &many).is_some());
}

#[test]
fn words_are_forgotten_when_there_are_too_many() {
    let tokenizer = changed(|_| {});
    let assembly = Assembly::of(&tokenizer, true).expect("it treats words by themselves");
    let mut words = Words::default();
    for number in 0..MAX_WORDS {
        words.known.insert(format!("word{number}").into(), 0..0);
    }
    words.tokens = vec![7; 10];
    assert_eq!(assembled(&mut words, &tokenizer, &assembly, "how a"), Some(whole(&tokenizer, "how a", true)));
    assert_eq!((words.known.len(), words.text.len()), (2, words.tokens.len()));
}

#[test]
fn tokenizers_that_look_beyond_a_word_are_never_split() {
    let with_blank = json!([{"id": 2, "content": "New York", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": false}]);
    let accented = json!([{"id": 2, "content": "é", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": true, "special": false}]);
    let changes: [(&str, Value); 7] = [
        ("added_tokens", with_blank),
        ("added_tokens", accented),
        ("normalizer", json!({"type": "Replace", "pattern": {"String": " "}, "content": "_"})),
        ("normalizer", json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"}]})),
        ("pre_tokenizer", Value::Null),
        (
            "pre_tokenizer",
            json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}),
        ),
        (
            "pre_tokenizer",
            json!({"type": "Split", "pattern": {"Regex": "(a|a)*b"}, "behavior": "Isolated", "invert": false}),
        ),
    ];
    for (part, value) in changes {
        let tokenizer = changed(|document| document[part] = value.clone());
        assert!(Assembly::of(&tokenizer, true).is_none(), "{part}: {value}");
    }
    for kind in ["bytes_bpe", "unigram"] {
        let tokenizer = Tokenizer::from_file(file(kind)).expect("a tokenizer");
        assert!(Assembly::of(&tokenizer, true).is_none(), "{kind}");
    }
}

#[test]
fn a_limit_below_the_special_tokens_has_no_frame() {
    // The crate fails on every text then.
    assert!(Assembly::of(&truncated(1, "Right"), true).is_none());
    // Nor has what is only for pairs.
    let only_second = changed(|document| document["truncation"]["strategy"] = json!("OnlySecond"));
    assert!(Assembly::of(&only_second, true).is_none());
}

#[test]
fn a_word_without_a_token_fails_as_the_whole_text_does() {
    let tokenizer = changed(|document| document["model"]["unk_token"] = json!("[NONE]"));
    let assembly = Assembly::of(&tokenizer, true).expect("it treats words by themselves");
    let mut words = Words::default();
    assert!(words.tokens(&tokenizer, &assembly, "how \u{7f}~~ a").is_none());
    assert!(tokenizer.encode("how ~~ a", true).is_err());
}

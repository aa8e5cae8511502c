//! The caller's trace context, from and to headers. Source: W3C Trace Context.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use alipes_protocol::limits::TRACESTATE_MAX_BYTES;
use alipes_protocol::trace::Context;
use http::HeaderMap;

/// The trace context in the headers of a request; none where it is absent or malformed.
pub fn of(headers: &HeaderMap) -> Option<Context> {
    let (trace_id, parent) = parse(headers.get("traceparent")?.to_str().ok()?)?;
    let state = headers.get("tracestate").and_then(|state| state.to_str().ok());
    let state = state.filter(|state| state.len() <= TRACESTATE_MAX_BYTES).unwrap_or_default().to_owned();
    Some(Context { trace_id, parent_span: Some(parent), state })
}

/// Trace and span of a `traceparent`: `00-<32 digits>-<16 digits>-<2 digits>`; later versions may append more.
fn parse(text: &str) -> Option<(u128, u64)> {
    let (version, rest) = text.trim().split_at_checked(2)?;
    let rest = rest.strip_prefix('-')?;
    let (trace, rest) = rest.split_at_checked(32)?;
    let (span, rest) = rest.strip_prefix('-')?.split_at_checked(16)?;
    let (flags, more) = rest.strip_prefix('-')?.split_at_checked(2)?;
    let lower_hex = |digits: &str| digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if ![version, trace, span, flags].into_iter().all(lower_hex) || version == "ff" {
        return None;
    }
    let ends = if version == "00" { more.is_empty() } else { more.is_empty() || more.starts_with('-') };
    let trace = u128::from_str_radix(trace, 16).ok()?;
    let span = u64::from_str_radix(span, 16).ok()?;
    (ends && trace != 0 && span != 0).then_some((trace, span))
}

/// The headers that continue the trace in requests to other services, as a JSON object. Source: Triton's Python backend
/// gives it to models in this form.
pub fn to_json(context: Option<Context>) -> String {
    let Some(Context { trace_id, parent_span: Some(span), state }) = context else { return "{}".to_owned() };
    let mut headers = serde_json::Map::new();
    headers.insert("traceparent".to_owned(), format!("00-{trace_id:032x}-{span:016x}-01").into());
    if !state.is_empty() {
        headers.insert("tracestate".to_owned(), state.into());
    }
    serde_json::Value::Object(headers).to_string()
}

/// The context of a new trace.
pub fn new() -> Context {
    let trace_id = u128::from(new_span()) << 64 | u128::from(new_span());
    Context { trace_id, parent_span: None, state: String::new() }
}

/// A unique number for a span: the hash of a counter under random keys.
pub fn new_span() -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    KEYS.hash_one(COUNT.fetch_add(1, Ordering::Relaxed)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn headers(parent: &str, state: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", parent.parse().unwrap());
        headers.insert("tracestate", state.parse().unwrap());
        headers
    }

    #[test]
    fn a_sound_header_is_read_and_forwarded() {
        let context = of(&headers(SOUND, "vendor=x")).unwrap();
        assert_eq!(context.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!((context.parent_span, context.state.as_str()), (Some(0xb7ad_6b71_6920_3331), "vendor=x"));
        let json = format!(r#"{{"traceparent":"{SOUND}","tracestate":"vendor=x"}}"#);
        assert_eq!(to_json(Some(context)), json);
        assert_eq!(to_json(None), "{}");
    }

    #[test]
    fn a_later_version_may_say_more() {
        assert!(of(&headers(&SOUND.replacen("00", "cc", 1), "")).is_some());
        assert!(of(&headers(&format!("cc{}-more", &SOUND[2..]), "")).is_some());
    }

    #[test]
    fn anything_else_is_no_context() {
        let zeros = "0".repeat(32);
        for text in [
            "",
            "00",
            &SOUND[..54],
            &format!("{SOUND}-more"),
            &format!("{SOUND}x"),
            &SOUND.to_uppercase(),
            &SOUND.replacen("00", "ff", 1),
            &SOUND.replacen("0af7651916cd43dd8448eb211c80319c", &zeros, 1),
            &SOUND.replacen("b7ad6b7169203331", "0000000000000000", 1),
            &SOUND.replacen("b7ad6b7169203331", "+7ad6b7169203331", 1),
        ] {
            assert_eq!(of(&headers(text, "")), None, "{text}");
        }
        assert_eq!(of(&HeaderMap::new()), None);
        assert!(of(&headers(SOUND, &"x".repeat(TRACESTATE_MAX_BYTES + 1))).unwrap().state.is_empty());
    }

    #[test]
    fn numbers_differ() {
        let numbers: std::collections::HashSet<u64> = (0..1000).map(|_| new_span()).collect();
        assert_eq!(numbers.len(), 1000);
    }
}

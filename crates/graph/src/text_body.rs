//! What a graph does with bodies of JSON.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::condition::Condition;
use crate::json::{is_valid, quoted};
use crate::run::NoJson;

/// The number of the first condition that holds for a body.
///
/// # Errors
///
/// The body is no JSON.
pub fn first_holding(conditions: &[Option<Condition>], body: &[u8]) -> Result<Option<usize>, NoJson> {
    if !is_valid(body) {
        return Err(NoJson);
    }
    let holds = |condition: &Option<Condition>| condition.as_ref().is_some_and(|condition| condition.exists(body));
    Ok(conditions.iter().position(holds))
}

/// An object of JSON texts, in the order of their keys; of equal keys the last counts.
pub fn merged(parts: Vec<(&str, Bytes)>) -> Bytes {
    let sorted: BTreeMap<&str, Bytes> = parts.into_iter().collect();
    let mut text = vec![b'{'];
    for (key, body) in sorted {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(quoted(key).as_bytes());
        text.push(b':');
        text.extend_from_slice(&body);
    }
    text.push(b'}');
    text.into()
}

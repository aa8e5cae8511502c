//! When a step is called: paths of gjson, of which there has to be something in a body.
//!
//! The paths of conditions come from the operator of the graph, the bodies from anyone. Source: gjson v1.18, which
//! KServe's router uses.

mod compare;
mod find;
mod modifiers;
mod parts;
mod subselectors;
mod value;
mod wildcard;

use crate::json::is_valid;

/// A path of gjson.
#[derive(Clone, Debug)]
pub struct Condition(Vec<u8>);

impl Condition {
    /// Reads a path. gjson refuses none: what it cannot read is never there.
    pub fn of(path: &str) -> Condition {
        Condition(path.as_bytes().to_vec())
    }

    /// Whether a body has something at the path; a body that is no JSON has nothing.
    pub fn holds(&self, body: &[u8]) -> bool {
        is_valid(body) && self.exists(body)
    }

    /// The same of a body that is known to be JSON.
    pub fn exists(&self, body: &[u8]) -> bool {
        find::get(body, &self.0, 0).is_some()
    }
}

#[cfg(test)]
mod tests;

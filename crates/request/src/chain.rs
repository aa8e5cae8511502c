//! The chain of models that wait for a request: those whose calls led to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that no other model version of this process has, or ever had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionId(u64);

impl VersionId {
    /// The next number.
    pub fn next() -> VersionId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        VersionId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A model version that waits for the answer to its call, and the call that it answers itself.
#[derive(Clone, Debug)]
pub struct Chain {
    model: VersionId,
    name: Arc<str>,
    caller: Option<Arc<Chain>>,
}

impl Chain {
    /// A model that calls while it executes a request which itself came from `caller`.
    pub fn new(model: VersionId, name: &Arc<str>, caller: Option<Arc<Chain>>) -> Arc<Chain> {
        Arc::new(Chain { model, name: Arc::clone(name), caller })
    }

    /// The names from the first caller to the last, if the model is one of them: its instances may all be waiting for
    /// this very call.
    pub fn cycle(&self, model: VersionId, name: &str) -> Option<String> {
        let mut names = vec![name];
        let mut found = false;
        let mut link = Some(self);
        while let Some(chain) = link {
            names.push(&chain.name);
            found |= chain.model == model;
            link = chain.caller.as_deref();
        }
        names.reverse();
        found.then(|| names.join(" -> "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_the_same_name_is_another_model() {
        let (name, one, other) = (Arc::from("a"), VersionId::next(), VersionId::next());
        let chain = Chain::new(one, &name, None);
        assert_eq!(chain.cycle(one, "a").as_deref(), Some("a -> a"));
        assert_eq!(chain.cycle(other, "a"), None);
    }
}

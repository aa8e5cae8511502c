//! The chain of models that wait for a request: those whose calls led to it.

use std::sync::Arc;

/// What waits for the answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The instance that called.
    pub instance: u64,
    /// The request that called, where it outlives its execution: the instance goes on then. Else 0.
    pub request: u64,
}

/// The number of a call that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitId(pub u64);

/// A model that waits for the answer to its call, and the call that it answers itself.
#[derive(Clone, Debug)]
pub struct Chain {
    name: Arc<str>,
    caller: Option<Arc<Chain>>,
    /// Who waits; none where nobody knows for which request the model calls.
    pub holder: Option<Holder>,
    /// The calls that its holder answers.
    pub executes: Vec<WaitId>,
    /// This call, where somebody may have to wait for it in vain.
    pub wait: Option<WaitId>,
}

impl Chain {
    /// A model that calls for a request which itself came from `caller`.
    pub fn new(
        name: &Arc<str>,
        caller: Option<Arc<Chain>>,
        holder: Option<Holder>,
        executes: Vec<WaitId>,
    ) -> Arc<Chain> {
        Arc::new(Chain { name: Arc::clone(name), caller, holder, executes, wait: None })
    }

    /// This chain with the number of its call, where somebody may have to wait for this call in vain.
    pub fn waiting(self: Arc<Chain>, wait: Option<WaitId>) -> Arc<Chain> {
        match wait {
            None => self,
            Some(_) => Arc::new(Chain { wait, ..Arc::unwrap_or_clone(self) }),
        }
    }

    /// The names from the first caller to the model that is called.
    pub fn path(&self, called: &str) -> String {
        let mut names = vec![called];
        let mut link = Some(self);
        while let Some(chain) = link {
            names.push(&chain.name);
            link = chain.caller.as_deref();
        }
        names.reverse();
        names.join(" -> ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_every_caller() {
        let [a, b]: [Arc<str>; 2] = ["a", "b"].map(Arc::from);
        let first = Chain::new(&a, None, None, Vec::new());
        let second = Chain::new(&b, Some(first), None, Vec::new()).waiting(Some(WaitId(7)));
        assert_eq!((second.path("a").as_str(), second.wait), ("a -> b -> a", Some(WaitId(7))));
    }
}

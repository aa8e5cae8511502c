//! Which models wait for a request: those whose calls led to it.

use std::sync::{Arc, Weak};

use crate::runtime::model::ModelVersion;

/// A model version that waits for the answer to its call, and whom it owes an answer itself.
#[derive(Clone, Debug)]
pub struct Chain {
    model: Weak<ModelVersion>,
    name: String,
    caller: Option<Arc<Chain>>,
}

impl Chain {
    /// A model that calls while it executes a request which itself came from `caller`.
    pub fn new(model: &Arc<ModelVersion>, caller: Option<Arc<Chain>>) -> Arc<Chain> {
        Arc::new(Chain { model: Arc::downgrade(model), name: model.name.to_string(), caller })
    }

    /// The names from the first caller to the last, if the model is one of them: its instances may all be waiting for
    /// this very call.
    pub fn cycle(self: &Arc<Self>, model: &Arc<ModelVersion>) -> Option<String> {
        let mut names = vec![model.name.as_ref()];
        let mut found = false;
        let mut link = Some(self);
        while let Some(chain) = link {
            names.push(&chain.name);
            found |= std::ptr::eq(chain.model.as_ptr(), Arc::as_ptr(model));
            link = chain.caller.as_ref();
        }
        names.reverse();
        found.then(|| names.join(" -> "))
    }
}

//! The repository index. Requests to load and unload are the context's.

use alipes_protocol::limits::VERSIONS_AT_ONCE;
use alipes_runtime::registry::IndexEntry;

use super::Service;

/// State of a version that answers.
pub(super) const READY: &str = "READY";

/// State of one that is loading.
pub(super) const LOADING: &str = "LOADING";

/// State of one that does not answer.
pub(super) const UNAVAILABLE: &str = "UNAVAILABLE";

impl Service {
    /// Whether the index is so long that a network thread would be long about it.
    pub fn has_long_index(&self) -> bool {
        self.registry.index().len() > VERSIONS_AT_ONCE
    }

    /// The repository index, in which a graph is the last.
    pub fn repository_index(&self, ready_only: bool) -> Vec<IndexEntry> {
        let index = self.registry.index();
        let entries = index.iter().map(|entry| self.as_it_is(entry)).chain(self.graph_entry());
        entries.filter(|entry| !ready_only || entry.state == READY).collect()
    }

    /// The control plane knows what was loaded; whether its workers are up is known here.
    fn as_it_is(&self, entry: &IndexEntry) -> IndexEntry {
        let mut entry = entry.clone();
        if entry.state == READY
            && let Ok(model) = self.lookup(&entry.name, &entry.version)
            && !model.is_ready()
        {
            entry.state = UNAVAILABLE.to_owned();
            entry.reason = "its worker processes are being started again".to_owned();
        }
        entry
    }
}

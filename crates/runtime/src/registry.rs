//! What is ready now: one map, swapped as a whole, so that a request sees either the old state or the new one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alipes_protocol::{Code, InferError};
use arc_swap::ArcSwap;
use serde::Deserialize;
use smallvec::SmallVec;

use crate::model::ModelVersion;
use crate::similar::similar;

/// Versions that a model remembers of those that it served once, the highest.
const MAX_GONE_VERSIONS: usize = 256;

/// Most bytes of the reason of a failed load that an error repeats.
const MAX_REASON_BYTES: usize = 400;

type Versions = BTreeMap<i64, Arc<ModelVersion>>;

/// What is served under a name: one model, or, where names are unique in a repository alone, one in each namespace.
#[derive(Clone, Default)]
pub struct Served {
    spaces: SmallVec<[Space; 1]>,
}

/// A model in its namespace.
#[derive(Clone)]
struct Space {
    namespace: Arc<str>,
    versions: Versions,
    /// The versions that served once and do no longer.
    gone: BTreeSet<i64>,
}

impl Served {
    /// All versions, lowest first, of one namespace after the other.
    pub fn versions(&self) -> impl Iterator<Item = &Arc<ModelVersion>> {
        self.spaces.iter().flat_map(|space| space.versions.values())
    }

    /// The one model that serves under the name.
    fn only(&self, name: &str) -> Result<&Space, InferError> {
        match &self.spaces[..] {
            [only] => Ok(only),
            several => one_of(several, name),
        }
    }

    fn put(&mut self, namespace: &str, versions: Versions) {
        let Some(space) = self.spaces.iter_mut().find(|space| *space.namespace == *namespace) else {
            self.spaces.push(Space { namespace: namespace.into(), versions, gone: BTreeSet::new() });
            return;
        };
        let before = mem::replace(&mut space.versions, versions);
        space.gone.extend(before.into_keys());
        space.gone.retain(|version| !space.versions.contains_key(version));
        while space.gone.len() > MAX_GONE_VERSIONS {
            space.gone.pop_first();
        }
    }
}

/// The model that serves, where another namespace has one of the same name that does not. Source: Triton's text.
fn one_of<'a>(spaces: &'a [Space], name: &str) -> Result<&'a Space, InferError> {
    let mut serving = spaces.iter().filter(|space| !space.versions.is_empty());
    match (serving.next(), serving.count()) {
        (Some(only), 0) => Ok(only),
        (Some(_), others) => Err(InferError::invalid(format!(
            "There are {} identifiers of model '{name}' in global map, model namespace must be provided to resolve \
             ambiguity.",
            others + 1
        ))),
        (None, _) => Err(no_version(name)),
    }
}

/// A line of the repository index.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexEntry {
    /// Name of the model.
    pub name: String,
    /// Its version; empty where none was ever touched.
    pub version: String,
    /// READY, UNAVAILABLE, LOADING or UNLOADING; empty where nothing is known.
    pub state: String,
    /// Why it is not ready.
    pub reason: String,
}

/// Models, index and readiness, as the control plane last published them.
#[derive(Default)]
pub struct Registry {
    models: ArcSwap<HashMap<String, Served>>,
    index: ArcSwap<Vec<IndexEntry>>,
    ready: AtomicBool,
    /// A version was published once that takes requests of the protocols as calls.
    whole: AtomicBool,
    /// Errors name no other models and no reasons: a client may lack the right to read the index.
    concealed: AtomicBool,
}

impl Registry {
    /// Serves these versions, and no others, under the name. None takes the model out of service; its name stays known.
    ///
    /// Requests that have found an old version keep it until they are answered.
    ///
    /// The namespace is empty, unless names are unique in a repository alone.
    pub fn publish(&self, name: &str, namespace: &str, versions: Vec<Arc<ModelVersion>>) {
        if versions.iter().any(|version| version.is_whole()) {
            self.whole.store(true, Ordering::Release);
        }
        let versions: Versions = versions.into_iter().map(|version| (version.spec.version, version)).collect();
        self.models.rcu(|models| {
            let mut models = HashMap::clone(models);
            models.entry(name.to_owned()).or_default().put(namespace, versions.clone());
            models
        });
    }

    /// Makes a name unknown again, in its namespace.
    pub fn forget(&self, name: &str, namespace: &str) {
        self.models.rcu(|models| {
            let mut models = HashMap::clone(models);
            if let Some(served) = models.get_mut(name) {
                served.spaces.retain(|space| *space.namespace != *namespace);
                if served.spaces.is_empty() {
                    models.remove(name);
                }
            }
            models
        });
    }

    /// Publishes the repository index and whether the server is ready.
    pub fn set_index(&self, index: Vec<IndexEntry>, ready: bool) {
        self.index.store(Arc::new(index));
        self.ready.store(ready, Ordering::Release);
    }

    /// Lets errors name no other models and no reasons from now on.
    pub fn conceal(&self) {
        self.concealed.store(true, Ordering::Release);
    }

    /// Whether errors name no other models and no reasons.
    pub fn is_concealed(&self) -> bool {
        self.concealed.load(Ordering::Acquire)
    }

    /// Whether a model takes requests of the protocols as calls, or did: where none ever did, nobody looks for one.
    pub fn takes_whole(&self) -> bool {
        self.whole.load(Ordering::Acquire)
    }

    /// The repository index.
    pub fn index(&self) -> Arc<Vec<IndexEntry>> {
        self.index.load_full()
    }

    /// Whether the server is ready.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Every model, by name.
    pub fn models(&self) -> Arc<HashMap<String, Served>> {
        self.models.load_full()
    }

    /// Whether every version that is served can answer, and says so where its model has a say in it.
    pub async fn all_ready(&self) -> bool {
        let models = self.models();
        let versions = || models.values().flat_map(Served::versions);
        if !versions().all(|version| version.is_ready()) {
            return false;
        }
        // All are asked before the first answer is waited for.
        let answers: Vec<_> = versions().filter_map(|version| version.ask_ready()).collect();
        for answer in answers {
            if !answer.await {
                return false;
            }
        }
        true
    }

    /// The version of a model that a caller asked for; an empty version asks for the highest.
    ///
    /// # Errors
    ///
    /// `NotFound` for an unknown name or version, `Unavailable` for a version that is known and does not serve,
    /// `InvalidArgument` for a version that is no number, and for a name that several namespaces serve.
    pub fn find(&self, name: &str, version: &str) -> Result<Arc<ModelVersion>, InferError> {
        let number = if version.is_empty() { None } else { Some(version_number(version)?) };
        let models = self.models.load();
        let found = match models.get(name) {
            Some(served) => served.only(name).and_then(|space| self.version_of(space, name, number)),
            None => Err(self.absent(name, number)),
        };
        found.map_err(|error| self.with_reason(name, number, error))
    }

    /// The error for a model that does not answer, with the reason behind Triton's text.
    #[cold]
    fn with_reason(&self, name: &str, number: Option<i64>, error: InferError) -> InferError {
        match self.reason(name, number) {
            Some(reason) if matches!(error.code, Code::NotFound | Code::Unavailable) => {
                InferError { message: format!("{}; {reason}", error.message), ..error }
            }
            _ => error,
        }
    }

    /// Why a model does not answer, or a version of it, and what to do; none where nothing is known, or errors reveal
    /// nothing.
    pub fn reason(&self, name: &str, number: Option<i64>) -> Option<String> {
        if self.is_concealed() {
            return None;
        }
        let index = self.index.load();
        let mut entries = index.iter().filter(|entry| entry.name == name).peekable();
        if entries.peek().is_none() {
            let nearest = similar(name, index.iter().map(|entry| entry.name.as_str()))?;
            return Some(format!("is '{nearest}' meant?"));
        }
        let wanted = number.map(|number| number.to_string());
        let is_wanted = |entry: &&IndexEntry| wanted.as_ref().is_none_or(|wanted| entry.version == *wanted);
        entries.find(|entry| entry.state != "READY" && is_wanted(entry)).map(reason_of)
    }

    /// The highest version of a model, where that has an endpoint of its own.
    pub fn endpoint(&self, name: &str) -> Option<Arc<ModelVersion>> {
        let models = self.models.load();
        let served = models.get(name)?.only(name).ok()?;
        served.versions.values().next_back().filter(|version| version.has_path()).cloned()
    }

    /// A version of a model for one of the same namespace, where there is one; the highest where none is named.
    ///
    /// # Errors
    ///
    /// As for `find`.
    pub fn find_beside(
        &self,
        namespace: &str,
        name: &str,
        number: Option<i64>,
    ) -> Result<Arc<ModelVersion>, InferError> {
        let models = self.models.load();
        let Some(served) = models.get(name) else { return Err(self.absent(name, number)) };
        let beside = served.spaces.iter().find(|space| *space.namespace == *namespace && !space.versions.is_empty());
        match beside {
            Some(space) => self.version_of(space, name, number),
            None => self.version_of(served.only(name)?, name, number),
        }
    }

    fn version_of(&self, space: &Space, name: &str, number: Option<i64>) -> Result<Arc<ModelVersion>, InferError> {
        let found = match number {
            None => space.versions.values().next_back().ok_or_else(|| no_version(name)),
            Some(number) => space.versions.get(&number).ok_or_else(|| {
                let known = space.gone.contains(&number) || self.is_listed(name, Some(number));
                if known { not_ready(name, number) } else { no_such_version(name, number) }
            }),
        };
        found.map(Arc::clone)
    }

    /// The error for a model of which nothing has served yet: one that loads is known by its versions in the index.
    fn absent(&self, name: &str, number: Option<i64>) -> InferError {
        match number {
            Some(number) if self.is_listed(name, Some(number)) => not_ready(name, number),
            _ if !self.is_listed(name, None) => unknown(format!("'{name}' is not found")),
            Some(number) => no_such_version(name, number),
            None => no_version(name),
        }
    }

    /// Whether the index has a version of a model, or any: it is loading, has failed or was unloaded.
    fn is_listed(&self, name: &str, number: Option<i64>) -> bool {
        let wanted = number.map(|number| number.to_string());
        let is_wanted = |version: &str| wanted.as_ref().map_or(!version.is_empty(), |wanted| wanted == version);
        self.index.load().iter().any(|entry| entry.name == name && is_wanted(&entry.version))
    }
}

/// Why a version is not ready, and what to do.
fn reason_of(entry: &IndexEntry) -> String {
    let IndexEntry { name, version, state, reason } = entry;
    let load = format!("POST /v2/repository/models/{name}/load loads it");
    match (state.as_str(), reason.trim()) {
        ("", _) => format!("'{name}' is in the repository and not loaded: {load}"),
        ("LOADING", _) => format!("'{name}' is loading: GET /v2/models/{name}/ready answers 200 once it serves"),
        (_, "unloaded") => format!("'{name}' was unloaded: {load}"),
        (_, "") => format!("'{name}' is not ready: the server's log says more"),
        (_, reason) if version.is_empty() => format!("'{name}' did not load: {}", start_of(reason)),
        (_, reason) => format!("version {version} of '{name}' did not load: {}", start_of(reason)),
    }
}

/// The first line of a reason, as far as an error repeats it.
fn start_of(reason: &str) -> &str {
    let line = reason.lines().next().unwrap_or_default();
    let end = line.char_indices().map(|(at, _)| at).find(|at| *at > MAX_REASON_BYTES);
    &line[..end.unwrap_or(line.len())]
}

fn not_ready(name: &str, version: i64) -> InferError {
    let text = format!("Request for unknown model: '{name}' version {version} is not at ready state");
    InferError::new(Code::Unavailable, text)
}

fn no_such_version(name: &str, version: i64) -> InferError {
    unknown(format!("'{name}' version {version} is not found"))
}

fn no_version(name: &str) -> InferError {
    unknown(format!("'{name}' has no available versions"))
}

fn unknown(what: String) -> InferError {
    InferError::new(Code::NotFound, format!("Request for unknown model: {what}"))
}

/// The number of a version from the text in a request, as C's `strtol` reads it: what follows the digits is passed
/// over.
///
/// # Errors
///
/// `InvalidArgument` for a text without a number, one beyond 64 bits or below zero. There may be no version 0, but it
/// is a number.
pub fn version_number(text: &str) -> Result<i64, InferError> {
    const SPACE: [char; 6] = [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'];
    let begun = text.trim_start_matches(SPACE);
    let sign = usize::from(begun.starts_with(['+', '-']));
    let digits = begun[sign..].bytes().take_while(u8::is_ascii_digit).count();
    match begun[..sign + digits].parse() {
        Ok(number) if number >= 0 => Ok(number),
        Ok(_) => Err(InferError::invalid(format!(
            "invalid model version specified '{text}' , version should be an integral value > 0"
        ))),
        Err(_) => Err(InferError::invalid(format!(
            "failed to get model version from specified version string '{text}' (details: stol), \
             version should be an integral value > 0"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(state: &str, reason: &str) -> Option<String> {
        let registry = Registry::default();
        let [name, version, state, reason] = ["louder", "1", state, reason].map(str::to_owned);
        registry.set_index(vec![IndexEntry { name, version, state, reason }], true);
        registry.reason("louder", None)
    }

    #[test]
    fn the_error_of_a_model_that_does_not_answer_says_why() {
        for (state, why, text) in [
            ("UNAVAILABLE", "no file\nat all", "version 1 of 'louder' did not load: no file"),
            ("UNAVAILABLE", "unloaded", "'louder' was unloaded: POST /v2/repository/models/louder/load loads it"),
            ("LOADING", "", "'louder' is loading: GET /v2/models/louder/ready answers 200 once it serves"),
            ("", "", "'louder' is in the repository and not loaded: POST /v2/repository/models/louder/load loads it"),
        ] {
            assert_eq!(reason(state, why).as_deref(), Some(text));
        }
        assert_eq!(reason("READY", ""), None);
        assert!(reason("UNAVAILABLE", &"ä".repeat(MAX_REASON_BYTES)).unwrap().len() < MAX_REASON_BYTES + 60);
    }

    #[test]
    fn the_error_of_an_unknown_name_names_the_nearest_unless_errors_are_concealed() {
        let registry = Registry::default();
        let entry = IndexEntry { name: "louder".into(), version: "1".into(), state: "READY".into(), reason: "".into() };
        registry.set_index(vec![entry], true);
        let text = || registry.find("loud", "").err().map(|error| error.message).unwrap_or_default();
        assert_eq!(text(), "Request for unknown model: 'loud' is not found; is 'louder' meant?");
        registry.conceal();
        assert_eq!(text(), "Request for unknown model: 'loud' is not found");
    }

    #[test]
    fn a_version_is_read_as_far_as_it_is_a_number() {
        for (text, number) in [("1", 1), ("01", 1), ("0", 0), ("-0", 0), (" \t+7", 7), ("3abc", 3), ("0x9", 0)] {
            assert_eq!(version_number(text), Ok(number), "{text}");
        }
        assert_eq!(version_number("9223372036854775807"), Ok(i64::MAX));
    }

    #[test]
    fn what_is_no_version_is_refused_in_tritons_words() {
        let refused = |text: &str| version_number(text).unwrap_err().message;
        for text in ["abc", "-", "+ 1", " ", "9223372036854775808", "\u{663}"] {
            let expected = format!(
                "failed to get model version from specified version string '{text}' (details: stol), version should be an \
                 integral value > 0"
            );
            assert_eq!(refused(text), expected);
        }
        assert_eq!(refused("-1"), "invalid model version specified '-1' , version should be an integral value > 0");
    }
}

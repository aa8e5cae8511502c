//! How requests that name no version are divided among the versions of their model.

mod difference;
mod elements;
mod open_outcome;
mod sample;
mod shadow;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use alipes_protocol::{Code, CorrelationId, InferError, Tensor};
use alipes_stats::outcomes::{AnswerTimes, Outcomes, OutcomesDocument};
use arc_swap::ArcSwap;
use xxhash_rust::xxh3::xxh3_64;

pub use open_outcome::OpenOutcome;
use sample::sample_of;
use shadow::Shadow;
pub use shadow::{CopyPermit, ShadowSettings};

/// Most versions among which the requests of a model are divided.
pub const MAX_SPLIT_VERSIONS: usize = 64;

/// Largest weight of a version.
pub const MAX_WEIGHT: u32 = 1_000_000;

/// Longest name of the header that keeps a caller on its version, in bytes.
pub const MAX_STICKY_HEADER_BYTES: usize = 128;

/// Step between the points of requests that have no key. Multiples of the golden ratio lie apart from each other, so
/// any run of requests is divided by the weights, to within one or two.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The split of every model that has one.
#[derive(Debug, Default)]
pub struct Traffic {
    splits: ArcSwap<HashMap<String, Arc<TrafficSplit>>>,
    /// There is a split: most servers have none, and no request looks for one there.
    any: AtomicBool,
    /// There is one with a header, so the headers of requests are needed.
    sticky: AtomicBool,
    /// There is one with a shadow.
    shadowed: AtomicBool,
}

impl Traffic {
    /// Divides the requests of a model from now on; none leaves them to the highest version again.
    pub fn set(&self, model: &str, split: Option<TrafficSplit>) {
        let split = split.map(Arc::new);
        self.splits.rcu(|splits| {
            let mut splits = HashMap::clone(splits);
            match &split {
                Some(split) => splits.insert(model.to_owned(), Arc::clone(split)),
                None => splits.remove(model),
            };
            splits
        });
        let splits = self.splits.load();
        self.sticky.store(splits.values().any(|split| split.sticky_header.is_some()), Ordering::Release);
        self.shadowed.store(splits.values().any(|split| split.shadow.is_some()), Ordering::Release);
        self.any.store(!splits.is_empty(), Ordering::Release);
    }

    /// The split of a model.
    #[inline]
    pub fn of(&self, model: &str) -> Option<Arc<TrafficSplit>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.splits.load().get(model).map(Arc::clone)
    }

    /// Whether a split looks at headers.
    pub fn is_sticky(&self) -> bool {
        self.sticky.load(Ordering::Acquire)
    }

    /// Whether requests of a model are copied.
    #[inline]
    pub fn has_shadow(&self) -> bool {
        self.shadowed.load(Ordering::Acquire)
    }
}

/// The weights of the versions of one model.
#[derive(Debug)]
pub struct TrafficSplit {
    weights: BTreeMap<i64, u32>,
    outcomes: BTreeMap<i64, Outcomes>,
    sticky_header: Option<String>,
    shadow: Option<Arc<Shadow>>,
    turn: AtomicU64,
}

impl TrafficSplit {
    /// A split by these weights, by version. Requests that bring the header go where others with its value go. The
    /// shadow gets copies of requests for the others.
    ///
    /// # Errors
    ///
    /// No weight above zero, one above [`MAX_WEIGHT`], more than [`MAX_SPLIT_VERSIONS`], a header that is none, or a
    /// shadow with a weight or with settings that cannot be.
    pub fn new(
        weights: BTreeMap<i64, u32>,
        sticky_header: Option<String>,
        shadow: Option<ShadowSettings>,
    ) -> Result<TrafficSplit, InferError> {
        if weights.len() > MAX_SPLIT_VERSIONS {
            let text =
                format!("'weights' names {} versions, and at most {MAX_SPLIT_VERSIONS} are taken", weights.len());
            return Err(InferError::invalid(text));
        }
        if let Some((version, weight)) = weights.iter().find(|(_, weight)| **weight > MAX_WEIGHT) {
            let text = format!("the weight of version {version} must be at most {MAX_WEIGHT}, got {weight}");
            return Err(InferError::invalid(text));
        }
        if weights.values().all(|weight| *weight == 0) {
            return Err(InferError::invalid("'weights' needs a version with a weight above 0"));
        }
        if let Some(header) = sticky_header.as_deref().filter(|header| !is_header(header)) {
            let text = format!(
                "'sticky_header' must be the name of a header, at most {MAX_STICKY_HEADER_BYTES} letters, digits and \
                 hyphens, got '{}'",
                header.chars().take(MAX_STICKY_HEADER_BYTES).collect::<String>()
            );
            return Err(InferError::invalid(text));
        }
        let sticky_header = sticky_header.map(|header| header.to_ascii_lowercase());
        if let Some(shadow) = &shadow {
            shadow.check()?;
            if weights.get(&shadow.version).is_some_and(|weight| *weight > 0) {
                let text = format!("version {} has a weight, so it cannot be the shadow of others", shadow.version);
                return Err(InferError::invalid(text));
            }
        }
        let counted = weights.keys().copied().chain(shadow.map(|shadow| shadow.version));
        let outcomes = counted.map(|version| (version, Outcomes::default())).collect();
        let shadow = shadow.map(|settings| Arc::new(Shadow::new(settings)));
        Ok(TrafficSplit { weights, outcomes, sticky_header, shadow, turn: AtomicU64::new(0) })
    }

    /// The weights, by version.
    pub fn weights(&self) -> &BTreeMap<i64, u32> {
        &self.weights
    }

    /// The header whose value keeps a caller on its version, in small letters.
    pub fn sticky_header(&self) -> Option<&str> {
        self.sticky_header.as_deref()
    }

    /// What its shadow was set to.
    pub fn shadow(&self) -> Option<ShadowSettings> {
        self.shadow.as_ref().map(|shadow| shadow.settings())
    }

    /// A permit to copy a request of a version for the shadow, where a copy is due: of versions with a weight alone.
    pub fn copy(&self, version: i64) -> Option<CopyPermit> {
        self.weights.get(&version).filter(|weight| **weight > 0)?;
        self.shadow.as_ref()?.permit()
    }

    /// The version for a request with this key, or for the next without one, among those that can answer, ascending.
    /// None where no version with a weight can.
    pub fn choose(&self, key: Option<&[u8]>, ready: &[i64]) -> Option<i64> {
        let point = key.map_or_else(|| self.next_point(), xxh3_64);
        share_at(point, ready.iter().filter_map(|version| Some((*version, *self.weights.get(version)?))))
    }

    /// The version for a sequence that none of them knows.
    pub fn choose_for(&self, id: &CorrelationId, ready: &[i64]) -> Option<i64> {
        match id {
            CorrelationId::Number(number) => self.choose(Some(&number.to_le_bytes()), ready),
            CorrelationId::Text(text) => self.choose(Some(text.as_bytes()), ready),
        }
    }

    /// Counts what became of a request of a version, whose outputs may have rows. A failure by the caller's fault says
    /// nothing of a version.
    pub fn count(&self, version: i64, is_batched: bool, spent: Duration, outcome: Result<&[Tensor], &InferError>) {
        let Some(outcomes) = self.outcomes.get(&version) else { return };
        match outcome {
            Ok(outputs) => {
                let times = AnswerTimes { latency: spent, interval: None };
                outcomes.answered(times, samples_of(outputs, is_batched));
            }
            Err(error) if is_of_caller(error.code) => {}
            Err(_) => outcomes.failed(),
        }
    }

    /// The outcome of a request of a version that has any number of responses; none for a version that is not counted.
    pub fn open(self: &Arc<Self>, version: i64, is_batched: bool, arrived: Instant) -> Option<OpenOutcome> {
        self.outcomes.contains_key(&version).then(|| OpenOutcome::new(Arc::clone(self), version, is_batched, arrived))
    }

    /// What became of the requests since the weights are these, by version.
    pub fn outcomes(&self) -> BTreeMap<i64, OutcomesDocument> {
        let mut documents: BTreeMap<_, _> =
            self.outcomes.iter().map(|(version, outcomes)| (*version, outcomes.document())).collect();
        if let Some(shadow) = &self.shadow
            && let Some(document) = documents.get_mut(&shadow.settings().version)
        {
            document.comparison = Some(shadow.comparison());
        }
        documents
    }

    fn next_point(&self) -> u64 {
        self.turn.fetch_add(1, Ordering::Relaxed).wrapping_mul(GOLDEN_STEP)
    }
}

/// What has the point, of all points from 0 to 2⁶⁴, where each has as many as its weight says. The last comes first, so
/// that the highest version keeps the keys that it had when its weight grows.
fn share_at<T>(point: u64, shares: impl DoubleEndedIterator<Item = (T, u32)> + Clone) -> Option<T> {
    let total: u64 = shares.clone().map(|(_, weight)| u64::from(weight)).sum();
    let mut place = ((u128::from(point) * u128::from(total)) >> 64) as u64;
    for (item, weight) in shares.rev() {
        match place.checked_sub(u64::from(weight)) {
            Some(rest) => place = rest,
            None => return Some(item),
        }
    }
    None
}

/// One number of each output that has one.
fn samples_of(outputs: &[Tensor], is_batched: bool) -> impl Iterator<Item = (&str, f64)> {
    outputs.iter().filter_map(move |output| Some((&*output.name, sample_of(output, is_batched)?)))
}

/// Whether an error says that the request was wrong, or its caller left.
fn is_of_caller(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument
            | Code::NotFound
            | Code::Unsupported
            | Code::AlreadyExists
            | Code::Cancelled
            | Code::TooLarge
    )
}

fn is_header(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_STICKY_HEADER_BYTES).contains(&name.len()) && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(weights: &[(i64, u32)]) -> Result<TrafficSplit, InferError> {
        TrafficSplit::new(weights.iter().copied().collect(), None, None)
    }

    #[test]
    fn any_run_of_requests_is_divided_by_the_weights() {
        let split = split(&[(1, 90), (2, 10)]).unwrap();
        let versions: Vec<i64> =
            (0..10_000).map(|_| share_at(split.next_point(), [(1, 90), (2, 10)].into_iter()).unwrap()).collect();
        for run in [10, 100, 1000, 10_000] {
            for part in versions.chunks(run) {
                let second = part.iter().filter(|version| **version == 2).count();
                assert!(second.abs_diff(run / 10) <= 2, "{second} of {run}");
            }
        }
    }

    #[test]
    fn a_key_stays_with_the_highest_version_while_its_weight_grows() {
        let version = |key: u64, weight| {
            let shares = [(1, 100 - weight), (2, weight)].into_iter();
            share_at(xxh3_64(&key.to_le_bytes()), shares).unwrap()
        };
        for key in 0..2_000 {
            let versions: Vec<i32> = [0, 1, 5, 25, 50, 100].map(|weight| version(key, weight)).to_vec();
            assert!(versions.is_sorted(), "{versions:?}");
            assert_eq!((versions[0], versions[5]), (1, 2));
        }
    }

    #[test]
    fn nothing_has_a_share_where_all_weights_are_zero() {
        assert_eq!(share_at::<i32>(u64::MAX, [].into_iter()), None);
        assert_eq!(share_at(7, [(1, 0), (2, 0)].into_iter()), None);
        assert_eq!(share_at(u64::MAX, [(1, 1), (2, 0)].into_iter()), Some(1));
    }

    #[test]
    fn weights_that_divide_nothing_are_refused() {
        let refused = |weights: &[(i64, u32)]| split(weights).unwrap_err().message;
        assert_eq!(refused(&[(1, 0)]), "'weights' needs a version with a weight above 0");
        assert_eq!(refused(&[(1, 1_000_001)]), "the weight of version 1 must be at most 1000000, got 1000001");
        let many: Vec<(i64, u32)> = (0..65).map(|version| (version, 1)).collect();
        assert_eq!(refused(&many), "'weights' names 65 versions, and at most 64 are taken");
        let sticky = TrafficSplit::new([(1, 1)].into(), Some("x user".to_owned()), None).unwrap_err().message;
        assert!(sticky.ends_with("at most 128 letters, digits and hyphens, got 'x user'"), "{sticky}");
    }

    #[test]
    fn requests_of_versions_with_a_weight_are_copied_for_the_shadow() {
        let shadow = Some(ShadowSettings { version: 3, percent: 100.0, tolerance: 0.0 });
        let split = TrafficSplit::new([(1, 1), (2, 0), (3, 0)].into(), None, shadow).unwrap();
        assert_eq!(split.copy(1).unwrap().version(), 3);
        assert!(split.copy(2).is_none() && split.copy(3).is_none());
        split.copy(1).unwrap().compare(&[], Some(&[]));
        let outcomes = split.outcomes();
        assert_eq!(outcomes[&3].comparison.as_ref().unwrap().compared, 1);
        assert!(outcomes[&1].comparison.is_none());
        let refused = TrafficSplit::new([(3, 1)].into(), None, shadow).unwrap_err().message;
        assert_eq!(refused, "version 3 has a weight, so it cannot be the shadow of others");
    }

    #[test]
    fn a_model_without_a_split_has_none() {
        let traffic = Traffic::default();
        assert!(traffic.of("m").is_none());
        traffic.set("m", Some(split(&[(1, 1)]).unwrap()));
        assert!(traffic.of("m").is_some() && traffic.of("n").is_none() && !traffic.is_sticky());
        traffic.set("m", Some(TrafficSplit::new([(1, 1)].into(), Some("X-User".to_owned()), None).unwrap()));
        assert_eq!(traffic.of("m").unwrap().sticky_header(), Some("x-user"));
        assert!(traffic.is_sticky());
        traffic.set("m", None);
        assert!(traffic.of("m").is_none() && !traffic.is_sticky());
    }
}

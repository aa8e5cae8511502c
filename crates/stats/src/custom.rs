//! Custom metrics of Python models: families of series, each owned by the worker processes that created it.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use alipes_protocol::{Code, InferError};
use parking_lot::Mutex;

use super::metrics::escape;

/// Most series of all models together: a model that puts a request's id into a label gets an error before it fills the
/// machine's memory.
const MAX_SERIES: usize = 100_000;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations by size.
    Histogram,
}

impl Kind {
    /// The kind with Prometheus' name for it.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for another name.
    pub fn from_name(name: &str) -> Result<Kind, InferError> {
        match name {
            "counter" => Ok(Kind::Counter),
            "gauge" => Ok(Kind::Gauge),
            "histogram" => Ok(Kind::Histogram),
            other => Err(InferError::invalid(format!("unknown kind of metric '{other}'"))),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A change of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Add to a counter or a gauge.
    Increment(f64),
    /// Set a gauge.
    Set(f64),
    /// Add an observation to a histogram.
    Observe(f64),
}

#[derive(Debug)]
struct Family {
    description: String,
    kind: Kind,
    owners: usize,
    series: BTreeMap<String, Series>,
}

#[derive(Debug, Default)]
struct Series {
    // Of a histogram: the sum of the observations.
    value: f64,
    edges: Vec<f64>,
    // Observations up to each edge, and beyond the last.
    counts: Vec<u64>,
    owners: usize,
}

/// What a worker refers to by a number.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Holding {
    Family(String),
    Series(String, String),
}

/// Number of a worker process, as the owner of metrics.
pub type Owner = u64;

#[derive(Debug, Default)]
struct Table {
    families: BTreeMap<String, Family>,
    holdings: HashMap<u64, (Owner, Holding)>,
    last: u64,
    series: usize,
}

/// Custom metrics of all models.
#[derive(Debug, Default)]
pub struct CustomMetrics(Mutex<Table>);

impl CustomMetrics {
    /// Creates a family, or joins the one with this name; its number.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a name that Prometheus does not take; `AlreadyExists` where the family is of another kind.
    pub fn family(&self, owner: Owner, name: &str, description: &str, kind: Kind) -> Result<u64, InferError> {
        check_name(name, "metric", |character| character == ':')?;
        let mut table = self.0.lock();
        let family = table.families.entry(name.to_owned()).or_insert_with(|| Family {
            description: description.to_owned(),
            kind,
            owners: 0,
            series: BTreeMap::new(),
        });
        if family.kind != kind {
            let text =
                format!("metric family '{name}' exists already and is a {}, not a {}", family.kind.name(), kind.name());
            return Err(InferError::new(Code::AlreadyExists, text));
        }
        family.owners += 1;
        Ok(table.hold(owner, Holding::Family(name.to_owned())))
    }

    /// Creates a series of a family, or joins the one with these labels; its number.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an unknown family, labels that Prometheus does not take, a histogram without edges, edges
    /// that do not ascend, or too many series.
    pub fn series(
        &self,
        owner: Owner,
        family: u64,
        labels: &BTreeMap<String, String>,
        buckets: Option<Vec<f64>>,
    ) -> Result<u64, InferError> {
        labels.keys().try_for_each(|name| check_name(name, "label", |_| false))?;
        let edges = buckets.as_deref().unwrap_or_default();
        if edges.iter().any(|edge| edge.is_nan()) || edges.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(InferError::invalid(format!("the buckets of a histogram must ascend, got {edges:?}")));
        }
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let labels = labels.join(",");
        let mut guard = self.0.lock();
        let table = &mut *guard;
        let Some((_, Holding::Family(name))) = table.holdings.get(&family).cloned() else {
            return Err(unknown(family));
        };
        let found = table.families.get_mut(&name).ok_or_else(|| unknown(family))?;
        if found.kind == Kind::Histogram && buckets.is_none() {
            return Err(InferError::invalid("Bucket boundaries not found in Metric args."));
        }
        if !found.series.contains_key(&labels) {
            if table.series >= MAX_SERIES {
                return Err(InferError::invalid(format!(
                    "models keep {MAX_SERIES} metrics already, which is the limit"
                )));
            }
            table.series += 1;
        }
        let series = found.series.entry(labels.clone()).or_insert_with(|| Series::new(found.kind, buckets));
        series.owners += 1;
        Ok(table.hold(owner, Holding::Series(name, labels)))
    }

    /// Changes a series.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an unknown series, or a change that its kind does not have.
    pub fn change(&self, series: u64, change: Change) -> Result<(), InferError> {
        let mut table = self.0.lock();
        let (kind, series) = table.find(series)?;
        match (kind, change) {
            (Kind::Counter, Change::Increment(by)) if by >= 0.0 => series.value += by,
            (Kind::Counter, Change::Increment(_)) => {
                let text =
                    "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values.";
                return Err(InferError::invalid(text));
            }
            (Kind::Gauge, Change::Increment(by)) => series.value += by,
            (Kind::Gauge, Change::Set(to)) => series.value = to,
            (Kind::Histogram, Change::Observe(size)) => series.observe(size),
            (kind, change) => {
                let what = match change {
                    Change::Increment(_) => "Increment",
                    Change::Set(_) => "Set",
                    Change::Observe(_) => "Observe",
                };
                return Err(not_supported(kind, what));
            }
        }
        Ok(())
    }

    /// The value of a counter or a gauge.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an unknown series, `Unsupported` for a histogram.
    pub fn value(&self, series: u64) -> Result<f64, InferError> {
        let mut table = self.0.lock();
        match table.find(series)? {
            (kind @ Kind::Histogram, _) => Err(not_supported(kind, "Value")),
            (_, series) => Ok(series.value),
        }
    }

    /// Ends one ownership of a family or a series; the last one removes it.
    pub fn release(&self, number: u64) {
        self.0.lock().release(number);
    }

    /// Ends all ownerships of a worker process that has ended.
    pub fn release_all(&self, owner: Owner) {
        let mut table = self.0.lock();
        let numbers: Vec<u64> =
            table.holdings.iter().filter(|(_, (holder, _))| *holder == owner).map(|(&number, _)| number).collect();
        numbers.into_iter().for_each(|number| table.release(number));
    }

    /// Appends the Prometheus exposition of all custom metrics.
    pub fn expose(&self, text: &mut String) {
        for (name, family) in &self.0.lock().families {
            let description = family.description.replace('\\', "\\\\").replace('\n', "\\n");
            let _ = writeln!(text, "# HELP {name} {description}\n# TYPE {name} {}", family.kind.name());
            for (labels, series) in &family.series {
                match family.kind {
                    Kind::Histogram => series.expose_histogram(text, name, labels),
                    _ => sample(text, name, labels, series.value),
                }
            }
        }
    }
}

impl Table {
    fn hold(&mut self, owner: Owner, holding: Holding) -> u64 {
        self.last += 1;
        self.holdings.insert(self.last, (owner, holding));
        self.last
    }

    fn find(&mut self, number: u64) -> Result<(Kind, &mut Series), InferError> {
        let Some((_, Holding::Series(name, labels))) = self.holdings.get(&number) else { return Err(unknown(number)) };
        let family = self.families.get_mut(name).ok_or_else(|| unknown(number))?;
        Ok((family.kind, family.series.get_mut(labels).ok_or_else(|| unknown(number))?))
    }

    fn release(&mut self, number: u64) {
        let Some((_, holding)) = self.holdings.remove(&number) else { return };
        let (Holding::Family(name) | Holding::Series(name, _)) = &holding;
        let Some(family) = self.families.get_mut(name) else { return };
        match &holding {
            Holding::Family(_) => family.owners -= 1,
            Holding::Series(_, labels) => {
                if let Some(series) = family.series.get_mut(labels) {
                    series.owners -= 1;
                    if series.owners == 0 {
                        family.series.remove(labels);
                        self.series -= 1;
                    }
                }
            }
        }
        if family.owners == 0 && family.series.is_empty() {
            self.families.remove(name);
        }
    }
}

impl Series {
    fn new(kind: Kind, buckets: Option<Vec<f64>>) -> Series {
        match (kind, buckets) {
            (Kind::Histogram, Some(edges)) => Series { counts: vec![0; edges.len() + 1], edges, ..Series::default() },
            _ => Series::default(),
        }
    }

    fn observe(&mut self, size: f64) {
        self.value += size;
        let bucket = self.edges.iter().position(|&edge| size <= edge).unwrap_or(self.edges.len());
        self.counts[bucket] += 1;
    }

    fn expose_histogram(&self, text: &mut String, name: &str, labels: &str) {
        let mut so_far = 0;
        let edges = self.edges.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (edge, count) in edges.zip(&self.counts) {
            so_far += count;
            let separator = if labels.is_empty() { "" } else { "," };
            sample(text, &format!("{name}_bucket"), &format!("{labels}{separator}le=\"{edge}\""), so_far as f64);
        }
        sample(text, &format!("{name}_sum"), labels, self.value);
        sample(text, &format!("{name}_count"), labels, so_far as f64);
    }
}

fn sample(text: &mut String, name: &str, labels: &str, value: f64) {
    let _ = match labels {
        "" => writeln!(text, "{name} {value}"),
        labels => writeln!(text, "{name}{{{labels}}} {value}"),
    };
}

fn check_name(name: &str, what: &str, further: fn(char) -> bool) -> Result<(), InferError> {
    let fits = |(index, character): (usize, char)| {
        character.is_ascii_alphabetic()
            || character == '_'
            || further(character)
            || (index > 0 && character.is_ascii_digit())
    };
    if !name.is_empty() && name.chars().enumerate().all(fits) {
        return Ok(());
    }
    Err(InferError::invalid(format!(
        "'{name}' is no name of a {what}: letters, digits and underscores, no digit first"
    )))
}

/// What a kind of metric does not do, in Triton's words.
fn not_supported(kind: Kind, what: &str) -> InferError {
    let kind = kind.name().to_ascii_uppercase();
    InferError::new(Code::Unsupported, format!("TRITONSERVER_METRIC_KIND_{kind} does not support {what}"))
}

fn unknown(number: u64) -> InferError {
    InferError::invalid(format!("there is no metric or family {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned())])
    }

    fn text(metrics: &CustomMetrics) -> String {
        let mut text = String::new();
        metrics.expose(&mut text);
        text
    }

    #[test]
    fn workers_that_make_the_same_series_share_it_and_it_goes_with_the_last() {
        let metrics = CustomMetrics::default();
        let made = |owner| {
            let family = metrics.family(owner, "seen", "what was seen", Kind::Counter).unwrap();
            metrics.series(owner, family, &labels("place", "a\"b"), None).unwrap()
        };
        let (one, two) = (made(1), made(2));
        metrics.change(one, Change::Increment(1.0)).unwrap();
        metrics.change(two, Change::Increment(2.5)).unwrap();
        assert_eq!(metrics.value(one).unwrap(), 3.5);
        assert_eq!(text(&metrics), "# HELP seen what was seen\n# TYPE seen counter\nseen{place=\"a\\\"b\"} 3.5\n");
        metrics.release_all(1);
        assert_eq!(metrics.value(two).unwrap(), 3.5);
        metrics.release_all(2);
        assert_eq!(text(&metrics), "");
    }

    #[test]
    fn a_histogram_counts_up_to_each_edge() {
        let metrics = CustomMetrics::default();
        let family = metrics.family(1, "h", "", Kind::Histogram).unwrap();
        let series = metrics.series(1, family, &BTreeMap::new(), Some(vec![1.0, 2.0])).unwrap();
        for size in [0.5, 1.0, 1.5, 9.0] {
            metrics.change(series, Change::Observe(size)).unwrap();
        }
        let expected = "# HELP h \n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 3\n\
                        h_bucket{le=\"+Inf\"} 4\nh_sum 12\nh_count 4\n";
        assert_eq!(text(&metrics), expected);
        assert_eq!(metrics.value(series).unwrap_err().code, Code::Unsupported);
    }

    #[test]
    fn what_prometheus_would_not_take_is_refused() {
        let metrics = CustomMetrics::default();
        assert!(metrics.family(1, "1st", "", Kind::Gauge).is_err());
        let family = metrics.family(1, "fine", "", Kind::Counter).unwrap();
        assert!(metrics.family(1, "fine", "", Kind::Gauge).is_err());
        assert!(metrics.series(1, family, &labels("a-b", ""), None).is_err());
        assert!(metrics.series(1, family + 1, &BTreeMap::new(), None).is_err());
        let series = metrics.series(1, family, &BTreeMap::new(), None).unwrap();
        let histogram = metrics.family(1, "sizes", "", Kind::Histogram).unwrap();
        let refused = metrics.series(1, histogram, &BTreeMap::new(), None).unwrap_err();
        assert_eq!(refused.message, "Bucket boundaries not found in Metric args.");
        let refusal = |change| metrics.change(series, change).unwrap_err().message;
        assert_eq!(refusal(Change::Set(1.0)), "TRITONSERVER_METRIC_KIND_COUNTER does not support Set");
        assert_eq!(
            refusal(Change::Increment(-1.0)),
            "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values."
        );
    }
}

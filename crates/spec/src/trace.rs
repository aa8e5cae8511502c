//! Trace settings: values that clients change, their defaults, and where records go.

use std::time::Duration;

use alipes_protocol::trace::Level;
use serde::Deserialize;

/// Trace settings at the start.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceConfig {
    /// Values that clients can change.
    pub values: Values,
    /// Where records go; fixed.
    pub destination: Destination,
}

/// Trace settings that clients can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// What is recorded.
    #[serde(deserialize_with = "level")]
    pub level: Level,
    /// Trace one request in `rate`; 0 traces only requests that ask for it.
    pub rate: u32,
    /// Requests that are still to be traced; -1 for any number.
    pub count: i32,
    /// Traces per numbered file; 0 writes all of them into one file.
    pub log_frequency: u32,
}

impl Default for Values {
    fn default() -> Self {
        Values { level: Level::default(), rate: 1000, count: -1, log_frequency: 0 }
    }
}

impl Values {
    /// Why these settings trace nothing, in Triton's words; none where they trace something.
    pub fn invalid(&self, destination: &Destination) -> Option<&'static str> {
        match destination {
            _ if self.level.is_off() => Some("tracing is disabled"),
            Destination::File { .. } if self.rate == 0 => Some("sample rate must be non-zero"),
            Destination::File { path } if path.is_empty() => Some("trace file name is not given"),
            _ => None,
        }
    }

    /// Names of the level, as clients read them.
    pub fn level_names(&self) -> Vec<&'static str> {
        let Level { timestamps, tensors } = self.level;
        let names = [(timestamps, "TIMESTAMPS"), (tensors, "TENSORS"), (self.level.is_off(), "OFF")];
        names.into_iter().filter_map(|(set, name)| set.then_some(name)).collect()
    }
}

/// Where records go.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase", deny_unknown_fields)]
pub enum Destination {
    /// Triton's trace file.
    #[serde(rename = "triton")]
    File {
        /// Its path; empty where none was given.
        path: String,
    },
    /// An OpenTelemetry collector.
    #[serde(rename = "opentelemetry")]
    Collector(CollectorConfig),
}

impl Default for Destination {
    fn default() -> Self {
        Destination::File { path: String::new() }
    }
}

impl Destination {
    /// Name of its mode, as clients read it.
    pub const fn mode(&self) -> &'static str {
        match self {
            Destination::File { .. } => "triton",
            Destination::Collector(_) => "opentelemetry",
        }
    }
}

/// Connection to an OpenTelemetry collector, and batching of spans.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectorConfig {
    /// Its URL for OTLP over HTTP.
    pub url: String,
    /// File of the roots that its certificate must lead to; none for the system's roots.
    #[serde(default)]
    pub certificate: Option<String>,
    /// Attributes of this server.
    pub resource: Vec<(String, String)>,
    /// Most spans that wait to be sent; further spans are dropped.
    pub max_queue_size: u32,
    /// Longest delay of a span, in milliseconds.
    pub schedule_delay_ms: u32,
    /// Most spans of one message.
    pub max_export_batch_size: u32,
}

impl CollectorConfig {
    /// Longest delay of a span.
    pub const fn delay(&self) -> Duration {
        Duration::from_millis(self.schedule_delay_ms as u64)
    }

    /// Its settings as clients read them, under the names of `--trace-config`.
    pub fn options(&self) -> Vec<(String, String)> {
        let option = |name: &str, value: String| (name.to_owned(), value);
        let mut options = vec![option("url", self.url.clone())];
        options.extend(self.resource.iter().map(|(key, value)| option("resource", format!("{key}={value}"))));
        options.push(option("bsp_max_queue_size", self.max_queue_size.to_string()));
        options.push(option("bsp_schedule_delay", self.schedule_delay_ms.to_string()));
        options.push(option("bsp_max_export_batch_size", self.max_export_batch_size.to_string()));
        options
    }
}

/// A change of some settings: `None` leaves a setting as it is, `Some(None)` makes it follow the general settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// New level.
    pub level: Option<Option<Level>>,
    /// New rate.
    pub rate: Option<Option<u32>>,
    /// New count.
    pub count: Option<Option<i32>>,
    /// New number of traces per file.
    pub log_frequency: Option<Option<u32>>,
}

/// Settings with values of their own; the others follow the general settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    level: Option<Level>,
    rate: Option<u32>,
    count: Option<i32>,
    log_frequency: Option<u32>,
}

impl Chosen {
    /// The settings after a change. A count that does not change continues from what is left of it in `now`.
    pub fn with(self, change: &Change, now: &Values) -> Chosen {
        Chosen {
            level: change.level.unwrap_or(self.level),
            rate: change.rate.unwrap_or(self.rate),
            count: change.count.unwrap_or(self.count.map(|_| now.count)),
            log_frequency: change.log_frequency.unwrap_or(self.log_frequency),
        }
    }

    /// All values: its own, and the general ones for the rest.
    pub fn over(&self, above: &Values) -> Values {
        Values {
            level: self.level.unwrap_or(above.level),
            rate: self.rate.unwrap_or(above.rate),
            count: self.count.unwrap_or(above.count),
            log_frequency: self.log_frequency.unwrap_or(above.log_frequency),
        }
    }
}

/// The level that a list of names selects. Unknown names are ignored, as in Triton; none where every name is unknown.
///
/// # Errors
///
/// `OFF` stands beside another name.
pub fn level_of<'a>(
    names: impl IntoIterator<Item = &'a str, IntoIter: ExactSizeIterator>,
) -> Result<Option<Level>, &'static str> {
    let names = names.into_iter();
    let (alone, mut found) = (names.len() == 1, None);
    for name in names {
        let level: &mut Level = match name {
            "OFF" if alone => return Ok(Some(Level::default())),
            "OFF" => return Err("Expect only one trace level 'OFF' is specified"),
            "TIMESTAMPS" | "TENSORS" => found.get_or_insert_default(),
            _ => continue,
        };
        level.timestamps |= name == "TIMESTAMPS";
        level.tensors |= name == "TENSORS";
    }
    Ok(found)
}

fn level<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let level = level_of(names.iter().map(String::as_str)).map_err(serde::de::Error::custom)?;
    Ok(level.unwrap_or_default())
}

/// Smallest count that a client can set. Source: Triton.
pub const MIN_COUNT: i32 = -1;

/// A number as text, parsed as Triton does: leading digits count, the rest is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The number.
    Number(i32),
    /// It does not fit into 32 bits.
    OutOfRange,
    /// The text begins with no digit.
    NoNumber,
}

impl Reading {
    /// Parses a text.
    pub fn of(text: &str) -> Reading {
        let text = text.trim_ascii_start();
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return Reading::NoNumber;
        }
        let number = &text[..text.len() - digits.len() + length];
        number.parse().map_or(Reading::OutOfRange, Reading::Number)
    }
}

/// Parses a rate or a frequency; errors are in Triton's words.
///
/// # Errors
///
/// The text is no number, negative, or beyond 32 bits.
pub fn unsigned(name: &str, text: &str) -> Result<u32, String> {
    match Reading::of(text) {
        Reading::Number(number @ 0..) => Ok(number.unsigned_abs()),
        Reading::NoNumber => Err(format!("Unable to parse '{name}', got: {text}")),
        _ => {
            let most = u32::MAX;
            Err(format!("Unable to parse '{name}', value is out of range [ 0, {most} ], got: {text}"))
        }
    }
}

/// Parses a count of further traces. `gap` precedes the number in the error for one that is too small: HTTP and gRPC
/// differ there.
///
/// # Errors
///
/// The text is no number, too small, or beyond 32 bits.
pub fn count(name: &str, text: &str, gap: &str) -> Result<i32, String> {
    match Reading::of(text) {
        Reading::Number(number) if number >= MIN_COUNT => Ok(number),
        Reading::Number(_) => Err(format!("Unable to parse '{name}'. Expecting value >= {MIN_COUNT}, got:{gap}{text}")),
        Reading::NoNumber => Err(format!("Unable to parse '{name}', got: {text}")),
        Reading::OutOfRange => {
            let most = i32::MAX;
            Err(format!("Unable to parse '{name}', value is out of range [ {MIN_COUNT}, {most} ], got: {text}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_by_their_names() {
        let both = Level { timestamps: true, tensors: true };
        assert_eq!(level_of(["TIMESTAMPS", "x", "TENSORS"]), Ok(Some(both)));
        assert_eq!((level_of(["OFF"]), level_of(["ALL"])), (Ok(Some(Level::default())), Ok(None)));
        assert!(level_of(["OFF", "TENSORS"]).is_err());
        assert_eq!(Values { level: both, ..Values::default() }.level_names(), ["TIMESTAMPS", "TENSORS"]);
        assert_eq!(Values::default().level_names(), ["OFF"]);
    }

    #[test]
    fn numbers_are_read_as_triton_reads_them() {
        assert_eq!(Reading::of(" +12 apples"), Reading::Number(12));
        assert_eq!([Reading::of("often"), Reading::of("-"), Reading::of("")], [Reading::NoNumber; 3]);
        assert_eq!(Reading::of("2147483648"), Reading::OutOfRange);
        assert_eq!(unsigned("trace_rate", "5"), Ok(5));
        let range = "Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: -5";
        assert_eq!(unsigned("trace_rate", "-5"), Err(range.to_owned()));
        assert_eq!(count("trace_count", "-1", ""), Ok(-1));
        let small = "Unable to parse 'trace_count'. Expecting value >= -1, got: -2";
        assert_eq!(count("trace_count", "-2", " "), Err(small.to_owned()));
    }

    #[test]
    fn what_is_left_of_a_count_is_what_counts() {
        let chosen = Chosen::default().with(&Change { count: Some(Some(7)), ..Change::default() }, &Values::default());
        let now = Values { count: 3, ..Values::default() };
        assert_eq!(chosen.with(&Change::default(), &now).over(&Values::default()).count, 3);
    }
}

//! CloudEvents around bodies of the V1 protocol. Sources: CloudEvents 1.0, its JSON format and its binding to HTTP;
//! what KServe's Python server makes of them, whose texts the refusals have.
//!
//! In *binary mode* headers hold the attributes and the body is the data; in *structured mode* the body is one object
//! with both. An answer has the mode of its request.

use alipes_protocol::InferError;
use alipes_protocol::codec::json::reading::{DecodeContext, show};
use alipes_protocol::codec::json::value::Value;
use alipes_protocol::codec::json::writing;
use alipes_protocol::limits::CLOUD_EVENT_MAX_ATTRIBUTES;

/// The attributes that every event has, in the order in which refusals name them.
const REQUIRED: [&str; 4] = ["id", "source", "specversion", "type"];

/// Versions of CloudEvents that are read.
const VERSIONS: [&[u8]; 2] = [b"1.0", b"0.3"];

/// Attributes that no answer repeats: its own, and what says something of the data alone.
const OWN: [&str; 9] =
    ["id", "time", "source", "type", "data", "data_base64", "datacontentencoding", "dataschema", "schemaurl"];

/// The type of an answer.
pub const ANSWER_TYPE: &str = "io.kserve.inference.response";
/// What stands in front of the model's name in the source of an answer.
pub const ANSWER_SOURCE: &str = "io.kserve.inference.";

/// How a request, and so its answer, is an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloudEventMode {
    /// Attributes are headers, the body is the data.
    Binary,
    /// The body is an object of attributes, with the data among them.
    Structured,
}

/// An attribute: its name, and its value in the form of its mode, the bytes of a header or JSON.
type Attribute = (String, Vec<u8>);

/// A request that is an event, as far as its answer depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudEvent {
    /// How it came.
    pub mode: CloudEventMode,
    /// The answer repeats its attributes.
    repeats: bool,
    /// Those to repeat.
    repeated: Vec<Attribute>,
}

impl CloudEvent {
    /// An event whose attributes, their names without their prefix, stand in headers.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where an attribute is missing, or the version is none that is read.
    pub fn of_headers(attributes: &[(&str, &[u8])], repeats: bool) -> Result<CloudEvent, InferError> {
        let find = |wanted: &str| attributes.iter().find(|(name, _)| *name == wanted).map(|&(_, value)| value);
        let version = find("specversion").ok_or_else(|| refused("Failed to find specversion in HTTP request"))?;
        check_version(version)?;
        check_required(|name| find(name).is_some())?;
        let mut event = CloudEvent { mode: CloudEventMode::Binary, repeats, repeated: Vec::new() };
        for (name, value) in attributes.iter().filter(|(name, _)| repeats && *name != "datacontenttype") {
            event.repeat(name, value)?;
        }
        Ok(event)
    }

    /// An event that the body will tell of.
    pub fn structured(repeats: bool) -> CloudEvent {
        CloudEvent { mode: CloudEventMode::Structured, repeats, repeated: Vec::new() }
    }

    /// The data of an event that is one object.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the document is no event, or its data is not JSON.
    pub(super) fn open<'v>(
        &mut self,
        document: Value<'v>,
        context: &DecodeContext<'_>,
    ) -> Result<Value<'v>, InferError> {
        if !document.is_object() {
            return Err(refused(&format!("the body is {}, expected an object of attributes", show(document))));
        }
        let found = document.pick(REQUIRED);
        let [.., version, _] = found;
        let version = version.ok_or_else(|| refused("Failed to find specversion in HTTP request"))?;
        let is_known = VERSIONS.iter().any(|known| version.as_bytes().is_ok_and(|text| *text == **known));
        if !is_known {
            return Err(refused(&format!("Found invalid specversion {}", show(version))));
        }
        check_required(|name| REQUIRED.iter().zip(found).any(|(known, value)| *known == name && value.is_some()))?;
        let [data, encoded] = document.pick(["data", "data_base64"]);
        let data = data.ok_or_else(|| {
            refused(if encoded.is_some() {
                "the data is in 'data_base64', expected JSON in 'data'"
            } else {
                "Missing required keys: {'data'}"
            })
        })?;
        if self.repeats {
            self.repeat_members(document, context)?;
        }
        Ok(data)
    }

    fn repeat_members(&mut self, document: Value<'_>, context: &DecodeContext<'_>) -> Result<(), InferError> {
        let mut members = document.members()?;
        while let Some((name, value)) = members.next_as_it_stands() {
            let Ok(name) = str::from_utf8(name.raw) else { continue };
            if !OWN.contains(&name) {
                let value = value.as_it_stands();
                context.reserve_text(name.len() + value.len() + size_of::<Attribute>())?;
                self.repeat(name, value)?;
            }
        }
        Ok(())
    }

    /// Notes an attribute to repeat; what cannot be the name of one is passed over, as is one that is there already.
    fn repeat(&mut self, name: &str, value: &[u8]) -> Result<(), InferError> {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let is_new = || self.repeated.iter().all(|(known, _)| known != name);
        if is_name && !OWN.contains(&name) && is_new() {
            if self.repeated.len() == CLOUD_EVENT_MAX_ATTRIBUTES {
                return Err(refused(&format!("the event has more than {CLOUD_EVENT_MAX_ATTRIBUTES} attributes")));
            }
            self.repeated.push((name.to_owned(), value.to_vec()));
        }
        Ok(())
    }

    /// The event that answers it: `own` are the values of `id`, `source`, `type` and `time`.
    pub fn answer(&self, own: [&str; 4]) -> CloudEventAnswer {
        let value = |text: &str| match self.mode {
            CloudEventMode::Binary => text.as_bytes().to_vec(),
            CloudEventMode::Structured => quoted(text),
        };
        let version = self.repeated.iter().all(|(name, _)| name != "specversion").then_some(("specversion", "1.0"));
        let own = ["id", "source", "type", "time"].into_iter().zip(own);
        let named = version.into_iter().chain(own).map(|(name, text)| (name.to_owned(), value(text)));
        CloudEventAnswer { mode: self.mode, attributes: named.chain(self.repeated.iter().cloned()).collect() }
    }
}

/// The event that answers another.
#[derive(Clone, Debug)]
pub struct CloudEventAnswer {
    /// How it is sent.
    pub mode: CloudEventMode,
    /// Its own attributes, and those of the request that it repeats: names, and values in the form of its mode.
    pub attributes: Vec<(String, Vec<u8>)>,
}

impl CloudEventAnswer {
    /// The event as one object around its data, which is JSON; none of binary mode, whose body is the data.
    pub fn around(&self, data: &[u8]) -> Option<Vec<u8>> {
        (self.mode == CloudEventMode::Structured).then(|| write_structured(&self.attributes, data))
    }
}

/// An event of structured mode: attributes whose values are JSON, and the data, which is JSON too.
fn write_structured(attributes: &[Attribute], data: &[u8]) -> Vec<u8> {
    let length: usize = attributes.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    let mut text = Vec::with_capacity(length + data.len() + r#"{"data":}"#.len());
    text.push(b'{');
    for (name, value) in attributes {
        writing::string(&mut text, name.as_bytes());
        text.push(b':');
        text.extend_from_slice(value);
        text.push(b',');
    }
    text.extend_from_slice(br#""data":"#);
    text.extend_from_slice(data);
    text.push(b'}');
    text
}

/// A moment as events name it, in microseconds of the Gregorian calendar. Source: RFC 3339.
pub fn time_text(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Counted from 1 March of year 0, so that a leap day ends a year. 146,097 days are 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!(
        "{:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{:06}+00:00",
        era * 400 + year + next,
        second % 60,
        unix_ns / 1_000 % 1_000_000
    )
}

fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    writing::string(&mut out, text.as_bytes());
    out
}

fn check_version(version: &[u8]) -> Result<(), InferError> {
    if VERSIONS.contains(&version) {
        return Ok(());
    }
    Err(refused(&format!("Found invalid specversion {}", String::from_utf8_lossy(version))))
}

fn check_required(has: impl Fn(&str) -> bool) -> Result<(), InferError> {
    let missing: Vec<String> = REQUIRED.iter().filter(|name| !has(name)).map(|name| format!("'{name}'")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(refused(&format!("Missing required keys: {{{}}}", missing.join(", "))))
}

fn refused(text: &str) -> InferError {
    InferError::invalid(format!("Cloud Event Exceptions: {text}"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const HEADERS: [(&str, &str); 6] = [
        ("specversion", "1.0"),
        ("id", "7"),
        ("source", "here"),
        ("type", "question"),
        ("datacontenttype", "application/json"),
        ("team", "optics"),
    ];

    fn of_headers(headers: &[(&str, &str)], repeats: bool) -> Result<CloudEvent, String> {
        let attributes: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        CloudEvent::of_headers(&attributes, repeats).map_err(|error| error.message)
    }

    fn opened(text: &str, repeats: bool) -> Result<(String, CloudEvent), String> {
        let context = DecodeContext { model: "m", options: (1 << 20).into(), reserved: &Cell::new(0) };
        let mut event = CloudEvent::structured(repeats);
        let data = event.open(Value::parse(text.as_bytes()).unwrap(), &context).map_err(|error| error.message)?;
        Ok((String::from_utf8_lossy(data.as_it_stands()).into_owned(), event))
    }

    fn names(attributes: &[Attribute]) -> Vec<&str> {
        attributes.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn an_answer_repeats_attributes_where_that_is_wanted() {
        let own = ["8", "there", "answer", "now"];
        let plain = of_headers(&HEADERS, false).unwrap().answer(own).attributes;
        assert_eq!(names(&plain), ["specversion", "id", "source", "type", "time"]);
        assert_eq!(plain[1], ("id".to_owned(), b"8".to_vec()));
        let answer = of_headers(&HEADERS, true).unwrap().answer(own);
        assert_eq!(answer.around(b"{}"), None);
        let repeating = answer.attributes;
        assert_eq!(names(&repeating), ["id", "source", "type", "time", "specversion", "team"]);
        assert_eq!(repeating[5].1, b"optics");
        let text = r#"{"specversion":"0.3","id":"7","source":"s","type":"t","n":[1],"Bad":2,"n":3,"data":{}}"#;
        let (_, event) = opened(text, true).unwrap();
        let written = String::from_utf8(event.answer(own).around(b"{}").unwrap()).unwrap();
        let expected = r#""id":"8","source":"there","type":"answer","time":"now","specversion":"0.3","n":[1]"#;
        assert_eq!(written, format!(r#"{{{expected},"data":{{}}}}"#));
    }

    #[test]
    fn what_headers_lack_of_an_event_is_named() {
        let without = |gone: &[&str]| {
            let left: Vec<_> = HEADERS.into_iter().filter(|(name, _)| !gone.contains(name)).collect();
            of_headers(&left, false).unwrap_err()
        };
        let text = "Cloud Event Exceptions: Missing required keys: {'id', 'type'}";
        assert_eq!(without(&["id", "type"]), text);
        assert_eq!(without(&["specversion"]), "Cloud Event Exceptions: Failed to find specversion in HTTP request");
        let other = [("specversion", "2.0")];
        assert_eq!(of_headers(&other, false).unwrap_err(), "Cloud Event Exceptions: Found invalid specversion 2.0");
    }

    #[test]
    fn data_is_a_member_of_an_event_in_one_object() {
        let head = r#""specversion":"1.0","id":"1","source":"s","type":"t""#;
        let (data, event) = opened(&format!(r#"{{{head},"data": {{"instances":[1]}} }}"#), false).unwrap();
        assert_eq!((data.as_str(), event.mode), (r#"{"instances":[1]}"#, CloudEventMode::Structured));
        for (text, expected) in [
            ("[1]", "the body is [1], expected an object of attributes"),
            (r#"{"data":1}"#, "Failed to find specversion in HTTP request"),
            (r#"{"specversion":"1.0","id":"1","type":"t","data":1}"#, "Missing required keys: {'source'}"),
            (r#"{"specversion":"7","data":1}"#, r#"Found invalid specversion "7""#),
            (r#"{"specversion":1.0,"data":1}"#, "Found invalid specversion 1.0"),
            (&format!("{{{head}}}"), "Missing required keys: {'data'}"),
            (&format!(r#"{{{head},"data_base64":"e30="}}"#), "the data is in 'data_base64', expected JSON in 'data'"),
        ] {
            assert_eq!(opened(text, false).unwrap_err(), format!("Cloud Event Exceptions: {expected}"), "{text}");
        }
    }

    #[test]
    fn attributes_to_repeat_are_bounded() {
        let with = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!(r#""x{number}":1,"#)).collect();
            format!(r#"{{{}"specversion":"1.0","id":"1","source":"s","type":"t","data":1}}"#, names.concat())
        };
        assert!(opened(&with(CLOUD_EVENT_MAX_ATTRIBUTES - 1), true).is_ok());
        let error = opened(&with(CLOUD_EVENT_MAX_ATTRIBUTES), true).unwrap_err();
        assert_eq!(error, "Cloud Event Exceptions: the event has more than 64 attributes");
        assert!(opened(&with(1000), false).is_ok());
    }

    #[test]
    fn a_moment_has_a_date_of_the_calendar() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_767_225_599, "2025-12-31T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(time_text(unix_s * 1_000_000_000 + 1_234_567), format!("{text}.001234+00:00"));
        }
    }
}

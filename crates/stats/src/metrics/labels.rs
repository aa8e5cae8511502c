//! The labels of a sample, in the order in which Triton prints them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use super::text::escape;

/// Labels, sorted by name: dashboards and tests compare the text of samples.
///
/// `le` and `quantile` are no labels of this kind: they stand behind all others. Source: Triton's exposition, which
/// the C++ library of Prometheus writes from a sorted map.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    values: BTreeMap<String, String>,
    text: String,
}

impl Labels {
    /// The labels of a model version; its tags carry an underscore in front. Source: Triton's metrics.
    pub fn of_model(model: &str, version: i64, namespace: &str, tags: &BTreeMap<String, String>) -> Labels {
        let mut values: BTreeMap<String, String> =
            tags.iter().map(|(key, value)| (format!("_{key}"), value.clone())).collect();
        values.insert("model".to_owned(), model.to_owned());
        values.insert("version".to_owned(), version.to_string());
        if !namespace.is_empty() {
            values.insert("namespace".to_owned(), namespace.to_owned());
        }
        Labels::from(values)
    }

    /// These labels with one more.
    pub fn with(&self, name: &str, value: &str) -> Labels {
        let mut values = self.values.clone();
        values.insert(name.to_owned(), value.to_owned());
        Labels::from(values)
    }
}

impl From<BTreeMap<String, String>> for Labels {
    fn from(values: BTreeMap<String, String>) -> Labels {
        let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        Labels { text: pairs.join(","), values }
    }
}

/// The text between the braces of a sample.
impl Deref for Labels {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_by_name_whatever_they_are() {
        let tags = BTreeMap::from([("team".to_owned(), "a\"b".to_owned()), ("Zone".to_owned(), "z".to_owned())]);
        let labels = Labels::of_model("m", 1, "/models", &tags);
        assert_eq!(&*labels, r#"_Zone="z",_team="a\"b",model="m",namespace="/models",version="1""#);
        let plain = Labels::of_model("m", 2, "", &BTreeMap::new());
        assert_eq!(&*plain.with("reason", "OTHER"), r#"model="m",reason="OTHER",version="2""#);
        assert_eq!(&*plain.with("instance", "m_0_0"), r#"instance="m_0_0",model="m",version="2""#);
    }
}

//! The text exposition format of Prometheus: families, and samples of them.

use std::fmt::Write;

/// Escapes a label's value. Source: Prometheus text exposition format.
pub fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Appends a family with one sample, which needs no labels.
pub fn gauge(text: &mut String, name: &str, help: &str, value: f64) {
    family(text, name, help, "gauge");
    let _ = writeln!(text, "{name} {value}");
}

/// Appends what stands above the samples of a family.
pub fn family(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Appends a sample.
pub fn sample(text: &mut String, name: &str, labels: &str, value: f64) {
    let _ = writeln!(text, "{name}{{{labels}}} {value}");
}

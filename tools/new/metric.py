"""A metric of each model version: its count in the statistics, its family, its line in the reference, its tests."""

from __future__ import annotations

import argparse
import re

from names import word
from plan import Plan, Refused

STATISTICS, METRICS = "crates/stats/src/statistics.rs", "crates/stats/src/metrics.rs"
PAGE = "docs/reference/metrics.md"
_PREFIX = "alipes_"
_EXPOSITION = "pub fn exposition(rows: &[ModelRow], cpu: Option<CpuGauges>, choice: &Choice<'_>) -> String {"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the recipe's arguments."""
    parser.add_argument("name", help="such as alipes_late_answers_total, a counter, or alipes_open_files, a gauge")


def plan(plan: Plan, options: argparse.Namespace) -> None:
    """Plans the files."""
    name: str = options.name
    if not name.startswith(_PREFIX):
        raise Refused(f"'{name}' does not begin with {_PREFIX}, as every metric does that Triton does not have")
    is_counter = name.endswith("_total")
    field = word(name.removeprefix(_PREFIX).removesuffix("_total"), "metric")
    taken = re.search(rf"\b(pub {field}:|fn (set_)?{field}\b)", plan.text(STATISTICS))
    if taken or f'"{name}"' in plan.text(METRICS) or f"`{name}`" in plan.text(PAGE):
        raise Refused(f"the statistics have '{field}', or the metrics '{name}', already")
    plan.insert(STATISTICS, f"/// todo: what it counts.\npub {field}: u64,", inside=["pub struct Snapshot {"])
    plan.insert(STATISTICS, _recorded(field, is_counter=is_counter), inside=["impl Statistics {"])
    kind = "counter" if is_counter else "gauge"
    family = f"""
        let (name, help) = ("{name}", "todo: what it counts");
        series(&mut text, name, help, "{kind}", rows, |row| row.statistics.{field} as f64);
    """
    plan.insert(METRICS, family, inside=[_EXPOSITION], before="if let Some(cpu) = cpu {")
    plan.insert(METRICS, _test(name, field, kind), inside=["mod tests {"])
    row = f"| `{name}` | {kind} | model | todo: what it counts |"
    plan.insert_row(PAGE, row, heading="# Metrics", before="| `nv_cpu_utilization` ")
    plan.then(f"call `{'' if is_counter else 'set_'}{field}` of the version's statistics where it happens")
    plan.then("cargo test -p alipes-stats metrics")
    plan.then("make t T=tests/docs/test_reference.py")


def _recorded(field: str, *, is_counter: bool) -> str:
    if is_counter:
        return f"""

            /// todo: when to call this; it counts one.
            pub fn {field}(&self) {{
                self.inner.lock().{field} += 1;
            }}
        """
    return f"""

        /// todo: when to call this; it sets the gauge.
        pub fn set_{field}(&self, value: u64) {{
            self.inner.lock().{field} = value;
        }}
    """


def _test(name: str, field: str, kind: str) -> str:
    call, value = (f"{field}()", 1) if kind == "counter" else (f"set_{field}(3)", 3)
    return f"""

        #[test]
        fn {field}_of_a_model_is_exposed() {{
            let name = "{name}";
            let statistics = crate::statistics::Statistics::default();
            statistics.{call};
            let row = ModelRow {{ statistics: statistics.snapshot(), ..row() }};
            let sample = format!("# TYPE {{name}} {kind}\\n{{name}}{{{{{{}}}}}} {value}\\n", row.labels);
            let text = exposition(&[row], None, &PLAIN);
            assert!(text.contains(&sample), "{{text}}");
        }}
    """

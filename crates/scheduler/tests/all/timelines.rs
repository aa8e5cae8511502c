//! The timelines of `docs/explanation/scheduling.md` are what the scheduler does.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::stage::{ExecutedBatch, Stage};
use crate::common::{ms, policy, request};
use alipes_scheduler::DynamicPolicy;

const PAGE: &str = include_str!("../../../../docs/explanation/scheduling.md");

/// How long each batch runs, whatever its size.
const COMPUTE: Duration = Duration::from_millis(60);

/// One character of a drawing.
const STEP: Duration = Duration::from_millis(5);

/// Requests by name: when they come, and their rows. Source: the example of Triton's tutorial on concurrent execution,
/// where A and C come at 0, B a third of a turn later, D and E two thirds of a turn later.
const FIVE: [(char, u64, u32); 5] = [('A', 0, 4), ('C', 0, 2), ('B', 20, 2), ('D', 40, 6), ('E', 40, 2)];

/// Lets the requests come as they do, and tells what ran and when all was done.
fn run(batching: Option<DynamicPolicy>, instances: usize) -> (Vec<ExecutedBatch>, Duration) {
    let mut stage = Stage::new(batching, instances, COMPUTE);
    let mut now = 0;
    for (id, (_, comes, rows)) in FIVE.into_iter().enumerate() {
        if comes > now {
            stage.run_until(ms(comes));
            now = comes;
        }
        stage.submit(request(id, rows));
    }
    let end = stage.run_out();
    (stage.executed, end)
}

/// A row per instance, a bracket per batch with the names of its requests.
fn draw(title: &str, batching: Option<DynamicPolicy>, instances: usize) -> String {
    let (executed, end) = run(batching, instances);
    let mut rows: BTreeMap<usize, String> = (0..instances).map(|instance| (instance, String::new())).collect();
    let steps = |span: Duration| (span.as_millis() / STEP.as_millis()) as usize;
    for ExecutedBatch { at, instance, ids } in &executed {
        let names: String = ids.iter().map(|&id| FIVE[id].0).collect();
        let row = rows.get_mut(instance).expect("an instance that there is");
        row.push_str(&" ".repeat(steps(*at) - row.len()));
        row.push_str(&format!("[{names:width$}]", width = steps(COMPUTE) - 2));
    }
    let turns = end.as_millis() as f64 / COMPUTE.as_millis() as f64;
    let lines = rows.into_values().map(|row| format!("  {row}\n"));
    format!("{title}: {} ms, {turns:.1} turns\n{}", end.as_millis(), lines.collect::<String>())
}

#[test]
fn the_page_shows_the_five_requests_as_the_scheduler_runs_them() {
    let dynamic = |delay| Some(policy(8, &[8], ms(delay)));
    let drawn = [
        draw("one by one", None, 1),
        draw("dynamic batching", dynamic(0), 1),
        draw("dynamic batching, delay of 30 ms", dynamic(30), 1),
        draw("two instances, one by one", None, 2),
        draw("two instances, dynamic batching", dynamic(0), 2),
        draw("two instances, dynamic batching, delay of 30 ms", dynamic(30), 2),
    ]
    .join("\n");
    assert!(PAGE.contains(&drawn), "the page should show:\n{drawn}");
}

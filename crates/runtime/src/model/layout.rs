//! What is unusual about the batches of a model, in the engine's terms.

use alipes_engine::batch::{Layout, MadeInput, MadeKind};
use alipes_engine::onnxruntime::DeclaredPort;
use alipes_spec::{BatchInputKind, BatchInputSpec, ModelSpec, Port};

/// How the model's batches are laid out; none where all is joined along the first dimension, which is almost always.
///
/// What is made of the batch has the positions behind the inputs that requests give, in the configuration's order.
pub fn of(spec: &ModelSpec) -> Option<Box<Layout>> {
    let ragged: Vec<usize> =
        (0..).zip(&spec.inputs).filter(|(_, port)| port.allow_ragged_batch).map(|(at, _)| at).collect();
    if ragged.is_empty() && spec.batch_inputs.is_empty() && spec.batch_outputs.is_empty() {
        return None;
    }
    let targets = spec.batch_inputs.iter().flat_map(|made| made.targets.iter().map(move |_| made));
    let made = targets.zip(spec.inputs.len()..).filter_map(|(made, index)| {
        let source = position(&spec.inputs, &made.source)?;
        Some(MadeInput { index, kind: kind(made.kind), datatype: made.datatype, source })
    });
    let scattered =
        spec.batch_outputs.iter().flat_map(|cut| cut.targets.iter().map(move |target| (target, &cut.source)));
    let scattered = scattered
        .filter_map(|(target, source)| Some((position(&spec.outputs, target)?, position(&spec.inputs, source)?)));
    Some(Box::new(Layout { ragged, made: made.collect(), scattered: scattered.collect() }))
}

/// What the model file has to take besides what requests give.
pub fn made_ports(spec: &ModelSpec) -> Vec<DeclaredPort<'_>> {
    let mut ports = Vec::new();
    for BatchInputSpec { kind, targets, datatype, source } in &spec.batch_inputs {
        let rank = position(&spec.inputs, source).map_or(0, |at| spec.inputs[at].dims.len());
        let dims = dims(*kind, rank, spec.max_batch_size > 0);
        let port = |name| DeclaredPort { name, datatype: *datatype, dims, optional: false, ragged: false };
        ports.extend(targets.iter().map(|name| port(name)));
    }
    ports
}

/// The declared sizes of what is made, without the batch dimension where the model has one.
fn dims(kind: BatchInputKind, rank: usize, batches: bool) -> &'static [i64] {
    const SIZES: [i64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    match (kind, batches) {
        (BatchInputKind::BatchItemShape, true) => {
            rank.checked_sub(1).and_then(|at| SIZES.get(at..=at)).unwrap_or(&[-1])
        }
        (BatchInputKind::BatchItemShape, false) => &[-1, -1],
        (_, true) => &[],
        (_, false) => &[-1],
    }
}

fn position(ports: &[Port], name: &str) -> Option<usize> {
    ports.iter().position(|port| port.name == name)
}

fn kind(kind: BatchInputKind) -> MadeKind {
    match kind {
        BatchInputKind::BatchElementCount => MadeKind::ElementCount,
        BatchInputKind::BatchAccumulatedElementCount => MadeKind::AccumulatedElementCount,
        BatchInputKind::BatchAccumulatedElementCountWithZero => MadeKind::AccumulatedElementCountWithZero,
        BatchInputKind::BatchMaxElementCountAsShape => MadeKind::MaxElementCountAsShape,
        BatchInputKind::BatchItemShape => MadeKind::ItemShape,
        BatchInputKind::BatchItemShapeFlatten => MadeKind::ItemShapeFlatten,
    }
}

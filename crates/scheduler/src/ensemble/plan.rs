//! What has to run for the outputs that a caller wants.

use super::graph::{Step, Tensor};

/// The part of an ensemble that some outputs need. Steps that feed nothing wanted are not called.
#[derive(Debug)]
pub(super) struct Plan {
    /// The wanted outputs, in the caller's order.
    pub(super) outputs: Vec<usize>,
    /// By step: whether it is called.
    pub(super) called: Vec<bool>,
    /// By tensor: how often its value is taken, by steps that are called and by the caller.
    pub(super) uses: Vec<usize>,
    /// By tensor: whether the caller wants it.
    pub(super) wanted: Vec<bool>,
}

impl Plan {
    pub(super) fn new(steps: &[Step], tensors: &[Tensor], outputs: Vec<usize>) -> Plan {
        let mut called = vec![false; steps.len()];
        let mut needed = outputs.clone();
        while let Some(tensor) = needed.pop() {
            if let Some(maker) = tensors[tensor].maker.filter(|&maker| !called[maker]) {
                called[maker] = true;
                needed.extend(&steps[maker].inputs);
            }
        }
        let mut wanted = vec![false; tensors.len()];
        outputs.iter().for_each(|&output| wanted[output] = true);
        let takers = |tensor: &Tensor| tensor.takers.iter().filter(|&&step| called[step]).count();
        let uses = tensors.iter().zip(&wanted).map(|(tensor, &wanted)| takers(tensor) + usize::from(wanted)).collect();
        Plan { outputs, called, uses, wanted }
    }
}

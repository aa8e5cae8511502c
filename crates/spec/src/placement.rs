//! Where an instance runs.

use serde::{Deserialize, Serialize};

/// Kind of an instance, and the number of its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Where it runs.
    pub kind: InstanceKind,
    /// Number of its GPU, as CUDA counts them; 0 elsewhere.
    pub device_id: u32,
}

impl Placement {
    /// The number of its GPU; none where it runs elsewhere.
    pub fn gpu(self) -> Option<u32> {
        (self.kind == InstanceKind::Gpu).then_some(self.device_id)
    }
}

/// Where an instance runs, in the words that a `model.py` reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum InstanceKind {
    /// The processor.
    #[default]
    Cpu,
    /// A GPU.
    Gpu,
    /// The model decides.
    Model,
}

//! A model's declaration, against which plain calls are checked and encoded without Python's help.

use alipes_client::{Incoming, Outgoing, Wire};
use alipes_protocol::codec::proto::{MessageInput, RequestMessage};
use alipes_protocol::{Datatype, Shape};
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use smallvec::SmallVec;

use super::errors::wrong;
use super::{outputs, requests};
use crate::worker::arrays::{self, Elements, Memory};

/// Calls with more bytes than this are made the general way, which sends large arrays from where they lie.
const PLAIN_BYTES: usize = 64 * 1024;

/// What a model takes, in the order in which it is sent.
#[pyclass(frozen, module = "alipes._core")]
pub struct ClientPlan {
    model: String,
    inputs: Vec<Port>,
}

struct Port {
    name: String,
    key: Py<PyString>,
    datatype: Datatype,
    shape: Shape,
}

/// A call that is on its way, and whether its caller named no input and is answered likewise.
pub struct Planned {
    pub request: Outgoing,
    pub single: bool,
}

#[pymethods]
impl ClientPlan {
    #[new]
    fn new(model: String, inputs: Vec<(Bound<'_, PyString>, String, Vec<i64>)>) -> PyResult<ClientPlan> {
        let inputs = inputs.into_iter().map(|(name, datatype, shape)| {
            let datatype = Datatype::from_name(&datatype)
                .ok_or_else(|| wrong(format!("input '{name}' has the unknown datatype '{datatype}'")))?;
            Ok(Port { name: name.to_str()?.to_owned(), key: name.unbind(), datatype, shape: shape.into() })
        });
        Ok(ClientPlan { model, inputs: inputs.collect::<PyResult<_>>()? })
    }
}

impl ClientPlan {
    /// The request; `None` for inputs that need conversion or an error text, or that are large.
    pub fn encode(&self, inputs: &Bound<'_, PyAny>, wire: Wire) -> PyResult<Option<Planned>> {
        let mut memories: SmallVec<[Memory; 4]> = SmallVec::new();
        let single = match inputs.cast::<PyUntypedArray>() {
            Ok(array) => {
                let [port] = &self.inputs[..] else { return Ok(None) };
                let Some(memory) = port.memory(array) else { return Ok(None) };
                memories.push(memory);
                true
            }
            Err(_) => {
                let Ok(named) = inputs.cast_exact::<PyDict>() else { return Ok(None) };
                if named.len() != self.inputs.len() {
                    return Ok(None);
                }
                for port in &self.inputs {
                    let value = named.get_item(&port.key)?;
                    let array = value.as_ref().and_then(|value| value.cast::<PyUntypedArray>().ok());
                    let Some(memory) = array.and_then(|array| port.memory(array)) else { return Ok(None) };
                    memories.push(memory);
                }
                false
            }
        };
        if memories.iter().map(|memory| memory.bytes).sum::<usize>() > PLAIN_BYTES {
            return Ok(None);
        }
        let ports = self.inputs.iter().zip(&memories);
        let inputs: SmallVec<[MessageInput<'_>; 4]> = ports.map(|(port, memory)| port.message_input(memory)).collect();
        let message = RequestMessage { model_name: &self.model, inputs: &inputs, ..RequestMessage::default() };
        Ok(Some(Planned { request: requests::encode(&message, wire, |_| None), single }))
    }
}

impl Port {
    /// Where an array's elements lie, if it can be sent as it is.
    fn memory(&self, array: &Bound<'_, PyUntypedArray>) -> Option<Memory> {
        let Some(Elements::Fixed(datatype)) = arrays::elements(array) else { return None };
        if datatype != self.datatype || !arrays::is_tidy(array) {
            return None;
        }
        let memory = arrays::memory(array, datatype, datatype.size()?);
        let fits = |(declared, seen): (&i64, &i64)| *declared == -1 || declared == seen;
        let fitting = memory.shape.len() == self.shape.len() && self.shape.iter().zip(&memory.shape).all(fits);
        fitting.then_some(memory)
    }

    fn message_input<'a>(&'a self, memory: &'a Memory) -> MessageInput<'a> {
        // SAFETY: the array has so many bytes at this address and is held by the caller, as the interpreter is, until
        // the request is encoded. A thread that writes to them meanwhile has a mixture of old and new bytes sent, as
        // with any library that reads arrays which other threads write to.
        let data = unsafe { std::slice::from_raw_parts(memory.data.as_ptr(), memory.bytes) };
        MessageInput {
            name: &self.name,
            datatype: self.datatype.name(),
            shape: &memory.shape,
            parameters: &[],
            data: Some(data),
        }
    }
}

/// An answer as its caller gets it: arrays by name, or the single one of a call whose input was not named.
pub fn answer<'py>(py: Python<'py>, answer: &Incoming, single: bool) -> PyResult<Bound<'py, PyAny>> {
    let Incoming::Reply(reply) = answer else { return Err(wrong("the answer is none to an inference")) };
    if let Some(index) = reply.elsewhere.first() {
        let name = reply.outputs.get(*index).map_or("", |output| &output.name);
        return Err(outputs::missing(py, name));
    }
    match &reply.outputs[..] {
        [output] if single => outputs::array(py, output),
        all => outputs::dictionary(py, all).map(Bound::into_any),
    }
}

//! Control inputs: the start, end, readiness and correlation id of a sequence.

use alipes_protocol::{CorrelationId, Datatype, SequenceInfo, Shape};
use alipes_spec::{ControlKind, ControlSpec};
use bytes::{BufMut, Bytes, BytesMut};
use smallvec::smallvec;

/// Where the sequence of a row stands.
#[derive(Clone, Copy, Debug)]
pub enum Standing<'a> {
    /// There is a request, which says this.
    Ready(&'a SequenceInfo),
    /// There is none.
    Empty,
}

/// The inputs that tell a model where a sequence stands.
#[derive(Debug)]
pub struct Controls {
    /// In the configuration's order.
    pub list: Vec<Control>,
    /// Their common shape: one element, with a batch dimension where the model batches.
    pub shape: Shape,
}

/// One of them.
#[derive(Debug)]
pub struct Control {
    /// Name of the tensor.
    pub name: String,
    /// Its element type.
    pub datatype: Datatype,
    kind: ControlKind,
    /// What stands for false and for true.
    values: [Bytes; 2],
}

impl Controls {
    /// As the specification says.
    pub fn new(controls: &[ControlSpec], batches: bool) -> Controls {
        let list = controls.iter().map(Control::new).collect();
        Controls { list, shape: if batches { smallvec![1, 1] } else { smallvec![1] } }
    }
}

impl Control {
    fn new(spec: &ControlSpec) -> Control {
        let values = spec.false_true.map_or_else(Default::default, |values| values.map(|value| element(spec, value)));
        Control { name: spec.name.clone(), datatype: spec.datatype, kind: spec.kind, values }
    }

    /// The tensor's bytes for a row.
    pub fn data(&self, standing: Standing<'_>) -> Bytes {
        let truth = |holds: bool| self.values[usize::from(holds)].clone();
        match (self.kind, standing) {
            (ControlKind::Corrid, Standing::Ready(sequence)) => self.id(&sequence.correlation_id),
            (ControlKind::Corrid, Standing::Empty) => self.id(&CorrelationId::Number(0)),
            (_, Standing::Empty) => truth(false),
            (ControlKind::Ready, Standing::Ready(_)) => truth(true),
            (ControlKind::Start, Standing::Ready(sequence)) => truth(sequence.start),
            (ControlKind::End, Standing::Ready(sequence)) => truth(sequence.end),
        }
    }

    /// An id as the model wants it: cut to the bits that its type has. Where the kinds differ, a number is a text of
    /// its digits, and a text is what Triton leaves of it in a number: its length in 32 bits, and its first bytes.
    fn id(&self, id: &CorrelationId) -> Bytes {
        match (id, self.datatype.size()) {
            (CorrelationId::Number(number), Some(size)) => Bytes::copy_from_slice(&number.to_le_bytes()[..size]),
            (CorrelationId::Text(text), Some(size)) => {
                let mut number = BytesMut::from(&packed(text)[..]);
                number.resize(size, 0);
                number.freeze()
            }
            (CorrelationId::Number(0), None) => packed(""),
            (CorrelationId::Number(number), None) => packed(&number.to_string()),
            (CorrelationId::Text(text), None) => packed(text),
        }
    }
}

/// A value of a configuration in the control's element type.
fn element(spec: &ControlSpec, value: f64) -> Bytes {
    match spec.datatype {
        Datatype::Fp32 => Bytes::copy_from_slice(&(value as f32).to_le_bytes()),
        Datatype::Bool => Bytes::copy_from_slice(&[u8::from(value != 0.0)]),
        _ => Bytes::copy_from_slice(&(value as i32).to_le_bytes()),
    }
}

fn packed(text: &str) -> Bytes {
    let mut packed = BytesMut::with_capacity(4 + text.len());
    packed.put_u32_le(text.len() as u32);
    packed.put_slice(text.as_bytes());
    packed.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(kind: ControlKind, datatype: Datatype, false_true: Option<[f64; 2]>) -> Control {
        Control::new(&ControlSpec { name: "C".to_owned(), kind, datatype, false_true })
    }

    fn sequence(correlation_id: CorrelationId, start: bool, end: bool) -> SequenceInfo {
        SequenceInfo { correlation_id, start, end }
    }

    #[test]
    fn truths_have_the_values_of_the_configuration() {
        let first = sequence(CorrelationId::Number(7), true, false);
        let of = |kind, datatype, values| {
            let control = control(kind, datatype, Some(values));
            [control.data(Standing::Ready(&first)), control.data(Standing::Empty)]
        };
        assert_eq!(of(ControlKind::Start, Datatype::Int32, [5.0, 7.0]), [&7i32.to_le_bytes()[..], &5i32.to_le_bytes()]);
        assert_eq!(
            of(ControlKind::End, Datatype::Fp32, [-1.0, 2.0]),
            [&(-1f32).to_le_bytes()[..], &(-1f32).to_le_bytes()]
        );
        assert_eq!(of(ControlKind::Ready, Datatype::Bool, [0.0, 1.0]), [&[1u8][..], &[0]]);
    }

    #[test]
    fn an_id_is_cut_to_the_type_of_its_tensor() {
        let of = |datatype, id| {
            let sequence = sequence(id, false, false);
            control(ControlKind::Corrid, datatype, None).data(Standing::Ready(&sequence))
        };
        let wide = (1u64 << 32) + 5;
        assert_eq!(of(Datatype::Uint64, CorrelationId::Number(wide)), &wide.to_le_bytes()[..]);
        assert_eq!(of(Datatype::Int32, CorrelationId::Number(wide)), &5i32.to_le_bytes()[..]);
        assert_eq!(of(Datatype::Bytes, CorrelationId::Text("ab".to_owned())), &b"\x02\0\0\0ab"[..]);
        assert_eq!(of(Datatype::Bytes, CorrelationId::Number(12)), &b"\x02\0\0\x0012"[..]);
        assert_eq!(of(Datatype::Uint64, CorrelationId::Text("ab".to_owned())), &b"\x02\0\0\0ab\0\0"[..]);
        assert_eq!(of(Datatype::Uint64, CorrelationId::Text("alphabet".to_owned())), &b"\x08\0\0\0alph"[..]);
        assert_eq!(of(Datatype::Int32, CorrelationId::Text("alphabet".to_owned())), &b"\x08\0\0\0"[..]);
    }
}

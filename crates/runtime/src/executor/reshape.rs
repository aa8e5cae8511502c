//! From the shape that a backend gives to the shape that its configuration promises on the wire.

use alipes_protocol::Shape;
use alipes_spec::Port;

/// The wire shape of an output: the declared sizes where the configuration reshapes, with the backend's own sizes, in
/// their order, in place of wildcards.
pub fn wire_shape(port: &Port, batches: bool, shape: Shape) -> Shape {
    let Some(reshape) = &port.reshape else { return shape };
    let batch = usize::from(batches).min(shape.len());
    let sizes = &shape[batch..];
    let mut open = reshape.iter().zip(sizes).filter(|(declared, _)| **declared < 0).map(|(_, &size)| size);
    let mut wire: Shape = shape[..batch].iter().copied().collect();
    wire.extend(port.dims.iter().map(|&size| if size < 0 { open.next().unwrap_or(size) } else { size }));
    wire
}

#[cfg(test)]
mod tests {
    use alipes_protocol::Datatype;

    use super::*;

    fn port(dims: &[i64], reshape: &[i64]) -> Port {
        Port {
            name: "Y".into(),
            datatype: Datatype::Fp32,
            dims: dims.to_vec(),
            reshape: Some(reshape.to_vec()),
            optional: false,
            allow_ragged_batch: false,
            labels: Vec::new(),
        }
    }

    #[test]
    fn a_scalar_per_row_becomes_one_element() {
        assert_eq!(wire_shape(&port(&[1], &[]), true, [3].into_iter().collect())[..], [3, 1]);
    }

    #[test]
    fn wildcards_keep_the_backends_sizes() {
        let shape = wire_shape(&port(&[-1, 4], &[2, -1, 2]), false, [2, 7, 2].into_iter().collect());
        assert_eq!(shape[..], [7, 4]);
    }
}

//! How far two answers to one request lie apart.

use alipes_protocol::Tensor;

use super::elements::elements_of;

/// The difference of outputs that cannot be subtracted: of other shapes or datatypes, of texts, of a number and none.
const UNLIKE: f64 = 1.0;

/// The outputs of either answer, each with how far the two lie apart: by the element that differs most, in parts of
/// its size, or as it is where both are smaller than one.
pub fn differences<'a>(first: &'a [Tensor], second: &'a [Tensor]) -> impl Iterator<Item = (&'a str, f64)> {
    let named = |outputs: &'a [Tensor], name: &str| outputs.iter().find(|output| *output.name == *name);
    let shared = first.iter().map(move |output| {
        (&*output.name, named(second, &output.name).map_or(UNLIKE, |other| difference(output, other)))
    });
    let further = second.iter().filter(move |output| named(first, &output.name).is_none());
    shared.chain(further.map(|output| (&*output.name, UNLIKE)))
}

fn difference(first: &Tensor, second: &Tensor) -> f64 {
    if first.datatype != second.datatype || first.shape != second.shape || first.data.len() != second.data.len() {
        return UNLIKE;
    }
    if first.data == second.data {
        return 0.0;
    }
    let Some((size, read)) = elements_of(first.datatype) else { return UNLIKE };
    let pairs = first.data.chunks_exact(size).zip(second.data.chunks_exact(size));
    pairs.map(|(one, other)| distance(read(one), read(other))).fold(0.0, f64::max)
}

fn distance(one: f64, other: f64) -> f64 {
    if one == other || (one.is_nan() && other.is_nan()) {
        return 0.0;
    }
    let distance = (one - other).abs() / one.abs().max(other.abs()).max(1.0);
    if distance.is_nan() { UNLIKE } else { distance }
}

#[cfg(test)]
mod tests {
    use alipes_protocol::Datatype;
    use bytes::Bytes;

    use super::*;

    fn floats(name: &str, values: &[f32]) -> Tensor {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let shape = [values.len() as i64].into_iter().collect();
        Tensor { name: name.into(), datatype: Datatype::Fp32, shape, data: Bytes::from(data) }
    }

    fn text(words: &'static [u8]) -> Tensor {
        let shape = [1].into_iter().collect();
        Tensor { name: "T".into(), datatype: Datatype::Bytes, shape, data: Bytes::from_static(words) }
    }

    fn of(first: &[f32], second: &[f32]) -> f64 {
        difference(&floats("Y", first), &floats("Y", second))
    }

    #[test]
    fn the_element_that_differs_most_counts() {
        assert_eq!(of(&[1.0, 0.5], &[1.0, 0.25]), 0.25);
        assert_eq!(of(&[100.0], &[50.0]), 0.5);
        assert_eq!(of(&[-1.0], &[1.0]), 2.0);
        assert_eq!(of(&[f32::NAN, f32::INFINITY], &[f32::NAN, f32::INFINITY]), 0.0);
    }

    #[test]
    fn what_cannot_be_subtracted_is_one_apart() {
        for (first, second) in [(f32::NAN, 0.0), (f32::INFINITY, 0.0), (f32::INFINITY, f32::NEG_INFINITY)] {
            assert_eq!(of(&[first], &[second]), UNLIKE, "{first} {second}");
        }
        assert_eq!(of(&[1.0], &[1.0, 1.0]), UNLIKE);
        assert_eq!(difference(&text(b"\x01\0\0\0a"), &text(b"\x01\0\0\0b")), UNLIKE);
        assert_eq!(difference(&text(b"\x01\0\0\0a"), &text(b"\x01\0\0\0a")), 0.0);
    }

    #[test]
    fn outputs_are_compared_by_name_and_none_is_left_out() {
        let (first, second) = ([floats("A", &[1.0]), floats("B", &[1.0])], [floats("C", &[1.0]), floats("B", &[1.5])]);
        let found: Vec<(&str, f64)> = differences(&first, &second).collect();
        assert_eq!(found, [("A", UNLIKE), ("B", 0.5 / 1.5), ("C", UNLIKE)]);
    }
}

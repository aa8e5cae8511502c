//! Classification: the best classes of an output instead of its values.

use alipes_protocol::shape::{self, Shape};
use alipes_protocol::{Datatype, InferError, Tensor, limits};
use bytes::{BufMut, BytesMut};

/// The best classes of each row as BYTES elements `value:index`, with `:label` where the class has one, best first.
///
/// The shape is `[rows, classes]`, without the rows where the model does not batch; a row with fewer elements gives
/// them all. Equal values stay in the order of their indexes.
///
/// # Errors
///
/// `InvalidArgument` for a datatype whose values have no order here, or for too many elements.
pub fn best_classes(tensor: &Tensor, batches: bool, classes: usize, labels: &[String]) -> Result<Tensor, InferError> {
    let sorted = sorter(tensor.datatype).ok_or_else(|| {
        InferError::invalid(format!(
            "class result not available for output due to unsupported type '{}'",
            tensor.datatype
        ))
    })?;
    let elements = shape::element_count(&tensor.shape).unwrap_or(usize::MAX);
    if elements > limits::CLASSIFICATION_MAX_ELEMENTS {
        return Err(InferError::invalid("classification output tensor too large"));
    }
    let rows = if batches { tensor.shape.first().map_or(1, |&rows| usize::try_from(rows).unwrap_or(0)) } else { 1 };
    let width = elements.checked_div(rows).unwrap_or(0);
    let top = classes.min(width);
    let mut data = BytesMut::new();
    if width > 0 {
        let row_bytes = tensor.data.len() / rows;
        tensor.data.chunks_exact(row_bytes).for_each(|row| sorted(row, top, labels, &mut data));
    }
    let sizes = batches.then_some(rows).into_iter().chain([top]);
    let shape: Shape = sizes.map(|size| i64::try_from(size).unwrap_or(i64::MAX)).collect();
    Ok(Tensor { name: tensor.name.clone(), datatype: Datatype::Bytes, shape, data: data.freeze() })
}

type Sorter = fn(row: &[u8], top: usize, labels: &[String], data: &mut BytesMut);

/// How a row of this datatype is sorted and written; `None` where Triton refuses to.
fn sorter(datatype: Datatype) -> Option<Sorter> {
    /// One sorter per element type: its size, how it is read, how it is ordered, how it is written.
    macro_rules! sorter_of {
        ($element:ty, $order:expr, $text:expr) => {
            |row, top, labels, data| {
                const SIZE: usize = size_of::<$element>();
                let (elements, _) = row.as_chunks::<SIZE>();
                let values: Vec<$element> = elements.iter().map(|bytes| <$element>::from_le_bytes(*bytes)).collect();
                let descending =
                    |&one: &usize, &other: &usize| $order(&values[other], &values[one]).then(one.cmp(&other));
                let mut indexes: Vec<usize> = (0..values.len()).collect();
                if top < indexes.len() {
                    indexes.select_nth_unstable_by(top, descending);
                    indexes.truncate(top);
                }
                indexes.sort_unstable_by(descending);
                indexes.into_iter().for_each(|index| write_class($text(values[index]), index, labels, data));
            }
        };
    }
    let sorter: Sorter = match datatype {
        Datatype::Uint8 => sorter_of!(u8, u8::cmp, |value: u8| value.to_string()),
        Datatype::Uint16 => sorter_of!(u16, u16::cmp, |value: u16| value.to_string()),
        Datatype::Uint32 => sorter_of!(u32, u32::cmp, |value: u32| value.to_string()),
        Datatype::Uint64 => sorter_of!(u64, u64::cmp, |value: u64| value.to_string()),
        Datatype::Int8 => sorter_of!(i8, i8::cmp, |value: i8| value.to_string()),
        Datatype::Int16 => sorter_of!(i16, i16::cmp, |value: i16| value.to_string()),
        Datatype::Int32 => sorter_of!(i32, i32::cmp, |value: i32| value.to_string()),
        Datatype::Int64 => sorter_of!(i64, i64::cmp, |value: i64| value.to_string()),
        Datatype::Fp32 => sorter_of!(f32, f32::total_cmp, |value: f32| six_decimals(f64::from(value))),
        Datatype::Fp64 => sorter_of!(f64, f64::total_cmp, six_decimals),
        Datatype::Bool | Datatype::Fp16 | Datatype::Bf16 | Datatype::Bytes => return None,
    };
    Some(sorter)
}

/// A number as C's `%f` writes it. Source: Triton writes values with `std::to_string`.
fn six_decimals(value: f64) -> String {
    match value {
        value if value.is_nan() && value.is_sign_negative() => "-nan".to_owned(),
        value if value.is_nan() => "nan".to_owned(),
        value => format!("{value:.6}"),
    }
}

fn write_class(value: String, index: usize, labels: &[String], data: &mut BytesMut) {
    let mut text = format!("{value}:{index}");
    if let Some(label) = labels.get(index).filter(|label| !label.is_empty()) {
        text.push(':');
        text.push_str(label);
    }
    data.put_u32_le(u32::try_from(text.len()).unwrap_or(u32::MAX));
    data.put_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use alipes_protocol::codec::elements;
    use bytes::Bytes;

    use super::*;

    fn tensor(datatype: Datatype, shape: &[i64], data: Vec<u8>) -> Tensor {
        Tensor { name: "Y".into(), datatype, shape: shape.iter().copied().collect(), data: Bytes::from(data) }
    }

    fn fp32(shape: &[i64], values: &[f32]) -> Tensor {
        tensor(Datatype::Fp32, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    fn texts(tensor: &Tensor) -> Vec<String> {
        elements::iter(&tensor.data).map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }

    #[test]
    fn the_best_classes_of_each_row_come_first_with_their_labels() {
        let labels = ["ant".to_owned(), "bee".to_owned()];
        let classes = best_classes(&fp32(&[2, 3], &[0.5, 3.0, -1.0, 0.0, 0.1234567, 2.0]), true, 2, &labels).unwrap();
        assert_eq!((classes.datatype, &classes.shape[..]), (Datatype::Bytes, &[2, 2][..]));
        assert_eq!(texts(&classes), ["3.000000:1:bee", "0.500000:0:ant", "2.000000:2", "0.123457:1:bee"]);
    }

    #[test]
    fn a_model_without_batching_has_one_row_and_equal_values_keep_their_order() {
        let tensor = tensor(Datatype::Int8, &[2, 2], vec![5, 7, 5, 0xff]);
        let classes = best_classes(&tensor, false, 9, &[]).unwrap();
        assert_eq!(
            (&classes.shape[..], texts(&classes)),
            (&[4][..], ["7:1", "5:0", "5:2", "-1:3"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn values_without_an_order_are_sorted_all_the_same() {
        let classes = best_classes(&fp32(&[3], &[f32::INFINITY, f32::NAN, f32::NEG_INFINITY]), false, 3, &[]).unwrap();
        assert_eq!(texts(&classes), ["nan:1", "inf:0", "-inf:2"]);
    }

    #[test]
    fn no_rows_and_no_elements_give_no_classes() {
        for shape in [[0, 3], [3, 0]] {
            let classes = best_classes(&fp32(&shape, &[]), true, 2, &[]).unwrap();
            assert!(classes.data.is_empty());
            assert_eq!(shape::element_count(&classes.shape), Some(0));
        }
    }

    #[test]
    fn datatypes_that_triton_does_not_classify_are_refused() {
        for datatype in [Datatype::Bool, Datatype::Fp16, Datatype::Bf16, Datatype::Bytes] {
            let refused = best_classes(&tensor(datatype, &[0], Vec::new()), false, 1, &[]).unwrap_err();
            let text = format!("class result not available for output due to unsupported type '{datatype}'");
            assert_eq!(refused, InferError::invalid(text));
        }
    }

    #[test]
    fn too_many_elements_are_refused() {
        let many = tensor(Datatype::Uint8, &[1_000_001], vec![0; 1_000_001]);
        let refused = best_classes(&many, false, 1, &[]).unwrap_err();
        assert_eq!(refused, InferError::invalid("classification output tensor too large"));
    }
}

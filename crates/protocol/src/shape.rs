//! Shapes and the checked arithmetic on them.

use smallvec::SmallVec;

/// Sizes of a tensor's dimensions; `-1` stands for "any" where a model describes itself, never in a request.
pub type Shape = SmallVec<[i64; 6]>;

/// Number of elements of a tensor with this shape, or `None` where a size is negative or the product exceeds `i64`.
///
/// An empty shape is a scalar and has one element.
pub fn element_count(shape: &[i64]) -> Option<usize> {
    let mut count: i64 = 1;
    for &size in shape {
        if size < 0 {
            return None;
        }
        count = count.checked_mul(size)?;
    }
    usize::try_from(count).ok()
}

/// The shape as Triton prints it: `[2,3]`.
pub fn text(shape: &[i64]) -> String {
    let sizes: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("[{}]", sizes.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_past_i64_is_refused() {
        assert_eq!(element_count(&[i64::MAX, 2]), None);
        assert_eq!(element_count(&[1 << 40, 1 << 40]), None);
    }

    #[test]
    fn a_scalar_has_one_element_and_an_empty_dimension_none() {
        assert_eq!(element_count(&[]), Some(1));
        assert_eq!(element_count(&[3, 0, 5]), Some(0));
        assert_eq!(element_count(&[2, -1]), None);
    }

    #[test]
    fn shapes_print_as_in_error_texts() {
        assert_eq!(text(&[-1, 4]), "[-1,4]");
        assert_eq!(text(&[]), "[]");
    }
}

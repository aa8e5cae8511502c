//! Elements that a server wrote as JSON, since it knows no binary tensors.

use alipes_protocol::Datatype;
use bytes::Bytes;
use serde_json::Value;

/// The values, nested in any way, as bytes of the datatype; `None` where one is not of it.
pub fn bytes(values: &Value, datatype: Datatype) -> Option<Bytes> {
    let mut bytes = Vec::new();
    put(values, datatype, &mut bytes)?;
    Some(bytes.into())
}

fn put(value: &Value, datatype: Datatype, bytes: &mut Vec<u8>) -> Option<()> {
    if let Value::Array(values) = value {
        return values.iter().try_for_each(|value| put(value, datatype, bytes));
    }
    match datatype {
        Datatype::Bool => bytes.push(u8::from(value.as_bool()?)),
        Datatype::Uint8 => bytes.push(u8::try_from(value.as_u64()?).ok()?),
        Datatype::Uint16 => bytes.extend(u16::try_from(value.as_u64()?).ok()?.to_le_bytes()),
        Datatype::Uint32 => bytes.extend(u32::try_from(value.as_u64()?).ok()?.to_le_bytes()),
        Datatype::Uint64 => bytes.extend(value.as_u64()?.to_le_bytes()),
        Datatype::Int8 => bytes.extend(i8::try_from(value.as_i64()?).ok()?.to_le_bytes()),
        Datatype::Int16 => bytes.extend(i16::try_from(value.as_i64()?).ok()?.to_le_bytes()),
        Datatype::Int32 => bytes.extend(i32::try_from(value.as_i64()?).ok()?.to_le_bytes()),
        Datatype::Int64 => bytes.extend(value.as_i64()?.to_le_bytes()),
        Datatype::Fp32 => bytes.extend((value.as_f64()? as f32).to_le_bytes()),
        Datatype::Fp64 => bytes.extend(value.as_f64()?.to_le_bytes()),
        Datatype::Bytes => {
            let text = value.as_str()?.as_bytes();
            bytes.extend(u32::try_from(text.len()).ok()?.to_le_bytes());
            bytes.extend(text);
        }
        // The protocol has no JSON for them.
        Datatype::Fp16 | Datatype::Bf16 => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_keep_their_order_however_they_are_nested() {
        assert_eq!(bytes(&json!([[1, 2], [3]]), Datatype::Uint8).unwrap().as_ref(), [1, 2, 3]);
        assert_eq!(bytes(&json!(["ab"]), Datatype::Bytes).unwrap().as_ref(), b"\x02\0\0\0ab");
        assert_eq!(bytes(&json!([1.5]), Datatype::Fp32).unwrap().as_ref(), 1.5f32.to_le_bytes());
        assert_eq!(bytes(&json!([300]), Datatype::Uint8), None);
    }
}

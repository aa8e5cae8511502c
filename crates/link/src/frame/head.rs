//! What requests and calls have in common: sequence membership and parameters.

use alipes_protocol::{CorrelationId, Parameter};

use super::{Malformed, Reader, Writer};

pub(crate) fn write_correlation(writer: &mut Writer<'_>, id: &CorrelationId) {
    match id {
        CorrelationId::Number(number) => {
            writer.u8(0);
            writer.u64(*number);
        }
        CorrelationId::Text(text) => {
            writer.u8(1);
            writer.text(text);
        }
    }
}

pub(crate) fn read_correlation(reader: &mut Reader<'_>) -> Result<CorrelationId, Malformed> {
    match reader.u8()? {
        0 => reader.u64().map(CorrelationId::Number),
        1 => reader.text().map(CorrelationId::Text),
        _ => Err(Malformed("a correlation id of kind 0 or 1")),
    }
}

pub(crate) fn write_parameter(writer: &mut Writer<'_>, (name, value): &(String, Parameter)) {
    writer.text(name);
    match value {
        Parameter::Bool(value) => {
            writer.u8(0);
            writer.bool(*value);
        }
        Parameter::Int64(value) => {
            writer.u8(1);
            writer.i64(*value);
        }
        Parameter::Double(value) => {
            writer.u8(2);
            writer.u64(value.to_bits());
        }
        Parameter::String(value) => {
            writer.u8(3);
            writer.text(value);
        }
    }
}

pub(crate) fn read_parameter(reader: &mut Reader<'_>) -> Result<(String, Parameter), Malformed> {
    let name = reader.text()?;
    let value = match reader.u8()? {
        0 => Parameter::Bool(reader.bool()?),
        1 => Parameter::Int64(reader.i64()?),
        2 => Parameter::Double(f64::from_bits(reader.u64()?)),
        3 => Parameter::String(reader.text()?),
        _ => return Err(Malformed("a parameter of kind 0 to 3")),
    };
    Ok((name, value))
}

//! A version's configuration as clients are answered: it can change while the version serves.

use alipes_protocol::InferError;
use alipes_spec::ModelSpec;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;

/// The configuration in the forms of both protocols.
pub struct Configuration {
    /// As HTTP answers it.
    pub json: Bytes,
    /// As gRPC answers it: a serialized `inference.ModelConfig`.
    pub proto: Bytes,
}

impl Configuration {
    /// The configuration of a specification.
    ///
    /// # Errors
    ///
    /// `Internal` where it is not base64.
    pub fn of(spec: &ModelSpec) -> Result<Configuration, InferError> {
        let proto = BASE64.decode(&spec.config_proto);
        let proto = proto.map_err(|error| InferError::internal(format!("config_proto: {error}")))?;
        Ok(Configuration { json: Bytes::copy_from_slice(spec.config_json.as_bytes()), proto: proto.into() })
    }
}

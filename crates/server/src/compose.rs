//! The composition of a server: the one file that names every driver.

use std::sync::Arc;

use crate::driver_ensemble::EnsembleFactory;
use crate::driver_native::OnnxruntimeFactory;
pub use crate::driver_native::onnxruntime::describe_onnx;
use crate::driver_streaming::StreamingFactory;
use crate::driver_worker::WorkerFactory;
use crate::runtime::context::Context;
use crate::runtime::model::driver::DriverFactory;
use crate::service::Service;
use alipes_spec::ServerConfig;

/// The drivers that this build offers, one for each kind of engine.
fn drivers() -> Vec<Box<dyn DriverFactory>> {
    vec![
        Box::new(OnnxruntimeFactory),
        Box::new(WorkerFactory::default()),
        Box::new(EnsembleFactory),
        Box::new(StreamingFactory),
    ]
}

/// A service without models that can load every kind of engine.
pub fn service(config: ServerConfig) -> Service {
    Service::new(Arc::new(Context::new(config, drivers())))
}

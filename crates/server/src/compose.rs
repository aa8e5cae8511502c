//! The composition of a server: the one file that names every driver.

use std::sync::Arc;

use alipes_driver_ensemble::EnsembleFactory;
use alipes_driver_native::{NativeFactory, OnnxruntimeFactory};
use alipes_driver_streaming::StreamingFactory;
use alipes_driver_worker::WorkerFactory;
use alipes_runtime::context::Context;
use alipes_runtime::model::driver::DriverFactory;
use alipes_service::Service;
use alipes_spec::ServerConfig;

/// The drivers that this build offers, one for each kind of engine.
fn drivers() -> Vec<Box<dyn DriverFactory>> {
    vec![
        Box::new(OnnxruntimeFactory),
        Box::new(WorkerFactory::default()),
        Box::new(EnsembleFactory),
        Box::new(StreamingFactory),
        Box::new(NativeFactory),
    ]
}

/// A service without models that can load every kind of engine.
pub fn service(config: ServerConfig) -> Service {
    Service::new(Arc::new(Context::new(config, drivers())))
}

//! Shared memory over gRPC: the regions of clients.

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::inference::cuda_shared_memory_status_response::RegionStatus as CudaStatusMessage;
use alipes_protocol::codec::proto::inference::system_shared_memory_status_response::RegionStatus as StatusMessage;
use alipes_protocol::codec::proto::inference::{
    CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse, CudaSharedMemoryStatusRequest,
    CudaSharedMemoryStatusResponse, CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse,
    SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse, SystemSharedMemoryStatusRequest,
    SystemSharedMemoryStatusResponse, SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse,
};
use alipes_service::Service;
use alipes_shared_memory::{Location, RegionStatus};
use bytes::Bytes;

use super::message::parse;
use super::response::ResponseBody;

pub(super) fn status(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: SystemSharedMemoryStatusRequest = parse(message)?;
    let regions = service.region_status(&request.name)?.into_iter().map(status_of).collect();
    Ok(ResponseBody::message(&SystemSharedMemoryStatusResponse { regions }))
}

pub(super) fn register(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: SystemSharedMemoryRegisterRequest = parse(message)?;
    service.register_region(&request.name, &request.key, request.offset, request.byte_size)?;
    Ok(ResponseBody::message(&SystemSharedMemoryRegisterResponse {}))
}

pub(super) fn unregister(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: SystemSharedMemoryUnregisterRequest = parse(message)?;
    service.unregister_region(&request.name)?;
    Ok(ResponseBody::message(&SystemSharedMemoryUnregisterResponse {}))
}

pub(super) fn cuda_status(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: CudaSharedMemoryStatusRequest = parse(message)?;
    let regions = service.cuda_region_status(&request.name)?.into_iter().map(cuda_status_of).collect();
    Ok(ResponseBody::message(&CudaSharedMemoryStatusResponse { regions }))
}

pub(super) async fn cuda_register(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let CudaSharedMemoryRegisterRequest { name, raw_handle, device_id, byte_size } = parse(message)?;
    service.register_cuda_region(&name, &raw_handle, device_id, byte_size).await?;
    Ok(ResponseBody::message(&CudaSharedMemoryRegisterResponse {}))
}

pub(super) async fn cuda_unregister(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: CudaSharedMemoryUnregisterRequest = parse(message)?;
    service.unregister_cuda_region(&request.name).await?;
    Ok(ResponseBody::message(&CudaSharedMemoryUnregisterResponse {}))
}

fn status_of(region: RegionStatus) -> (String, StatusMessage) {
    let RegionStatus { name, location, byte_size } = region;
    let (key, offset) = match location {
        Location::Object { key, offset } => (key, offset),
        Location::Device { .. } => Default::default(),
    };
    (name.clone(), StatusMessage { name, key, offset, byte_size })
}

fn cuda_status_of(region: RegionStatus) -> (String, CudaStatusMessage) {
    let RegionStatus { name, location, byte_size } = region;
    let device_id = match location {
        Location::Device { id } => id,
        Location::Object { .. } => 0,
    };
    (name.clone(), CudaStatusMessage { name, device_id, byte_size })
}

//! Shared memory over gRPC: the regions of clients.

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::inference::system_shared_memory_status_response::RegionStatus as StatusMessage;
use alipes_protocol::codec::proto::inference::{
    CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse, CudaSharedMemoryStatusRequest,
    CudaSharedMemoryStatusResponse, CudaSharedMemoryUnregisterResponse, SystemSharedMemoryRegisterRequest,
    SystemSharedMemoryRegisterResponse, SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse,
    SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse,
};
use alipes_service::Service;
use alipes_shared_memory::RegionStatus;
use bytes::Bytes;

use super::message::parse;
use super::response::ResponseBody;

pub(super) fn status(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: SystemSharedMemoryStatusRequest = parse(message)?;
    let message_of =
        |RegionStatus { name, key, offset, byte_size }| (name.clone(), StatusMessage { name, key, offset, byte_size });
    let regions = service.region_status(&request.name)?.into_iter().map(message_of).collect();
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
    service.cuda_region_status(&request.name)?;
    Ok(ResponseBody::message(&CudaSharedMemoryStatusResponse::default()))
}

pub(super) fn cuda_register(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: CudaSharedMemoryRegisterRequest = parse(message)?;
    service.register_cuda_region(&request.name)?;
    Ok(ResponseBody::message(&CudaSharedMemoryRegisterResponse {}))
}

pub(super) fn cuda_unregister(service: &Service) -> Result<ResponseBody, InferError> {
    service.unregister_cuda_region()?;
    Ok(ResponseBody::message(&CudaSharedMemoryUnregisterResponse {}))
}

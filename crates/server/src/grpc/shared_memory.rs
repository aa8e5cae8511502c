//! Shared memory over gRPC: the regions of clients.

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::inference::system_shared_memory_status_response::RegionStatus as Told;
use alipes_protocol::codec::proto::inference::{
    CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse, CudaSharedMemoryStatusRequest,
    CudaSharedMemoryStatusResponse, CudaSharedMemoryUnregisterResponse, SystemSharedMemoryRegisterRequest,
    SystemSharedMemoryRegisterResponse, SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse,
    SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse,
};
use bytes::Bytes;

use super::answer::Answer;
use super::message::parse;
use crate::regions::RegionStatus;
use crate::service::Service;

pub(super) fn status(service: &Service, message: Bytes) -> Result<Answer, InferError> {
    let request: SystemSharedMemoryStatusRequest = parse(message)?;
    let told = |RegionStatus { name, key, offset, byte_size }| (name.clone(), Told { name, key, offset, byte_size });
    let regions = service.region_status(&request.name)?.into_iter().map(told).collect();
    Ok(Answer::message(&SystemSharedMemoryStatusResponse { regions }))
}

pub(super) fn register(service: &Service, message: Bytes) -> Result<Answer, InferError> {
    let request: SystemSharedMemoryRegisterRequest = parse(message)?;
    service.register_region(&request.name, &request.key, request.offset, request.byte_size)?;
    Ok(Answer::message(&SystemSharedMemoryRegisterResponse {}))
}

pub(super) fn unregister(service: &Service, message: Bytes) -> Result<Answer, InferError> {
    let request: SystemSharedMemoryUnregisterRequest = parse(message)?;
    service.unregister_region(&request.name)?;
    Ok(Answer::message(&SystemSharedMemoryUnregisterResponse {}))
}

pub(super) fn cuda_status(service: &Service, message: Bytes) -> Result<Answer, InferError> {
    let request: CudaSharedMemoryStatusRequest = parse(message)?;
    service.cuda_region_status(&request.name)?;
    Ok(Answer::message(&CudaSharedMemoryStatusResponse::default()))
}

pub(super) fn cuda_register(service: &Service, message: Bytes) -> Result<Answer, InferError> {
    let request: CudaSharedMemoryRegisterRequest = parse(message)?;
    service.register_cuda_region(&request.name)?;
    Ok(Answer::message(&CudaSharedMemoryRegisterResponse {}))
}

pub(super) fn cuda_unregister(service: &Service) -> Result<Answer, InferError> {
    service.unregister_cuda_region()?;
    Ok(Answer::message(&CudaSharedMemoryUnregisterResponse {}))
}

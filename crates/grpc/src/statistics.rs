//! The statistics of the models.

use std::sync::Arc;

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::inference::{
    InferBatchStatistics, InferStatistics, ModelStatistics as ModelStatisticsMessage, ModelStatisticsRequest,
    ModelStatisticsResponse, StatisticDuration,
};
use alipes_service::offload::offload;
use alipes_service::{ModelStatistics, Service};
use alipes_stats::statistics::{BatchTally, Snapshot, Tally};
use bytes::Bytes;

use super::message::parse;
use super::response::ResponseBody;

/// Written on this thread, or beside it where there are those of many models.
pub(super) async fn model_statistics(service: &Arc<Service>, message: Bytes) -> Result<ResponseBody, InferError> {
    let ModelStatisticsRequest { name, version } = parse(message)?;
    if !(name.is_empty() && service.has_many_versions()) {
        return written(service, &name, &version);
    }
    let service = Arc::clone(service);
    let written = Box::pin(offload(move || written(&service, &name, &version))).await;
    written.unwrap_or_else(|| Err(InferError::internal("the statistics could not be written")))
}

fn written(service: &Service, name: &str, version: &str) -> Result<ResponseBody, InferError> {
    let found = service.statistics(name, version)?;
    Ok(ResponseBody::message(&ModelStatisticsResponse { model_stats: found.into_iter().map(one).collect() }))
}

fn one(ModelStatistics { name, version, snapshot }: ModelStatistics) -> ModelStatisticsMessage {
    ModelStatisticsMessage {
        name,
        version: version.to_string(),
        last_inference: snapshot.last_inference_ms,
        inference_count: snapshot.inference_count,
        execution_count: snapshot.execution_count,
        inference_stats: Some(requests(&snapshot)),
        batch_stats: snapshot.batches.iter().map(|(&rows, tally)| batch(rows, tally)).collect(),
        ..Default::default()
    }
}

fn requests(snapshot: &Snapshot) -> InferStatistics {
    InferStatistics {
        success: duration(snapshot.success),
        fail: duration(snapshot.fail),
        queue: duration(snapshot.queue),
        compute_input: duration(snapshot.compute.compute_input),
        compute_infer: duration(snapshot.compute.compute_infer),
        compute_output: duration(snapshot.compute.compute_output),
        cache_hit: duration(snapshot.cache_hit),
        cache_miss: duration(snapshot.cache_miss),
    }
}

fn batch(rows: u32, tally: &BatchTally) -> InferBatchStatistics {
    InferBatchStatistics {
        batch_size: rows.into(),
        compute_input: duration(tally.compute_input),
        compute_infer: duration(tally.compute_infer),
        compute_output: duration(tally.compute_output),
    }
}

/// Always there, even where nothing was counted: clients read the fields without asking.
fn duration(tally: Tally) -> Option<StatisticDuration> {
    Some(StatisticDuration { count: tally.count, ns: tally.ns })
}

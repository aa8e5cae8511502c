//! The statistics of the models.

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::inference::{
    InferBatchStatistics, InferStatistics, ModelStatistics as ModelStatisticsMessage, ModelStatisticsRequest,
    ModelStatisticsResponse, StatisticDuration,
};
use alipes_service::{ModelStatistics, Service};
use alipes_stats::statistics::{BatchTally, Snapshot, Tally};
use bytes::Bytes;

use super::message::parse;
use super::response::ResponseBody;

pub(super) fn model_statistics(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: ModelStatisticsRequest = parse(message)?;
    let found = service.statistics(&request.name, &request.version)?;
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

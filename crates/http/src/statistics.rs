//! Statistics as JSON. Source: Triton's statistics extension, recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use alipes_protocol::InferError;
use alipes_service::offload::offload;
use alipes_service::{ModelStatistics, Service};
use alipes_stats::statistics::{BatchTally, Tally};
use hyper::Response;
use serde::Serialize;

use super::response::{self, ResponseBody};

/// Answers a request for statistics: on this thread, or beside it where there are those of many models.
pub async fn statistics(service: &Arc<Service>, model: &str, version: &str) -> Response<ResponseBody> {
    if !(model.is_empty() && service.has_many_versions()) {
        return written(service, model, version);
    }
    let service = Arc::clone(service);
    let response = Box::pin(offload(move || written(&service, "", ""))).await;
    response.unwrap_or_else(|| response::error(&InferError::internal("the statistics could not be written")))
}

fn written(service: &Service, model: &str, version: &str) -> Response<ResponseBody> {
    let found = service.statistics(model, version);
    response::json_or(
        found.map(|found| StatisticsDocument { model_stats: found.iter().map(ModelDocument::from).collect() }),
    )
}

#[derive(Serialize)]
struct StatisticsDocument {
    model_stats: Vec<ModelDocument>,
}

#[derive(Serialize)]
struct ModelDocument {
    name: String,
    version: String,
    last_inference: u64,
    inference_count: u64,
    execution_count: u64,
    inference_stats: InferenceDocument,
    response_stats: BTreeMap<String, ()>,
    batch_stats: Vec<BatchDocument>,
    memory_usage: [(); 0],
}

#[derive(Serialize)]
struct InferenceDocument {
    success: TallyDocument,
    fail: TallyDocument,
    queue: TallyDocument,
    #[serde(flatten)]
    compute: ComputeDocument,
    cache_hit: TallyDocument,
    cache_miss: TallyDocument,
}

#[derive(Serialize)]
struct ComputeDocument {
    compute_input: TallyDocument,
    compute_infer: TallyDocument,
    compute_output: TallyDocument,
}

#[derive(Serialize)]
struct BatchDocument {
    batch_size: u32,
    #[serde(flatten)]
    compute: ComputeDocument,
}

#[derive(Serialize)]
struct TallyDocument {
    count: u64,
    ns: u64,
}

impl From<Tally> for TallyDocument {
    fn from(tally: Tally) -> Self {
        TallyDocument { count: tally.count, ns: tally.ns }
    }
}

impl From<BatchTally> for ComputeDocument {
    fn from(tally: BatchTally) -> Self {
        ComputeDocument {
            compute_input: tally.compute_input.into(),
            compute_infer: tally.compute_infer.into(),
            compute_output: tally.compute_output.into(),
        }
    }
}

impl From<&ModelStatistics> for ModelDocument {
    fn from(statistics: &ModelStatistics) -> Self {
        let snapshot = &statistics.snapshot;
        ModelDocument {
            name: statistics.name.clone(),
            version: statistics.version.to_string(),
            last_inference: snapshot.last_inference_ms,
            inference_count: snapshot.inference_count,
            execution_count: snapshot.execution_count,
            inference_stats: InferenceDocument {
                success: snapshot.success.into(),
                fail: snapshot.fail.into(),
                queue: snapshot.queue.into(),
                compute: snapshot.compute.into(),
                cache_hit: snapshot.cache_hit.into(),
                cache_miss: snapshot.cache_miss.into(),
            },
            response_stats: BTreeMap::new(),
            batch_stats: snapshot.batches.iter().map(|(&rows, &tally)| batch_document(rows, tally)).collect(),
            memory_usage: [],
        }
    }
}

fn batch_document(rows: u32, tally: BatchTally) -> BatchDocument {
    BatchDocument { batch_size: rows, compute: tally.into() }
}

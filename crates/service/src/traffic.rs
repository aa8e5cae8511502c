//! How the requests for a model that name no version are divided among its versions: read, changed and obeyed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use alipes_protocol::{InferError, InferRequest, Tensor};
use alipes_request::check::has_id;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::traffic::{OpenOutcome, ShadowSettings, TrafficSplit};
use alipes_stats::outcomes::OutcomesDocument;
use serde::Serialize;

use super::Service;

/// The split of a model, as clients read it.
#[derive(Debug, Serialize)]
pub struct TrafficDocument {
    name: String,
    /// By version; empty where the highest version has all requests that name none.
    weights: BTreeMap<i64, u32>,
    /// The header whose value keeps a caller on its version.
    sticky_header: Option<String>,
    /// The version that gets copies of requests.
    shadow: Option<ShadowSettings>,
    /// The versions that serve.
    versions: Vec<i64>,
}

impl Service {
    /// How the requests of a model are divided.
    ///
    /// # Errors
    ///
    /// As for `lookup`.
    pub fn traffic_of(&self, name: &str) -> Result<TrafficDocument, InferError> {
        self.lookup(name, "")?;
        let split = self.context.traffic.of(name);
        Ok(TrafficDocument {
            name: name.to_owned(),
            weights: split.as_ref().map(|split| split.weights().clone()).unwrap_or_default(),
            sticky_header: split.as_ref().and_then(|split| split.sticky_header().map(str::to_owned)),
            shadow: split.and_then(|split| split.shadow()),
            versions: self.versions(name).iter().map(|version| version.spec.version).collect(),
        })
    }

    /// What became of the requests of a model since its weights are what they are, by version; empty without weights.
    ///
    /// # Errors
    ///
    /// As for `lookup`.
    pub fn traffic_outcomes(&self, name: &str) -> Result<BTreeMap<i64, OutcomesDocument>, InferError> {
        self.lookup(name, "")?;
        Ok(self.context.traffic.of(name).map(|split| split.outcomes()).unwrap_or_default())
    }

    /// Counts what became of a request, where the requests of its model are divided.
    #[inline]
    pub(super) fn count_outcome(
        &self,
        model: &ModelVersion,
        arrived: Instant,
        outcome: Result<&[Tensor], &InferError>,
    ) {
        if let Some(split) = self.context.traffic.of(&model.name) {
            let is_batched = model.spec.max_batch_size > 0;
            split.count(model.spec.version, is_batched, alipes_clock::elapsed(arrived), outcome);
        }
    }

    /// The outcome of a request with any number of responses, where the requests of its model are divided.
    #[inline]
    pub(super) fn open_outcome(&self, model: &ModelVersion, arrived: Instant) -> Option<Box<OpenOutcome>> {
        let split = self.context.traffic.of(&model.name)?;
        split.open(model.spec.version, model.spec.max_batch_size > 0, arrived).map(Box::new)
    }

    /// Divides the requests of a model from now on; no weights leave them to its highest version again, or, beside a
    /// shadow, to the highest of the others. The change holds for requests that come later; sequences stay where they
    /// are.
    ///
    /// # Errors
    ///
    /// As for `lookup`, and `InvalidArgument` for a version that does not serve or what `TrafficSplit::new` refuses.
    pub fn divide_traffic(
        &self,
        name: &str,
        mut weights: BTreeMap<i64, u32>,
        sticky_header: Option<String>,
        shadow: Option<ShadowSettings>,
    ) -> Result<TrafficDocument, InferError> {
        self.lookup(name, "")?;
        let versions = self.versions(name);
        let shadowing = shadow.map(|shadow| shadow.version);
        let serves = |wanted: &i64| versions.iter().any(|version| version.spec.version == *wanted);
        if let Some(absent) = weights.keys().chain(&shadowing).find(|version| !serves(version)) {
            let serving: Vec<String> = versions.iter().map(|version| version.spec.version.to_string()).collect();
            let text = format!("version {absent} of '{name}' does not serve; those that do: {}", serving.join(", "));
            return Err(InferError::invalid(text));
        }
        if let (true, Some(shadow)) = (weights.is_empty(), shadowing) {
            let others = versions.iter().map(|version| version.spec.version).filter(|version| *version != shadow);
            weights.extend(others.max().map(|version| (version, 1)));
        }
        let is_divided = !weights.is_empty() || shadow.is_some();
        let split = if is_divided { Some(TrafficSplit::new(weights, sticky_header, shadow)?) } else { None };
        self.context.traffic.set(name, split);
        self.traffic_of(name)
    }

    /// The version for a request that asked for `version` and found this one: another one where the caller named none
    /// and the requests of the model are divided. `header` reads a header of the request.
    #[inline]
    pub fn divide<'a>(
        &self,
        highest: Arc<ModelVersion>,
        version: &str,
        header: impl FnOnce(&str) -> Option<&'a [u8]>,
    ) -> Arc<ModelVersion> {
        if !version.is_empty() {
            return highest;
        }
        let Some(split) = self.context.traffic.of(&highest.name) else { return highest };
        let (key, versions) = (split.sticky_header().and_then(header), self.versions(&highest.name));
        split.choose(key, &ready(&versions)).and_then(|number| numbered(&versions, number)).unwrap_or(highest)
    }

    /// The version for a request that has been read: one of a sequence that names no version stays with the version
    /// that knows its sequence.
    #[inline]
    pub fn home_of(&self, model: Arc<ModelVersion>, version: &str, request: &InferRequest) -> Arc<ModelVersion> {
        if !version.is_empty() || !has_id(&request.sequence) {
            return model;
        }
        let Some(split) = self.context.traffic.of(&model.name) else { return model };
        let (id, versions) = (&request.sequence.correlation_id, self.versions(&model.name));
        if let Some(home) = versions.iter().find(|version| version.knows_sequence(id)) {
            return Arc::clone(home);
        }
        split.choose_for(id, &ready(&versions)).and_then(|number| numbered(&versions, number)).unwrap_or(model)
    }

    /// The version of a model with this number, where it serves.
    pub(super) fn version_of(&self, name: &str, number: i64) -> Option<Arc<ModelVersion>> {
        numbered(&self.versions(name), number)
    }

    /// The versions of a model that serve, lowest first.
    fn versions(&self, name: &str) -> Vec<Arc<ModelVersion>> {
        let models = self.registry.models();
        models.get(name).map(|served| served.versions().map(Arc::clone).collect()).unwrap_or_default()
    }
}

/// The numbers of those that can answer.
fn ready(versions: &[Arc<ModelVersion>]) -> Vec<i64> {
    versions.iter().filter(|version| version.is_ready()).map(|version| version.spec.version).collect()
}

fn numbered(versions: &[Arc<ModelVersion>], number: i64) -> Option<Arc<ModelVersion>> {
    versions.iter().find(|version| version.spec.version == number).map(Arc::clone)
}

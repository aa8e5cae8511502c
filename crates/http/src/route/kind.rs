//! What a request can ask for, and what its path says of it.

use std::borrow::Cow;

/// A request, as its path and method name it. An empty version asks for the highest.
#[derive(Debug, PartialEq, Eq)]
pub enum Route<'a> {
    Live,
    Ready,
    Server,
    /// What browsers are shown of the server; others may learn that it is alive.
    Page,
    ModelReady {
        model: Cow<'a, str>,
        version: &'a str,
    },
    ModelMetadata {
        model: Cow<'a, str>,
        version: &'a str,
    },
    ModelConfig {
        model: Cow<'a, str>,
        version: &'a str,
    },
    Statistics {
        model: Cow<'a, str>,
        version: &'a str,
    },
    /// Why its requests wait: an extension of this server.
    Explain {
        model: Cow<'a, str>,
        version: &'a str,
    },
    /// How requests that name no version are divided among versions: an extension of this server.
    Traffic {
        model: Cow<'a, str>,
    },
    ChangeTraffic {
        model: Cow<'a, str>,
    },
    /// What became of the requests of the versions among which they are divided.
    TrafficOutcomes {
        model: Cow<'a, str>,
    },
    Infer {
        model: Cow<'a, str>,
        version: &'a str,
    },
    /// The state of a live sequence: an extension of this server.
    SequenceState {
        model: Cow<'a, str>,
        version: &'a str,
        id: &'a str,
    },
    /// Restore a sequence from a state.
    RestoreSequence {
        model: Cow<'a, str>,
        version: &'a str,
        id: &'a str,
    },
    /// End a sequence and drop its state.
    EndSequence {
        model: Cow<'a, str>,
        version: &'a str,
        id: &'a str,
    },
    /// `events`: any number of responses, as server-sent events.
    Generate {
        model: Cow<'a, str>,
        version: &'a str,
        events: bool,
    },
    /// V1: the names of the models.
    PredictorNames,
    /// V1: whether a model is ready.
    Predictor {
        model: Cow<'a, str>,
    },
    /// V1: the state of a version.
    PredictorVersion {
        model: Cow<'a, str>,
        version: &'a str,
    },
    /// V1: an inference in plain values.
    Predict {
        model: Cow<'a, str>,
        version: &'a str,
    },
    /// V1: why a model answers as it does.
    ExplainPrediction {
        model: Cow<'a, str>,
        version: &'a str,
    },
    /// V1: what TensorFlow Serving asks models of another kind.
    NotPredict {
        model: Cow<'a, str>,
        version: &'a str,
        verb: &'a str,
    },
    Index,
    Load {
        model: Cow<'a, str>,
    },
    Unload {
        model: Cow<'a, str>,
    },
    /// A request about clients' shared memory.
    Region(Region<'a>),
    LogSettings,
    ChangeLog,
    /// Of all models where there is no name.
    TraceSettings {
        model: Cow<'a, str>,
    },
    ChangeTracing {
        model: Cow<'a, str>,
    },
    /// What the control plane has written for browsers; a path without such a page does not exist.
    WrittenPage {
        path: &'a str,
    },
    /// `/<name>`: the endpoint of a model; the path does not exist where no model of the name has one.
    Endpoint {
        model: Cow<'a, str>,
    },
    /// Anything else, where the server runs a graph: its requests.
    Graph,
    /// KServe asks its router there whether it is ready.
    RouterReady,
    /// A load or unload that names the repository too, which Triton refuses.
    NamedRepository,
    /// A name in the path is no UTF-8 once it is percent-decoded, so it is nothing's.
    Undecodable,
    /// The path exists, under another method; `plain` is how Triton labels the answer.
    WrongMethod {
        plain: bool,
    },
    Unknown,
}

/// A region of shared memory, and the action on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region<'a> {
    /// Memory of a GPU.
    pub cuda: bool,
    /// The region's name; empty where all of them are meant.
    pub name: Cow<'a, str>,
    pub action: RegionAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionAction {
    Status,
    Register,
    Unregister,
}

impl Route<'_> {
    /// What reports about the server call it.
    pub fn name(&self) -> &'static str {
        match self {
            Route::Live => "live",
            Route::Ready => "ready",
            Route::Server => "server metadata",
            Route::Page => "page",
            Route::ModelReady { .. } => "model ready",
            Route::ModelMetadata { .. } => "model metadata",
            Route::ModelConfig { .. } => "model config",
            Route::Statistics { .. } => "stats",
            Route::Explain { .. } => "explain",
            Route::Infer { .. } => "infer",
            Route::SequenceState { .. } | Route::RestoreSequence { .. } | Route::EndSequence { .. } => "sequence state",
            Route::Generate { events: false, .. } => "generate",
            Route::Generate { events: true, .. } => "generate_stream",
            Route::PredictorNames => "v1 models",
            Route::Predictor { .. } | Route::PredictorVersion { .. } => "v1 model",
            Route::Predict { .. } => "predict",
            Route::ExplainPrediction { .. } => "v1 explain",
            Route::NotPredict { .. } => "v1 classify or regress",
            Route::Index => "index",
            Route::Load { .. } => "load",
            Route::Unload { .. } => "unload",
            Route::Region(_) => "shared memory",
            Route::LogSettings | Route::ChangeLog => "logging",
            Route::TraceSettings { .. } | Route::ChangeTracing { .. } => "trace setting",
            Route::Traffic { .. } | Route::ChangeTraffic { .. } | Route::TrafficOutcomes { .. } => "traffic",
            Route::WrittenPage { .. } => "written page",
            Route::Graph => "graph",
            Route::RouterReady => "ready",
            // An endpoint's handler reports a call once it knows the model.
            Route::Endpoint { .. }
            | Route::NamedRepository
            | Route::Undecodable
            | Route::WrongMethod { .. }
            | Route::Unknown => "a refused request",
        }
    }

    /// The model that it names; empty where it names none, and of an endpoint, of which nobody knows whether it exists.
    pub fn model(&self) -> &str {
        match self {
            Route::ModelReady { model, .. }
            | Route::ModelMetadata { model, .. }
            | Route::ModelConfig { model, .. }
            | Route::Statistics { model, .. }
            | Route::Explain { model, .. }
            | Route::Infer { model, .. }
            | Route::SequenceState { model, .. }
            | Route::RestoreSequence { model, .. }
            | Route::EndSequence { model, .. }
            | Route::Generate { model, .. }
            | Route::Predictor { model }
            | Route::PredictorVersion { model, .. }
            | Route::Predict { model, .. }
            | Route::ExplainPrediction { model, .. }
            | Route::NotPredict { model, .. }
            | Route::Load { model }
            | Route::Unload { model }
            | Route::Traffic { model }
            | Route::ChangeTraffic { model }
            | Route::TrafficOutcomes { model }
            | Route::TraceSettings { model }
            | Route::ChangeTracing { model } => model,
            _ => "",
        }
    }
}

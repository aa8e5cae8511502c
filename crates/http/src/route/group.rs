//! The restricted group of each route, and what a server that stops refuses.

use alipes_net::restricted::Group;
use hyper::Method;
use smallvec::SmallVec;

use super::kind::Route;

impl<'a> Route<'a> {
    /// The group of the route that `path` names. A wrong method changes nothing: Triton asks for the header before it
    /// looks at the method.
    pub fn group(&self, path: &'a str) -> Option<Group> {
        Some(match self {
            // The page has two more, which it asks for itself: to others the path may say that the server is alive.
            Route::Live | Route::Ready | Route::ModelReady { .. } | Route::Page | Route::RouterReady => Group::Health,
            Route::Predictor { .. } | Route::PredictorVersion { .. } => Group::Health,
            Route::Server | Route::ModelMetadata { .. } => Group::Metadata,
            Route::ModelConfig { .. } => Group::ModelConfig,
            Route::Statistics { .. } | Route::Explain { .. } => Group::Statistics,
            Route::Predict { .. } | Route::ExplainPrediction { .. } | Route::NotPredict { .. } => Group::Inference,
            Route::Infer { .. }
            | Route::Generate { .. }
            | Route::Graph
            | Route::SequenceState { .. }
            | Route::RestoreSequence { .. }
            | Route::EndSequence { .. } => Group::Inference,
            Route::PredictorNames | Route::Index => Group::ModelRepository,
            Route::Traffic { .. } | Route::ChangeTraffic { .. } | Route::TrafficOutcomes { .. } => Group::ModelControl,
            Route::Load { .. } | Route::Unload { .. } | Route::NamedRepository => Group::ModelControl,
            Route::Region(_) => Group::SharedMemory,
            Route::LogSettings | Route::ChangeLog => Group::Logging,
            Route::TraceSettings { .. } | Route::ChangeTracing { .. } => Group::Trace,
            Route::WrongMethod { .. } => {
                // Every path that exists is read with GET or answered to POST.
                let mut routes = [Method::GET, Method::POST].into_iter().map(|method| Route::of(&method, path));
                return routes.find(|route| !matches!(route, Route::WrongMethod { .. }))?.group(path);
            }
            Route::WrittenPage { .. } => Group::Openapi,
            Route::Endpoint { .. } => Group::Endpoint,
            Route::Undecodable | Route::Unknown => return unknown_group(path),
        })
    }

    /// Whether a server that stops refuses the request. States of sequences may still be read, so that a client can
    /// move its sequences to another server.
    pub fn is_refused_at_stop(&self, path: &'a str) -> bool {
        !matches!(self, Route::SequenceState { .. }) && self.group(path).is_some_and(Group::is_refused_at_stop)
    }
}

/// The group of a path that names no route: that of the routes beside it, so that a restricted listener does not reveal
/// which paths exist.
fn unknown_group(path: &str) -> Option<Group> {
    if path == "/" {
        return Some(Group::Health);
    }
    if let Some(rest) = path.strip_prefix("/v1/") {
        return Some(unknown_v1_group(rest));
    }
    let segments: SmallVec<[&str; 8]> = path.strip_prefix("/v2/")?.split('/').collect();
    Some(match segments[..] {
        ["health", ..] => Group::Health,
        ["logging", ..] => Group::Logging,
        ["trace", ..] => Group::Trace,
        ["repository", ..] => Group::ModelControl,
        ["systemsharedmemory" | "cudasharedmemory", ..] => Group::SharedMemory,
        ["models", _, "versions", _, ref action @ ..] | ["models", _, ref action @ ..] => match action {
            [] => Group::Metadata,
            ["ready", ..] => Group::Health,
            ["config", ..] => Group::ModelConfig,
            ["stats" | "explain", ..] => Group::Statistics,
            ["trace", ..] => Group::Trace,
            ["traffic", ..] => Group::ModelControl,
            _ => Group::Inference,
        },
        _ => return None,
    })
}

/// The group of a path below `/v1/` that names no route: that of the routes beside it.
fn unknown_v1_group(rest: &str) -> Group {
    let segments: SmallVec<[&str; 8]> = rest.split('/').collect();
    match segments[..] {
        ["models"] => Group::ModelRepository,
        ["models", last] | ["models", _, "versions", last] if !last.is_empty() && !last.contains(':') => Group::Health,
        _ => Group::Inference,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_a_path_and_no_method_avoids_its_group() {
        let known = [
            ("/v2", Some(Group::Metadata)),
            ("/v2/models/m", Some(Group::Metadata)),
            ("/v2/models/m/versions/1", Some(Group::Metadata)),
            ("/v2/models/m/versions/one", Some(Group::Metadata)),
            ("/v2/models/m/ready", Some(Group::Health)),
            ("/v2/models/m/versions/1/ready", Some(Group::Health)),
            ("/v2/models/m/ready/x", Some(Group::Health)),
            ("/v2/models/m/infer", Some(Group::Inference)),
            ("/v2/models/versions/infer", Some(Group::Inference)),
            ("/v2/models/m/versions/one/infer", Some(Group::Inference)),
            ("/v2/models/m/versions", Some(Group::Inference)),
            ("/v2/models/m/generate", Some(Group::Inference)),
            ("/v2/models/m/generate_stream", Some(Group::Inference)),
            ("/v2/models/m/sequences/7/state", Some(Group::Inference)),
            ("/v2/models/m/sequences/7", Some(Group::Inference)),
            ("/v2/models/m/unheard_of", Some(Group::Inference)),
            ("/v2/models/m/versions/1/stats", Some(Group::Statistics)),
            ("/v2/models/stats", Some(Group::Statistics)),
            ("/v2/models/m/explain", Some(Group::Statistics)),
            ("/v2/models/m/trace/setting", Some(Group::Trace)),
            ("/v2/models/m/versions/1/trace/setting", Some(Group::Trace)),
            ("/v2/models/m/traffic", Some(Group::ModelControl)),
            ("/v2/models/m/traffic/outcomes", Some(Group::ModelControl)),
            ("/v2/models/m/versions/1/traffic", Some(Group::ModelControl)),
            ("/v2/trace/setting", Some(Group::Trace)),
            ("/v2/logging", Some(Group::Logging)),
            ("/v2/models/m/config", Some(Group::ModelConfig)),
            ("/v2/repository/index", Some(Group::ModelRepository)),
            ("/v2/repository/some/index", Some(Group::ModelRepository)),
            ("/v2/repository/models/m/load", Some(Group::ModelControl)),
            ("/v2/repository/models/m/unload", Some(Group::ModelControl)),
            ("/v2/repository/some/models/m/load", Some(Group::ModelControl)),
            ("/v2/systemsharedmemory", Some(Group::SharedMemory)),
            ("/v2/systemsharedmemory/status", Some(Group::SharedMemory)),
            ("/v2/systemsharedmemory/region/x/register", Some(Group::SharedMemory)),
            ("/v2/cudasharedmemory/region/x/unregister", Some(Group::SharedMemory)),
            ("/v2/health/live", Some(Group::Health)),
            ("/v2/health/ready", Some(Group::Health)),
            ("/v2/health", Some(Group::Health)),
            ("/v2/", None),
            ("/v2/models", None),
            ("/v2models", Some(Group::Endpoint)),
            ("/sentiment", Some(Group::Endpoint)),
            ("/sentiment/", None),
            ("/sentiment/x", None),
            ("/v1", None),
            ("/docs", Some(Group::Openapi)),
            ("/docs/x.css", Some(Group::Openapi)),
            ("/openapi.json", Some(Group::Openapi)),
            ("/metrics", None),
            ("/", Some(Group::Health)),
            ("/v1/models", Some(Group::ModelRepository)),
            ("/v1/models/m", Some(Group::Health)),
            ("/v1/models/m/versions/3", Some(Group::Health)),
            ("/v1/models/m:predict", Some(Group::Inference)),
            ("/v1/models/m/versions/3:predict", Some(Group::Inference)),
            ("/v1/models/m:explain", Some(Group::Inference)),
            ("/v1/models/m:regress", Some(Group::Inference)),
            ("/v1/models/m/versions/one:predict", Some(Group::Inference)),
            ("/v1/models/m:predict/x", Some(Group::Inference)),
            ("/v1/models/", Some(Group::Inference)),
            ("/v1/models/m/metadata", Some(Group::Inference)),
            ("/v1/", Some(Group::Inference)),
        ];
        for (path, group) in known {
            for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::HEAD, Method::OPTIONS] {
                assert_eq!(Route::of(&method, path).group(path), group, "{method} {path}");
            }
        }
    }

    #[test]
    fn a_name_that_is_no_utf8_is_refused_in_the_group_of_its_route() {
        let paths = [
            ("/v2/models/%FF/infer", Group::Inference),
            ("/v1/models/%FF:predict", Group::Inference),
            ("/v1/models/%FF", Group::Health),
            ("/v2/models/%FF/versions/1", Group::Metadata),
            ("/v2/repository/models/%C3/load", Group::ModelControl),
            ("/v2/cudasharedmemory/region/%FF/status", Group::SharedMemory),
        ];
        for (path, group) in paths {
            assert_eq!(Route::of(&Method::POST, path), Route::Undecodable, "{path}");
            assert_eq!(Route::Undecodable.group(path), Some(group), "{path}");
        }
    }
}

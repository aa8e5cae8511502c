//! Which request a path and a method name. Source: the routes of Triton's HTTP server.
//!
//! Names of models and regions are percent-decoded once the path is split, so a name may hold a slash. Triton compares
//! the path as it is, so it finds no name that its own client has to quote.

use std::borrow::Cow;

use alipes_net::restricted::Group;
use alipes_protocol::call::RESERVED_NAMES;
use alipes_service::Pages;
use hyper::Method;
use percent_encoding::percent_decode_str;
use smallvec::SmallVec;

/// A request, as its path and method name it. An empty version asks for the highest.
#[derive(Debug, PartialEq, Eq)]
pub enum Route<'a> {
    Live,
    Ready,
    Server,
    /// What browsers are shown of the server; to others the path does not exist.
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

impl<'a> Route<'a> {
    /// The request that a method and a path name; a query string is not part of the path.
    pub fn of(method: &Method, path: &'a str) -> Route<'a> {
        // The one route that has to be fast stands first.
        if let Some(rest) = path.strip_prefix("/v2/models/") {
            return Route::of_model(method, rest);
        }
        match path {
            "/v2" => get(method, false, Route::Server),
            "/v2/health/live" => get(method, true, Route::Live),
            "/v2/health/ready" => get(method, true, Route::Ready),
            "/" if method == Method::GET => Route::Page,
            "/v2/logging" => setting(method, Route::LogSettings, Route::ChangeLog),
            "/v2/trace/setting" => setting(
                method,
                Route::TraceSettings { model: Cow::Borrowed("") },
                Route::ChangeTracing { model: Cow::Borrowed("") },
            ),
            _ => Route::of_prefix(method, path),
        }
    }

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
            Route::Index => "index",
            Route::Load { .. } => "load",
            Route::Unload { .. } => "unload",
            Route::Region(_) => "shared memory",
            Route::LogSettings | Route::ChangeLog => "logging",
            Route::TraceSettings { .. } | Route::ChangeTracing { .. } => "trace setting",
            Route::WrittenPage { .. } => "written page",
            // Whoever finds its model calls it a call.
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
            | Route::Load { model }
            | Route::Unload { model }
            | Route::TraceSettings { model }
            | Route::ChangeTracing { model } => model,
            _ => "",
        }
    }

    /// The group of the route that `path` names. A wrong method changes nothing: Triton asks for the header before it
    /// looks at the method.
    pub fn group(&self, path: &'a str) -> Option<Group> {
        Some(match self {
            Route::Live | Route::Ready | Route::ModelReady { .. } => Group::Health,
            Route::Server | Route::ModelMetadata { .. } => Group::Metadata,
            Route::ModelConfig { .. } => Group::ModelConfig,
            Route::Statistics { .. } | Route::Explain { .. } => Group::Statistics,
            Route::Infer { .. }
            | Route::Generate { .. }
            | Route::SequenceState { .. }
            | Route::RestoreSequence { .. }
            | Route::EndSequence { .. } => Group::Inference,
            Route::Index | Route::Load { .. } | Route::Unload { .. } | Route::NamedRepository => Group::ModelRepository,
            Route::Region(_) => Group::SharedMemory,
            Route::LogSettings | Route::ChangeLog => Group::Logging,
            Route::TraceSettings { .. } | Route::ChangeTracing { .. } => Group::Trace,
            Route::WrongMethod { .. } => {
                // Every path that exists is read with GET or answered to POST.
                let mut routes = [Method::GET, Method::POST].into_iter().map(|method| Route::of(&method, path));
                return routes.find(|route| !matches!(route, Route::WrongMethod { .. }))?.group(path);
            }
            // The page has two, which it asks for itself: it is none where nobody wants HTML.
            Route::Page => return None,
            Route::WrittenPage { .. } => Group::Openapi,
            Route::Endpoint { .. } => Group::Endpoint,
            Route::Undecodable | Route::Unknown => return unknown_group(path),
        })
    }

    /// Whether a server that stops refuses the request. Whoever moves sequences elsewhere may still read their states.
    pub fn is_refused_at_stop(&self, path: &'a str) -> bool {
        !matches!(self, Route::SequenceState { .. }) && self.group(path).is_some_and(Group::is_refused_at_stop)
    }

    fn of_prefix(method: &Method, path: &'a str) -> Route<'a> {
        if let Some(rest) = path.strip_prefix("/v2/repository/") {
            Route::of_repository(method, rest)
        } else if let Some(rest) = path.strip_prefix("/v2/systemsharedmemory/") {
            region(method, rest, false)
        } else if let Some(rest) = path.strip_prefix("/v2/cudasharedmemory/") {
            region(method, rest, true)
        } else if Pages::is_path(path) {
            Route::WrittenPage { path }
        } else {
            Route::of_endpoint(path)
        }
    }

    fn of_endpoint(path: &'a str) -> Route<'a> {
        match path.strip_prefix('/') {
            Some(segment) if !segment.is_empty() => match decode(segment) {
                Some(model) if !model.contains('/') && !RESERVED_NAMES.contains(&model.as_ref()) => {
                    Route::Endpoint { model }
                }
                _ => Route::Unknown,
            },
            _ => Route::Unknown,
        }
    }

    fn of_model(method: &Method, rest: &'a str) -> Route<'a> {
        if rest == "stats" {
            return get(method, false, Route::Statistics { model: Cow::Borrowed(""), version: "" });
        }
        let segments: SmallVec<[&str; 6]> = rest.split('/').collect();
        let (model, version, action) = match segments[..] {
            [model, "versions", version, ref action @ ..] if is_number(version) => (model, version, action),
            [_, "versions", ..] | [""] | [] => return Route::Unknown,
            [model, ref action @ ..] => (model, "", action),
        };
        let Some(model) = decode(model) else { return Route::Undecodable };
        match action {
            ["infer"] => post(method, true, Route::Infer { model, version }),
            ["ready"] => get(method, true, Route::ModelReady { model, version }),
            [] => get(method, false, Route::ModelMetadata { model, version }),
            ["config"] => get(method, false, Route::ModelConfig { model, version }),
            ["stats"] => get(method, false, Route::Statistics { model, version }),
            ["explain"] => get(method, false, Route::Explain { model, version }),
            ["generate"] => post(method, false, Route::Generate { model, version, events: false }),
            ["generate_stream"] => post(method, false, Route::Generate { model, version, events: true }),
            ["sequences", id, "state"] if !id.is_empty() && method == Method::PUT => {
                Route::RestoreSequence { model, version, id }
            }
            ["sequences", id, "state"] if !id.is_empty() && method == Method::DELETE => {
                Route::EndSequence { model, version, id }
            }
            ["sequences", id, "state"] if !id.is_empty() => {
                get(method, false, Route::SequenceState { model, version, id })
            }
            ["trace", "setting"] if version.is_empty() => {
                setting(method, Route::TraceSettings { model: model.clone() }, Route::ChangeTracing { model })
            }
            _ => Route::Unknown,
        }
    }

    fn of_repository(method: &Method, rest: &'a str) -> Route<'a> {
        let parts: Vec<&str> = rest.split('/').collect();
        match parts[..] {
            ["index"] | [_, "index"] => post(method, false, Route::Index),
            ["models", model, action @ ("load" | "unload")] if !model.is_empty() => match (decode(model), action) {
                (Some(model), "load") => post(method, false, Route::Load { model }),
                (Some(model), _) => post(method, false, Route::Unload { model }),
                (None, _) => Route::Undecodable,
            },
            [_, "models", _, "load" | "unload"] => post(method, false, Route::NamedRepository),
            _ => Route::Unknown,
        }
    }
}

/// The group of a path that names no route: that of the routes beside it, so that a restricted listener does not reveal
/// which paths exist.
fn unknown_group(path: &str) -> Option<Group> {
    let segments: SmallVec<[&str; 8]> = path.strip_prefix("/v2/")?.split('/').collect();
    Some(match segments[..] {
        ["health", ..] => Group::Health,
        ["logging", ..] => Group::Logging,
        ["trace", ..] => Group::Trace,
        ["repository", ..] => Group::ModelRepository,
        ["systemsharedmemory" | "cudasharedmemory", ..] => Group::SharedMemory,
        ["models", _, "versions", _, ref action @ ..] | ["models", _, ref action @ ..] => match action {
            [] => Group::Metadata,
            ["ready", ..] => Group::Health,
            ["config", ..] => Group::ModelConfig,
            ["stats" | "explain", ..] => Group::Statistics,
            ["trace", ..] => Group::Trace,
            _ => Group::Inference,
        },
        _ => return None,
    })
}

/// The name that a segment of a path spells, if it is UTF-8.
fn decode(segment: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(segment).decode_utf8().ok()
}

fn is_number(version: &str) -> bool {
    !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
}

fn get<'a>(method: &Method, plain: bool, route: Route<'a>) -> Route<'a> {
    if method == Method::GET { route } else { Route::WrongMethod { plain } }
}

fn post<'a>(method: &Method, plain: bool, route: Route<'a>) -> Route<'a> {
    if method == Method::POST { route } else { Route::WrongMethod { plain } }
}

/// Settings are read with GET and changed with POST.
fn setting<'a>(method: &Method, read: Route<'a>, change: Route<'a>) -> Route<'a> {
    if method == Method::POST { change } else { get(method, false, read) }
}

/// Shared memory: the last segment names the action, those before it the region.
fn region<'a>(method: &Method, rest: &'a str, cuda: bool) -> Route<'a> {
    let (segment, action) = match rest.rsplit_once('/') {
        None => ("", rest),
        Some((named, action)) => match named.strip_prefix("region/") {
            Some(name) if !name.is_empty() && !name.contains('/') => (name, action),
            _ => return Route::Unknown,
        },
    };
    let Some(name) = decode(segment) else { return Route::Undecodable };
    let route = |action| Route::Region(Region { cuda, name, action });
    match action {
        "status" => get(method, false, route(RegionAction::Status)),
        "register" => post(method, false, route(RegionAction::Register)),
        "unregister" => post(method, false, route(RegionAction::Unregister)),
        _ => Route::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get_route(path: &str) -> Route<'_> {
        Route::of(&Method::GET, path)
    }

    #[test]
    fn a_path_names_model_and_version() {
        assert_eq!(get_route("/v2/models/m"), Route::ModelMetadata { model: "m".into(), version: "" });
        assert_eq!(get_route("/v2/models/m/versions/3"), Route::ModelMetadata { model: "m".into(), version: "3" });
        assert_eq!(get_route("/v2/models/m/versions/3/ready"), Route::ModelReady { model: "m".into(), version: "3" });
        let infer = Route::of(&Method::POST, "/v2/models/m/versions/12/infer");
        assert_eq!(infer, Route::Infer { model: "m".into(), version: "12" });
    }

    #[test]
    fn a_version_that_is_no_number_is_no_path() {
        for path in ["/v2/models/m/versions/two", "/v2/models/m/versions/", "/v2/models/", "/v2/models/m/", "/v2/"] {
            assert_eq!(get_route(path), Route::Unknown, "{path}");
        }
    }

    #[test]
    fn a_wrong_method_is_a_route_of_its_own() {
        assert_eq!(get_route("/v2/models/m/infer"), Route::WrongMethod { plain: true });
        assert_eq!(Route::of(&Method::POST, "/v2"), Route::WrongMethod { plain: false });
    }

    #[test]
    fn the_page_is_read_and_nothing_else() {
        assert_eq!(get_route("/"), Route::Page);
        for method in [Method::HEAD, Method::POST, Method::OPTIONS] {
            assert_eq!(Route::of(&method, "/"), Route::Unknown, "{method}");
        }
        assert_eq!(get_route("//"), Route::Unknown);
    }

    #[test]
    fn a_region_is_named_or_all_are_meant() {
        let region = |cuda, name, action| Route::Region(Region { cuda, name: Cow::Borrowed(name), action });
        assert_eq!(get_route("/v2/systemsharedmemory/status"), region(false, "", RegionAction::Status));
        assert_eq!(get_route("/v2/cudasharedmemory/region/x/status"), region(true, "x", RegionAction::Status));
        let post = |path| Route::of(&Method::POST, path);
        assert_eq!(post("/v2/systemsharedmemory/region/x/register"), region(false, "x", RegionAction::Register));
        assert_eq!(post("/v2/systemsharedmemory/unregister"), region(false, "", RegionAction::Unregister));
    }

    #[test]
    fn a_path_to_a_region_is_literal() {
        for path in ["", "other", "region/x", "region//status", "region/x/y/status", "x/status", "status/"] {
            assert_eq!(get_route(&format!("/v2/systemsharedmemory/{path}")), Route::Unknown, "{path}");
        }
        let wrong = Route::WrongMethod { plain: false };
        assert_eq!(get_route("/v2/systemsharedmemory/region/x/register"), wrong);
        assert_eq!(Route::of(&Method::POST, "/v2/cudasharedmemory/status"), wrong);
    }

    #[test]
    fn responses_are_generated_one_by_one_or_as_events() {
        let path = "/v2/models/m/versions/2/generate";
        let generate = |events| Route::Generate { model: "m".into(), version: "2", events };
        assert_eq!(Route::of(&Method::POST, path), generate(false));
        assert_eq!(Route::of(&Method::POST, &format!("{path}_stream")), generate(true));
        assert_eq!(get_route(path), Route::WrongMethod { plain: false });
    }

    #[test]
    fn settings_are_read_with_get_and_changed_with_post() {
        assert_eq!(get_route("/v2/logging"), Route::LogSettings);
        assert_eq!(Route::of(&Method::POST, "/v2/logging"), Route::ChangeLog);
        assert_eq!(get_route("/v2/models/m/trace/setting"), Route::TraceSettings { model: "m".into() });
        assert_eq!(Route::of(&Method::POST, "/v2/trace/setting"), Route::ChangeTracing { model: "".into() });
        assert_eq!(get_route("/v2/models/m/versions/1/trace/setting"), Route::Unknown);
        for path in ["/v2/logging", "/v2/trace/setting", "/v2/models/m/trace/setting"] {
            assert_eq!(Route::of(&Method::PUT, path), Route::WrongMethod { plain: false }, "{path}");
        }
    }

    #[test]
    fn a_model_or_one_version_of_it_is_explained() {
        assert_eq!(get_route("/v2/models/m/explain"), Route::Explain { model: "m".into(), version: "" });
        assert_eq!(get_route("/v2/models/m/versions/2/explain"), Route::Explain { model: "m".into(), version: "2" });
        assert_eq!(Route::of(&Method::POST, "/v2/models/m/explain"), Route::WrongMethod { plain: false });
    }

    #[test]
    fn the_state_of_a_sequence_has_its_routes() {
        let path = "/v2/models/m/versions/2/sequences/7/state";
        assert_eq!(get_route(path), Route::SequenceState { model: "m".into(), version: "2", id: "7" });
        let put = |path| Route::of(&Method::PUT, path);
        assert_eq!(put(path), Route::RestoreSequence { model: "m".into(), version: "2", id: "7" });
        assert_eq!(
            put("/v2/models/m/sequences/a%20b/state"),
            Route::RestoreSequence { model: "m".into(), version: "", id: "a%20b" }
        );
        assert_eq!(Route::of(&Method::DELETE, path), Route::EndSequence { model: "m".into(), version: "2", id: "7" });
        assert_eq!(Route::of(&Method::POST, path), Route::WrongMethod { plain: false });
        for path in ["sequences", "sequences/7", "sequences//state", "sequences/7/state/"] {
            assert_eq!(get_route(&format!("/v2/models/m/{path}")), Route::Unknown, "{path}");
        }
    }

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
            ("/v2/trace/setting", Some(Group::Trace)),
            ("/v2/logging", Some(Group::Logging)),
            ("/v2/models/m/config", Some(Group::ModelConfig)),
            ("/v2/repository/index", Some(Group::ModelRepository)),
            ("/v2/repository/some/index", Some(Group::ModelRepository)),
            ("/v2/repository/models/m/load", Some(Group::ModelRepository)),
            ("/v2/repository/models/m/unload", Some(Group::ModelRepository)),
            ("/v2/repository/some/models/m/load", Some(Group::ModelRepository)),
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
            ("/", None),
        ];
        for (path, group) in known {
            for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::HEAD, Method::OPTIONS] {
                assert_eq!(Route::of(&method, path).group(path), group, "{method} {path}");
            }
        }
    }

    #[test]
    fn one_segment_that_is_nothing_else_may_be_an_endpoint() {
        for method in [Method::POST, Method::GET, Method::OPTIONS] {
            assert_eq!(Route::of(&method, "/greet"), Route::Endpoint { model: "greet".into() });
            assert_eq!(Route::of(&method, "/v2x"), Route::Endpoint { model: "v2x".into() });
            assert_eq!(Route::of(&method, "/docs"), Route::WrittenPage { path: "/docs" });
        }
        for path in ["/v1", "/metrics", "/greet/", "/greet/1", "//", "greet", "*", "/v2/greet"] {
            assert_eq!(Route::of(&Method::POST, path), Route::Unknown, "{path}");
        }
        assert_eq!(Route::of(&Method::POST, "/v2"), Route::WrongMethod { plain: false });
        assert_eq!(get_route("/greet").model(), "");
    }

    #[test]
    fn a_named_repository_is_known_and_refused() {
        assert_eq!(Route::of(&Method::POST, "/v2/repository/some/models/m/load"), Route::NamedRepository);
    }

    #[test]
    fn statistics_of_all_models_hide_a_model_of_that_name() {
        assert_eq!(get_route("/v2/models/stats"), Route::Statistics { model: "".into(), version: "" });
    }

    #[test]
    fn names_in_a_path_are_percent_decoded() {
        let [model, infer] = ["a b/ä", "/v2/models/a%20b%2F%C3%A4/versions/2/infer"];
        assert_eq!(Route::of(&Method::POST, infer), Route::Infer { model: model.into(), version: "2" });
        let load = Route::of(&Method::POST, "/v2/repository/models/a%20b%2F%C3%A4/load");
        assert_eq!(load, Route::Load { model: model.into() });
        assert_eq!(get_route("/a%20b"), Route::Endpoint { model: "a b".into() });
        let region = |name| Route::Region(Region { cuda: false, name, action: RegionAction::Status });
        let path = |name: &str| format!("/v2/systemsharedmemory/region/{name}/status");
        assert_eq!(get_route(&path("a%2Fb%2520+")), region("a/b%20+".into()));
        // A percent sign that escapes nothing stands for itself.
        assert_eq!(get_route(&path("100%")), region("100%".into()));
    }

    #[test]
    fn what_is_decoded_is_a_name_and_nothing_else() {
        assert_eq!(get_route("/v2/models/stat%73"), Route::ModelMetadata { model: "stats".into(), version: "" });
        for path in ["/v2/models/m/versions/%31", "/v2/models/m/re%61dy", "/v2%2Fmodels%2Fm", "/v%32", "/d%6Fcs"] {
            assert_eq!(get_route(path), Route::Unknown, "{path}");
        }
    }

    #[test]
    fn a_name_that_is_no_utf8_is_refused_in_the_group_of_its_route() {
        let paths = [
            ("/v2/models/%FF/infer", Group::Inference),
            ("/v2/models/%FF/versions/1", Group::Metadata),
            ("/v2/repository/models/%C3/load", Group::ModelRepository),
            ("/v2/cudasharedmemory/region/%FF/status", Group::SharedMemory),
        ];
        for (path, group) in paths {
            assert_eq!(Route::of(&Method::POST, path), Route::Undecodable, "{path}");
            assert_eq!(Route::Undecodable.group(path), Some(group), "{path}");
        }
    }
}

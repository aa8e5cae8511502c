//! Requests about one model: the paths below `/v2/models/`.

use std::borrow::Cow;

use hyper::Method;
use smallvec::SmallVec;

use super::kind::Route;
use super::path::{decode, get, is_number, post, setting};

/// The request that a path below `/v2/models/` names.
pub fn of_model<'a>(method: &Method, rest: &'a str) -> Route<'a> {
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
        ["sequences", id, "state"] if !id.is_empty() => get(method, false, Route::SequenceState { model, version, id }),
        ["traffic"] if version.is_empty() => {
            setting(method, Route::Traffic { model: model.clone() }, Route::ChangeTraffic { model })
        }
        ["traffic", "outcomes"] if version.is_empty() => get(method, false, Route::TrafficOutcomes { model }),
        ["trace", "setting"] if version.is_empty() => {
            setting(method, Route::TraceSettings { model: model.clone() }, Route::ChangeTracing { model })
        }
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
    fn responses_are_generated_one_by_one_or_as_events() {
        let path = "/v2/models/m/versions/2/generate";
        let generate = |events| Route::Generate { model: "m".into(), version: "2", events };
        assert_eq!(Route::of(&Method::POST, path), generate(false));
        assert_eq!(Route::of(&Method::POST, &format!("{path}_stream")), generate(true));
        assert_eq!(get_route(path), Route::WrongMethod { plain: false });
    }

    #[test]
    fn a_model_or_one_version_of_it_is_explained() {
        assert_eq!(get_route("/v2/models/m/explain"), Route::Explain { model: "m".into(), version: "" });
        assert_eq!(get_route("/v2/models/m/versions/2/explain"), Route::Explain { model: "m".into(), version: "2" });
        assert_eq!(Route::of(&Method::POST, "/v2/models/m/explain"), Route::WrongMethod { plain: false });
    }

    #[test]
    fn the_weights_of_versions_are_those_of_a_model() {
        let path = "/v2/models/m/traffic";
        assert_eq!(get_route(path), Route::Traffic { model: "m".into() });
        assert_eq!(Route::of(&Method::POST, path), Route::ChangeTraffic { model: "m".into() });
        assert_eq!(get_route("/v2/models/m/traffic/outcomes"), Route::TrafficOutcomes { model: "m".into() });
        for path in ["/v2/models/m/versions/1/traffic", "/v2/models/m/traffic/x"] {
            assert_eq!(get_route(path), Route::Unknown, "{path}");
        }
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
    fn statistics_of_all_models_hide_a_model_of_that_name() {
        assert_eq!(get_route("/v2/models/stats"), Route::Statistics { model: "".into(), version: "" });
    }
}

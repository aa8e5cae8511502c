//! Requests of the V1 protocol: the paths below `/v1/`. Sources: KServe's V1 protocol, and the REST interface of
//! TensorFlow Serving, which has the same paths with a version too.

use hyper::Method;
use smallvec::SmallVec;

use super::kind::Route;
use super::path::{decode, get, is_number, post};

/// The request that a path below `/v1/` names.
pub fn of_v1<'a>(method: &Method, rest: &'a str) -> Route<'a> {
    let segments: SmallVec<[&str; 4]> = rest.split('/').collect();
    let (name, version, verb) = match segments[..] {
        ["models"] => return get(method, false, Route::PredictorNames),
        ["models", last] => {
            let (name, verb) = verb_of(last);
            (name, "", verb)
        }
        ["models", name, "versions", last] => {
            let (version, verb) = verb_of(last);
            if !is_number(version) {
                return Route::Unknown;
            }
            (name, version, verb)
        }
        _ => return Route::Unknown,
    };
    if name.is_empty() {
        return Route::Unknown;
    }
    let Some(model) = decode(name) else { return Route::Undecodable };
    match verb {
        "predict" => post(method, false, Route::Predict { model, version }),
        "explain" => post(method, false, Route::ExplainPrediction { model, version }),
        "" if version.is_empty() => get(method, false, Route::Predictor { model }),
        "" => get(method, false, Route::PredictorVersion { model, version }),
        verb => post(method, false, Route::NotPredict { model, version, verb }),
    }
}

/// The last segment without its verb, and that; a colon in front of anything else is part of a name.
fn verb_of(segment: &str) -> (&str, &str) {
    match segment.rsplit_once(':') {
        Some((name, verb @ ("predict" | "explain" | "classify" | "regress"))) => (name, verb),
        _ => (segment, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_stands_behind_the_name_or_its_version() {
        let post = |path| Route::of(&Method::POST, path);
        assert_eq!(post("/v1/models/m:predict"), Route::Predict { model: "m".into(), version: "" });
        assert_eq!(post("/v1/models/m/versions/3:predict"), Route::Predict { model: "m".into(), version: "3" });
        assert_eq!(post("/v1/models/a%20b:explain"), Route::ExplainPrediction { model: "a b".into(), version: "" });
        let classify = Route::NotPredict { model: "m".into(), version: "", verb: "classify" };
        assert_eq!(post("/v1/models/m:classify"), classify);
        for path in ["/v1/models/m:predict", "/v1/models/m/versions/3:explain", "/v1/models/m:regress"] {
            assert_eq!(Route::of(&Method::GET, path), Route::WrongMethod { plain: false }, "{path}");
        }
    }

    #[test]
    fn models_and_their_states_are_read() {
        let get = |path| Route::of(&Method::GET, path);
        assert_eq!(get("/v1/models"), Route::PredictorNames);
        assert_eq!(get("/v1/models/m"), Route::Predictor { model: "m".into() });
        assert_eq!(get("/v1/models/a:b"), Route::Predictor { model: "a:b".into() });
        assert_eq!(get("/v1/models/m/versions/3"), Route::PredictorVersion { model: "m".into(), version: "3" });
        assert_eq!(Route::of(&Method::POST, "/v1/models"), Route::WrongMethod { plain: false });
    }

    #[test]
    fn other_paths_below_v1_are_unknown() {
        for path in
            ["", "models/", "models/:predict", "models/m/versions/one:predict", "models/m/versions", "models/m/x"]
        {
            assert_eq!(Route::of(&Method::POST, &format!("/v1/{path}")), Route::Unknown, "{path}");
        }
        assert_eq!(Route::of(&Method::POST, "/v1/models/%FF:predict"), Route::Undecodable);
    }
}

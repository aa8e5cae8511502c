//! Which request a path and a method name. Sources: the routes of Triton's HTTP server; below `/v1/` those of KServe
//! and TensorFlow Serving.
//!
//! Names of models and regions are percent-decoded once the path is split, so a name may hold a slash. Triton compares
//! the path as it is, so it finds no name that its own client has to quote.

mod group;
mod kind;
mod model;
mod path;
mod region;
mod repository;
mod v1;

use std::borrow::Cow;

use alipes_protocol::call::RESERVED_NAMES;
use alipes_service::Pages;
use hyper::Method;

pub use kind::{Region, RegionAction, Route};
use model::of_model;
use path::{decode, get, setting};
use region::of_region;
use repository::of_repository;
use v1::of_v1;

impl<'a> Route<'a> {
    /// The request that a method and a path name; a query string is not part of the path.
    pub fn of(method: &Method, path: &'a str) -> Route<'a> {
        // The one route that has to be fast stands first.
        if let Some(rest) = path.strip_prefix("/v2/models/") {
            return of_model(method, rest);
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

    fn of_prefix(method: &Method, path: &'a str) -> Route<'a> {
        if let Some(rest) = path.strip_prefix("/v2/repository/") {
            of_repository(method, rest)
        } else if let Some(rest) = path.strip_prefix("/v1/") {
            of_v1(method, rest)
        } else if let Some(rest) = path.strip_prefix("/v2/systemsharedmemory/") {
            of_region(method, rest, false)
        } else if let Some(rest) = path.strip_prefix("/v2/cudasharedmemory/") {
            of_region(method, rest, true)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get_route(path: &str) -> Route<'_> {
        Route::of(&Method::GET, path)
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
}

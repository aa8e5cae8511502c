//! Requests about clients' shared memory.

use hyper::Method;

use super::kind::{Region, RegionAction, Route};
use super::path::{decode, get, post};

/// Shared memory: the last segment names the action, those before it the region.
pub fn of_region<'a>(method: &Method, rest: &'a str, cuda: bool) -> Route<'a> {
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
    use std::borrow::Cow;

    use super::*;

    fn get_route(path: &str) -> Route<'_> {
        Route::of(&Method::GET, path)
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
}

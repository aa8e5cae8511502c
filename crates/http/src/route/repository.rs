//! Requests about the repository: the paths below `/v2/repository/`.

use hyper::Method;

use super::kind::Route;
use super::path::{decode, post};

/// The request that a path below `/v2/repository/` names.
pub fn of_repository<'a>(method: &Method, rest: &'a str) -> Route<'a> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_repository_is_known_and_refused() {
        assert_eq!(Route::of(&Method::POST, "/v2/repository/some/models/m/load"), Route::NamedRepository);
    }
}

//! Pieces of paths, and the methods that they take.

use std::borrow::Cow;

use hyper::Method;
use percent_encoding::percent_decode_str;

use super::kind::Route;

/// The name that a segment of a path spells, if it is UTF-8.
pub fn decode(segment: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(segment).decode_utf8().ok()
}

/// Whether a segment can be a version.
pub fn is_number(version: &str) -> bool {
    !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
}

/// A route that is read with GET; `plain` is how Triton labels the refusal of other methods.
pub fn get<'a>(method: &Method, plain: bool, route: Route<'a>) -> Route<'a> {
    if method == Method::GET { route } else { Route::WrongMethod { plain } }
}

/// A route that takes POST; `plain` is how Triton labels the refusal of other methods.
pub fn post<'a>(method: &Method, plain: bool, route: Route<'a>) -> Route<'a> {
    if method == Method::POST { route } else { Route::WrongMethod { plain } }
}

/// Settings are read with GET and changed with POST.
pub fn setting<'a>(method: &Method, read: Route<'a>, change: Route<'a>) -> Route<'a> {
    if method == Method::POST { change } else { get(method, false, read) }
}

//! Pages that the control plane has written: the description of the endpoints, and what shows it in a browser.

use alipes_service::Service;
use hyper::header::{ALLOW, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Method, Response, StatusCode};

use super::hints;
use super::response::{self, ResponseBody};

/// The page of a path, where there is one.
pub fn answer(service: &Service, method: &Method, path: &str) -> Option<Response<ResponseBody>> {
    let page = service.pages.get(path)?;
    if method != Method::GET {
        let mut refusal = response::wrong_method(false, &hints::of_page(service));
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return Some(refusal);
    }
    // The control plane's words were checked when it gave them.
    let content_type = HeaderValue::from_str(&page.content_type).unwrap_or(response::OCTETS);
    let mut response = response::new(StatusCode::OK, content_type, page.body.clone());
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Some(response)
}

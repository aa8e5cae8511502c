//! Cross-origin requests: which pages a browser lets read the responses. Source: the Fetch standard, *CORS protocol*.

use alipes_spec::ServerConfig;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};

use super::response::ResponseBody;
use super::route::Route;

/// Stands for every origin.
const ANY: &str = "*";

/// Methods of the routes.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, OPTIONS");

/// Headers that the routes read, beside those of restricted groups.
const HEADERS: &str = "Accept, Authorization, Content-Encoding, Content-Type, Inference-Header-Content-Length, \
                       X-Api-Key, X-Request-Id, traceparent, tracestate";

/// Headers of responses that say something to a page.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Inference-Header-Content-Length, Retry-After, Server, X-Request-Id");

/// How long a browser may remember a preflight, in seconds.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("600");

/// Which origins may read responses.
pub struct Cors {
    /// Those that may; none where every one may.
    origins: Option<Vec<String>>,
    headers: HeaderValue,
}

impl Cors {
    /// What the configuration allows; none where it allows no origin, so that responses stay as they are.
    pub fn new(config: &ServerConfig) -> Option<Cors> {
        let origins = &config.http_cors_origins;
        if origins.is_empty() {
            return None;
        }
        let restricted = config.http_restricted.iter().map(|restriction| restriction.header.as_str());
        let headers = std::iter::once(HEADERS).chain(restricted).collect::<Vec<_>>().join(", ");
        Some(Cors {
            origins: (!origins.iter().any(|origin| origin == ANY)).then(|| origins.clone()),
            // A name that is no header can stand in no request either.
            headers: HeaderValue::try_from(headers).unwrap_or(HeaderValue::from_static(HEADERS)),
        })
    }

    /// What the origin of a request is granted.
    pub fn grant(&self, headers: &HeaderMap) -> Grant {
        let origin = headers.get(ORIGIN);
        match &self.origins {
            None => Grant { origin: origin.map(|_| HeaderValue::from_static(ANY)), varies: false },
            Some(origins) => {
                let known = |origin: &&HeaderValue| origins.iter().any(|known| known.as_bytes() == origin.as_bytes());
                Grant { origin: origin.filter(known).cloned(), varies: true }
            }
        }
    }

    /// The answer to a browser that asks whether a page may send a request; none where the request is no such question.
    ///
    /// It says nothing of the path, so restricted groups stay hidden, and it needs none of their headers, which a
    /// browser does not send with it.
    pub fn preflight<B>(&self, request: &Request<B>) -> Option<Response<ResponseBody>> {
        let (path, headers) = (request.uri().path(), request.headers());
        let is_question = request.method() == Method::OPTIONS
            && (path == "/v2" || path.starts_with("/v2/") || path.starts_with("/v1/") || is_beside_the_protocol(path))
            && headers.contains_key(ORIGIN)
            && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !is_question {
            return None;
        }
        let mut response = Response::new(ResponseBody::default());
        *response.status_mut() = StatusCode::NO_CONTENT;
        if self.grant(headers).origin.is_some() {
            response.headers_mut().insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            response.headers_mut().insert(ACCESS_CONTROL_ALLOW_HEADERS, self.headers.clone());
            response.headers_mut().insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
        }
        Some(response)
    }
}

/// Whether a path may be one of a model's endpoint, or of what describes it.
fn is_beside_the_protocol(path: &str) -> bool {
    matches!(Route::of(&Method::POST, path), Route::Endpoint { .. } | Route::WrittenPage { .. })
}

/// What an origin is granted.
pub struct Grant {
    /// The origin, as the response names it; none where it is granted nothing.
    origin: Option<HeaderValue>,
    /// Whether another origin is granted something else.
    varies: bool,
}

impl Grant {
    /// Adds the grant to a response.
    pub fn add_to(self, headers: &mut HeaderMap) {
        if self.varies {
            headers.append(VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = self.origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors(origins: &[&str]) -> Option<Cors> {
        let config = serde_json::json!({
            "schema": 1, "id": "x", "control_mode": "none", "counter_latencies": true, "cpu_metrics": true,
            "http": {"enabled": true, "address": "", "port": 0},
            "grpc": {"enabled": false, "address": "", "port": 0},
            "metrics": {"enabled": false, "address": "", "port": 0},
            "http_restricted": [{"groups": ["logging"], "header": "Admin-Key", "value": "word"}],
            "http_cors_origins": origins,
        });
        Cors::new(&serde_json::from_value(config).unwrap())
    }

    fn from(origin: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))])
    }

    fn granted(origins: &[&str], headers: &HeaderMap) -> HeaderMap {
        let mut response = HeaderMap::new();
        cors(origins).unwrap().grant(headers).add_to(&mut response);
        response
    }

    #[test]
    fn responses_stay_as_they_are_without_origins() {
        assert!(cors(&[]).is_none());
    }

    #[test]
    fn a_response_names_a_known_origin_and_no_other() {
        let known = granted(&["https://a", "https://b"], &from("https://b"));
        assert_eq!(
            (&known[ACCESS_CONTROL_ALLOW_ORIGIN], &known[VARY]),
            (&"https://b".parse().unwrap(), &"Origin".parse().unwrap())
        );
        for other in [from("https://c"), from("https://b.c"), from("null"), HeaderMap::new()] {
            let other = granted(&["https://a", "https://b"], &other);
            assert!(other.len() == 1 && other.contains_key(VARY), "{other:?}");
        }
        let any = granted(&["*"], &from("https://c"));
        assert!(any[ACCESS_CONTROL_ALLOW_ORIGIN] == "*" && !any.contains_key(VARY), "{any:?}");
        assert!(granted(&["*"], &HeaderMap::new()).is_empty());
    }

    #[test]
    fn only_a_browsers_question_is_a_preflight() {
        let cors = cors(&["https://a"]).unwrap();
        let asks = |method: Method, path: &str, question: bool| {
            let mut request = Request::builder().method(method).uri(path).header(ORIGIN, "https://a");
            if question {
                request = request.header(ACCESS_CONTROL_REQUEST_METHOD, "POST");
            }
            cors.preflight(&request.body(()).unwrap())
        };
        let response = asks(Method::OPTIONS, "/v2/models/m/infer", true).unwrap();
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        assert!(response.headers()[ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap().ends_with(", Admin-Key"));
        assert!(asks(Method::OPTIONS, "/v2", true).is_some());
        assert!(asks(Method::OPTIONS, "/v1/models/m:predict", true).is_some());
        assert!(asks(Method::OPTIONS, "/v2", false).is_none());
        assert!(asks(Method::OPTIONS, "/greet", true).is_some());
        assert!(asks(Method::OPTIONS, "/v2x/y", true).is_none());
        assert!(asks(Method::POST, "/v2", true).is_none());
    }
}

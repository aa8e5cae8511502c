//! What a request most likely meant whose path or method is not served: a sentence for the person who typed it.

use alipes_service::{Service, similar};
use hyper::{HeaderMap, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::hint::Hint;
use super::page;
use super::route::Route;

/// Most models that a hint names.
const MAX_MODELS: usize = 3;

/// What a path may have unescaped. Source: RFC 3986, section 2.3.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// First segments under which other servers say whether they are well.
const HEALTH: [&str; 10] =
    ["health", "healthz", "healthcheck", "live", "livez", "ready", "readyz", "readiness", "liveness", "ping"];

/// First segments under which other servers show their requests.
const PAGES: [&str; 6] = ["docs", "redoc", "swagger", "openapi", "openapi.json", "swagger.json"];

/// First segments under which other servers show what they have done.
const COUNTS: [&str; 3] = ["stats", "statistics", "status"];

/// First segments under which other servers say what they are.
const VERSIONS: [&str; 2] = ["version", "info"];

/// Paths of OpenAI's API.
const OPENAI: [&str; 4] = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"];

const READY: &str = "GET /v2/health/ready says whether the server is ready, GET /v2/health/live whether it runs";
const ALL_MODELS: &str = "POST /v2/repository/index lists its models";

/// What a server serves, as far as hints name it.
#[derive(Debug, Default)]
pub struct Offers {
    /// Names of models, each with whether plain requests can be sent to it; none where errors name no models.
    models: Vec<(String, bool)>,
    /// Why a model that is named in the path does not answer.
    reason: Option<String>,
    metrics: Option<String>,
    has_docs: bool,
}

impl Offers {
    /// What a service offers to a request with this path.
    fn of(service: &Service, path: &str, host: Option<&str>) -> Offers {
        let mut models = Vec::new();
        if !service.registry.is_concealed() {
            let known = service.registry.models();
            let serving = known.iter().filter_map(|(name, served)| Some((name, served.versions().last()?)));
            models.extend(serving.map(|(name, version)| (name.clone(), version.spec.endpoint.is_some())));
            models.sort();
        }
        let serves = |name: &str| models.iter().any(|(one, _)| one == name);
        let silent = segments(path).find(|name| is_listed(service, name) && !serves(name));
        Offers {
            reason: silent.and_then(|name| service.registry.reason(name, None)),
            models,
            metrics: page::metrics_url(service, host),
            has_docs: service.pages.get("/docs").is_some(),
        }
    }

    /// The model of this name.
    fn model(&self, name: &str) -> Option<&(String, bool)> {
        self.models.iter().find(|(one, _)| one == name)
    }

    /// The first models as requests.
    fn examples(&self) -> Option<String> {
        let shown: Vec<String> = self.models.iter().take(MAX_MODELS).map(request_to).collect();
        let more = self.models.len().saturating_sub(MAX_MODELS);
        match (shown.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(shown.join(", ")),
            (false, more) => Some(format!("{} and {more} more", shown.join(", "))),
        }
    }
}

fn is_listed(service: &Service, name: &str) -> bool {
    service.registry.index().iter().any(|entry| entry.name == name)
}

/// The request that runs a model.
fn request_to((name, has_endpoint): &(String, bool)) -> String {
    let name = utf8_percent_encode(name, ESCAPED);
    if *has_endpoint { format!("POST /{name}") } else { format!("POST /v2/models/{name}/infer") }
}

/// The request that runs a model, and what it carries.
fn usage(model: &(String, bool)) -> String {
    let path = utf8_percent_encode(&model.0, ESCAPED);
    match model.1 {
        true => format!("{} with its arguments as a JSON object", request_to(model)),
        false => format!(
            "{} with tensors, or POST /v1/models/{path}:predict with plain values; GET /v2/models/{path} describes it",
            request_to(model)
        ),
    }
}

/// What a path that does not exist most likely meant.
pub fn of_path(service: &Service, path: &str, headers: &HeaderMap) -> Hint {
    Hint::new(service, || {
        let host = page::host_header(headers);
        path_hint(path, &Offers::of(service, path, host.as_deref()))
    })
}

fn path_hint(path: &str, offers: &Offers) -> String {
    let first = segments(path).find(|segment| !matches!(*segment, "v1" | "v2")).unwrap_or_default().to_lowercase();
    if first == "metrics" {
        return match &offers.metrics {
            Some(url) => format!("the metrics are at {url}"),
            None => "the server offers no metrics: start it with --allow-metrics=true".to_owned(),
        };
    }
    if HEALTH.contains(&&*first) {
        return READY.to_owned();
    }
    if PAGES.contains(&&*first) {
        return match offers.has_docs {
            true => "GET /docs shows the requests of this server, GET /openapi.json describes them".to_owned(),
            false => "start the server with --enable-docs-url=true for /docs and /openapi.json".to_owned(),
        };
    }
    if let Some(reason) = &offers.reason {
        return reason.clone();
    }
    if let Some(model) = segments(path).find_map(|segment| offers.model(segment)) {
        return usage(model);
    }
    if COUNTS.contains(&&*first) {
        return format!("GET /v2/models/stats tells what each model has done; {READY}");
    }
    if VERSIONS.contains(&&*first) {
        return "GET /v2 tells the version of the server".to_owned();
    }
    if OPENAI.contains(&path) {
        let examples = offers.examples().unwrap_or_else(|| ALL_MODELS.to_owned());
        return format!("OpenAI's API is not offered: this server takes {examples}");
    }
    let names = || offers.models.iter().map(|(name, _)| name.as_str());
    if let Some(model) = segments(path).find_map(|segment| offers.model(similar(segment, names())?)) {
        return format!("is '{}' meant? {}", model.0, usage(model));
    }
    match offers.examples() {
        Some(examples) => format!("this server takes {examples}; {ALL_MODELS}, {READY}"),
        None => format!("no model of this server is named so; {ALL_MODELS}, {READY}"),
    }
}

/// The names in a path, as they are spelled there.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty()).map(|segment| {
        // V1 puts a verb behind a colon.
        segment.split_once(':').map_or(segment, |(name, _)| name)
    })
}

/// The methods that a path takes, where it was asked with another one.
pub fn of_method(service: &Service, path: &str) -> Hint {
    Hint::new(service, || method_hint(path))
}

fn method_hint(path: &str) -> String {
    let is_served = |method: &Method| !matches!(Route::of(method, path), Route::WrongMethod { .. } | Route::Unknown);
    let methods = [Method::GET, Method::POST, Method::PUT, Method::DELETE];
    let names: Vec<&str> = methods.iter().filter(|method| is_served(method)).map(Method::as_str).collect();
    format!("send {}", names.join(" or "))
}

/// What to send to the endpoint of a model, where it was asked with another method.
pub fn of_endpoint(service: &Service, name: &str, methods: &str) -> Hint {
    Hint::new(service, || {
        let path = utf8_percent_encode(name, ESCAPED);
        let docs = if service.pages.get("/docs").is_some() { "; GET /docs shows an example" } else { "" };
        let first = methods.split(", ").next().unwrap_or_default();
        format!("send {first} /{path} with the arguments as a JSON object{docs}")
    })
}

/// A region without a name.
pub fn of_region(service: &Service) -> Hint {
    Hint::new(service, || "name the region: POST /v2/systemsharedmemory/region/NAME/register".to_owned())
}

/// What the metrics listener answers elsewhere than at `/metrics`: nothing that a scraper would count.
pub fn of_metrics_port(service: &Service) -> String {
    match service.config.triton_release.is_later() {
        true => "# GET /metrics shows the metrics; all other requests go to the server's HTTP port\n".to_owned(),
        false => String::new(),
    }
}

/// A path where something is only read, asked with another method.
pub fn of_page(service: &Service) -> Hint {
    Hint::new(service, || "send GET".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(path: &str) -> String {
        let models = vec![("iris".to_owned(), false), ("louder".to_owned(), true)];
        let metrics = Some("http://localhost:8002/metrics".to_owned());
        path_hint(path, &Offers { models, metrics, ..Offers::default() })
    }

    #[test]
    fn a_path_of_other_servers_leads_to_the_one_here() {
        for (path, start) in [
            ("/metrics", "the metrics are at http://localhost:8002/metrics"),
            ("/v2/metrics", "the metrics are at "),
            ("/health", "GET /v2/health/ready says"),
            ("/v2/health/other", "GET /v2/health/ready says"),
            ("/status", "GET /v2/models/stats tells what each model has done; GET /v2/health/ready says"),
            ("/v2/stats", "GET /v2/models/stats tells"),
            ("/version", "GET /v2 tells the version of the server"),
            ("/v1/chat/completions", "OpenAI's API is not offered: this server takes POST /v2/models/iris/infer, POST"),
            ("/docs", "start the server with --enable-docs-url=true"),
            ("/iris", "POST /v2/models/iris/infer with tensors, or POST /v1/models/iris:predict with plain values"),
            ("/v2/models/iris/predict", "POST /v2/models/iris/infer with tensors"),
            ("/models/iris:predict", "POST /v2/models/iris/infer with tensors"),
            ("/louder/", "POST /louder with its arguments as a JSON object"),
            ("/loud", "is 'louder' meant? POST /louder with its arguments"),
            ("/predict", "this server takes POST /v2/models/iris/infer, POST /louder; POST /v2/repository/index lists"),
        ] {
            assert!(hint(path).starts_with(start), "{path}: {}", hint(path));
        }
        assert_eq!(
            path_hint("/metrics", &Offers::default()),
            "the server offers no metrics: start it with --allow-metrics=true"
        );
        assert!(path_hint("/loud", &Offers::default()).starts_with("no model of this server is named so; POST /v2/"));
    }

    #[test]
    fn a_model_that_did_not_load_says_why() {
        let offers = Offers { reason: Some("version 1 of 'm' did not load: no".to_owned()), ..Offers::default() };
        assert_eq!(path_hint("/m", &offers), "version 1 of 'm' did not load: no");
    }

    #[test]
    fn many_models_are_not_all_named() {
        let models = (0..5).map(|number| (format!("m {number}"), true)).collect();
        let hint = path_hint("/predict", &Offers { models, ..Offers::default() });
        assert!(hint.starts_with("this server takes POST /m%200, POST /m%201, POST /m%202 and 2 more; "), "{hint}");
    }

    #[test]
    fn a_method_is_answered_with_those_that_a_path_has() {
        assert_eq!(method_hint("/v2/models/m/infer"), "send POST");
        assert_eq!(method_hint("/v2"), "send GET");
        assert_eq!(method_hint("/v2/logging"), "send GET or POST");
        assert_eq!(method_hint("/v2/models/m/sequences/7/state"), "send GET or PUT or DELETE");
    }
}

//! Steps whose models this server has: called by the functions that answer their requests over HTTP, so that both
//! answer alike.

use std::sync::Arc;

use alipes_graph::{Condition, Destination, Failure, Reply};
use alipes_net::connection::RequestBody;
use alipes_protocol::limits::READ_AT_ONCE_BYTES;
use alipes_service::Service;
use alipes_service::offload::offload_if;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{HeaderMap, Method, Request, Uri};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::called::called_model;
use crate::caller::Caller;
use crate::route::Route;
use crate::{call, infer, predict};

/// What a step's address means to this server.
#[derive(Debug)]
pub enum LocalPath {
    /// A model by its name: the body says in which protocol.
    Model {
        /// Its name.
        model: String,
        /// Where V1 and V2 have it, and its endpoint.
        paths: [String; 3],
        /// Whether it is a model of this server where one of the name is; else it has to be.
        by_host: bool,
    },
    /// A path of a model of a service that is called as a model of this server.
    Path {
        /// The name of the service.
        service: String,
        /// The path.
        path: String,
    },
    /// Nothing: it is the address of another.
    Elsewhere,
}

impl LocalPath {
    /// What a destination means.
    pub fn of(destination: &Destination) -> LocalPath {
        match destination {
            Destination::Model(model) => LocalPath::of_model(model, false),
            Destination::Url(url) => {
                let (service, path) = (url.service_name(), url.path.split('?').next().unwrap_or_default());
                match Route::of(&Method::POST, path) {
                    Route::Infer { .. } | Route::Predict { .. } => {
                        LocalPath::Path { service: service.to_owned(), path: path.to_owned() }
                    }
                    Route::Unknown if path == "/" => LocalPath::of_model(service, true),
                    _ => LocalPath::Elsewhere,
                }
            }
        }
    }

    fn of_model(model: &str, by_host: bool) -> LocalPath {
        let name = utf8_percent_encode(model, NON_ALPHANUMERIC);
        let paths = [format!("/v1/models/{name}:predict"), format!("/v2/models/{name}/infer"), format!("/{name}")];
        LocalPath::Model { model: model.to_owned(), paths, by_host }
    }

    /// The request that a step's body is to this server; none where it is another's.
    pub async fn route(&self, service: &Service, body: &Bytes) -> Option<Route<'_>> {
        let is_here = |name: &str| service.registry.find(name, "").is_ok();
        match self {
            LocalPath::Model { model, by_host: true, .. } if !is_here(model) => None,
            LocalPath::Model { model, paths, .. } => {
                let path = match protocol_of(body).await {
                    Protocol::V2 => &paths[1],
                    Protocol::Document if service.registry.endpoint(model).is_some() => &paths[2],
                    Protocol::V1 | Protocol::Document => &paths[0],
                };
                Some(Route::of(&Method::POST, path))
            }
            LocalPath::Path { service: name, path } => {
                let route = Route::of(&Method::POST, path);
                (is_here(name) && is_here(route.model())).then_some(route)
            }
            LocalPath::Elsewhere => None,
        }
    }

    /// The path of a route of this.
    fn path(&self, route: &Route<'_>) -> &str {
        match (self, route) {
            (LocalPath::Model { paths, .. }, Route::Infer { .. }) => &paths[1],
            (LocalPath::Model { paths, .. }, Route::Endpoint { .. }) => &paths[2],
            (LocalPath::Model { paths, .. }, _) => &paths[0],
            (LocalPath::Path { path, .. }, _) => path,
            (LocalPath::Elsewhere, _) => "/",
        }
    }
}

/// The protocol of a request, by its body.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    /// It has instances, or inputs that are plain values.
    V1,
    /// It has tensors.
    V2,
    /// It has neither: the arguments of a function.
    Document,
}

async fn protocol_of(body: &Bytes) -> Protocol {
    let (takes_long, body) = (body.len() > READ_AT_ONCE_BYTES, body.clone());
    let look = move || {
        let has = |path: &str| Condition::of(path).exists(&body);
        if has("inputs.0.datatype") {
            Protocol::V2
        } else if has("instances") || has("inputs") {
            Protocol::V1
        } else {
            Protocol::Document
        }
    };
    offload_if(takes_long, look).await.unwrap_or(Protocol::V1)
}

/// Calls a model.
pub async fn call(
    service: &Arc<Service>,
    route: Route<'_>,
    path: &LocalPath,
    body: Bytes,
    headers: HeaderMap,
    caller: Caller<'_>,
) -> Result<Reply<Bytes>, Failure> {
    let mut request = Box::new(Request::new(RequestBody::whole(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.path(&route).parse::<Uri>().map_err(|error| Failure::new(error.to_string()))?;
    *request.headers_mut() = headers;
    let response = match (called_model(service, &route, request.headers()), route) {
        (Some(model), _) => call::call(service, &model, request, caller).await,
        (None, Route::Infer { model, version }) => infer::infer(service, &model, version, request, caller).await,
        (None, Route::Endpoint { model }) => match service.registry.endpoint(&model) {
            Some(model) => call::call(service, &model, request, caller).await,
            None => return Err(Failure::new(format!("model '{model}' has no endpoint any more"))),
        },
        (None, Route::Predict { model, version }) => predict::predict(service, &model, version, request, caller).await,
        (None, _) => return Err(Failure::new("the step's path is none of a model")),
    };
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(|_| Failure::new("the answer of the model broke off"))?;
    Ok(Reply { status: head.status.as_u16(), body: body.to_bytes() })
}

#[cfg(test)]
mod tests {
    use alipes_graph::Url;

    use super::*;

    fn path_of(url: &str) -> LocalPath {
        LocalPath::of(&Destination::Url(Url::of(url).unwrap()))
    }

    #[test]
    fn an_address_may_be_that_of_a_model_of_this_server() {
        let LocalPath::Path { service, path } = path_of("http://iris-predictor.ns.svc/v1/models/iris:predict?x=1")
        else {
            panic!("a path of a model")
        };
        assert_eq!((service.as_str(), path.as_str()), ("iris", "/v1/models/iris:predict"));
        let LocalPath::Model { model, paths, by_host: true } = path_of("http://a-b.ns") else { panic!("a model") };
        assert_eq!(model, "a-b");
        assert_eq!(paths[1], "/v2/models/a%2Db/infer");
        for url in ["http://iris/other", "http://iris/v2/repository/models/iris/unload", "http://iris/v1/models/iris"] {
            assert!(matches!(path_of(url), LocalPath::Elsewhere), "{url}");
        }
    }

    #[tokio::test]
    async fn a_body_tells_its_protocol() {
        for (body, expected) in [
            (r#"{"inputs": [{"name": "x", "datatype": "FP32"}]}"#, "V2"),
            (r#"{"instances": []}"#, "V1"),
            (r#"{"inputs": {"x": [1]}}"#, "V1"),
            (r#"{"text": "a"}"#, "Document"),
            ("no JSON", "Document"),
        ] {
            assert_eq!(format!("{:?}", protocol_of(&Bytes::from_static(body.as_bytes())).await), expected, "{body}");
        }
    }
}

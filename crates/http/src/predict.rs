//! `:predict` of the V1 protocol: plain values in, plain values out.

use std::pin::pin;
use std::sync::Arc;

use alipes_net::connection::RequestBody;
use alipes_predict::{
    CloudEvent, CloudEventAnswer, PredictForm, PredictRequest, decode_event, decode_predict, encode_predictions,
    prediction_bytes,
};
use alipes_protocol::codec::json::{DecodeOptions, Memory};
use alipes_protocol::trace::{Moment, Trace};
use alipes_protocol::{Code, InferError, InferRequest, InferResponse, Origin, limits};
use alipes_request::budget::{Charge, GrowingCharge};
use alipes_service::offload::offload_if;
use alipes_service::payloads::Exchange;
use alipes_service::predict::predict_model;
use alipes_service::{Encoded, ModelVersion, Service};
use alipes_shared_memory::Held;
use alipes_stats::clock::now_ns;
use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{Request, Response};

use super::body::{self, Body, Expected, Received};
use super::caller::Caller;
use super::cloud_event;
use super::compression::{self, Coding};
use super::infer::{forwarded, header, respond, unknown_coding};
use super::response::{self, ResponseBody};

/// The name of the endpoint in refusals.
const ENDPOINT: &str = "V1 predict";

/// Answers a request.
pub async fn predict(
    service: &Arc<Service>,
    name: &str,
    version: &str,
    request: Box<Request<RequestBody>>,
    caller: Caller<'_>,
) -> Response<ResponseBody> {
    let (head, mut body) = request.into_parts();
    let trace = service.trace(name, &head.headers);
    // Before the body is read: the recorded spelling of the headers is dropped later.
    let parameters = forwarded(service, &head.headers, caller.peer.spelling);
    let read = pin!(read(service, name, version, &head, &mut body, trace.as_ref(), caller)).await;
    let stays = body::discard(body);
    let read = read.and_then(|read| Ok((read, parameters?)));
    let mut response = match read {
        Ok((Read { model, mut terms, form, logged }, parameters)) => {
            caller.name(&mut terms.id);
            terms.admitted = caller.is_admitted;
            terms.parameters = parameters;
            terms.trace = trace.clone();
            let answered = pin!(answer(service, &model, terms, form)).await;
            if let Some(exchange) = logged {
                exchange.end_body(answered.as_ref().map(|(encoded, _)| &encoded.head[..]));
            }
            match answered {
                Ok((encoded, event)) => {
                    let mut response = respond(encoded, Coding::of_answer(&head.headers), &service.budget).await;
                    event.iter().for_each(|event| cloud_event::mark(&mut response, event));
                    response
                }
                Err(error) => response::error(&error),
            }
        }
        Err(error) => {
            service.log_refusal(name, version, caller.request_id(), &error);
            if error.origin == Origin::Endpoint { unknown_coding(&error) } else { response::error(&error) }
        }
    };
    if !stays {
        response::announce_close(&mut response);
    }
    if let Some(trace) = trace {
        response.body_mut().traced(trace);
    }
    response
}

/// A request that was read.
struct Read {
    model: Arc<ModelVersion>,
    /// Its tensors, as they stand in the body, and their charge.
    terms: InferRequest,
    form: AnswerForm,
    /// Its place in the payload log.
    logged: Option<Exchange>,
}

/// How a request is answered.
struct AnswerForm {
    form: PredictForm,
    stacked: Option<usize>,
    /// The event that the request is.
    event: Option<CloudEvent>,
}

async fn read(
    service: &Service,
    name: &str,
    version: &str,
    head: &Parts,
    body: &mut RequestBody,
    trace: Option<&Arc<Trace>>,
    caller: Caller<'_>,
) -> Result<Read, InferError> {
    let model = service.lookup_predictor(name, version)?;
    let model = service.divide(model, version, |name| header(&head.headers, name));
    if model.is_decoupled() {
        return Err(service
            .lookup_unary(name, version, ENDPOINT, |name| header(&head.headers, name))
            .err()
            .unwrap_or_else(|| InferError::new(Code::Unsupported, "the model gives any number of responses")));
    }
    let mut event = cloud_event::of_head(&head.headers, service.config.cloud_events.merge)?;
    let max_bytes = service.config.http_max_input_bytes;
    let (text, charge) = read_text(service, head, max_bytes, body).await?;
    if let Some(trace) = trace {
        trace.note(Moment::HttpRecvEnd, now_ns());
    }
    let (is_long, sent) = (text.len() > limits::READ_AT_ONCE_BYTES, text.clone());
    let decode = {
        let (declared, budget) = (predict_model(&model), Arc::clone(&service.budget));
        let release = service.config.triton_release;
        move || {
            let growing = GrowingCharge::new(charge, &budget);
            let memory = |bytes| growing.take(bytes);
            let memory = is_long.then_some(&memory as &Memory<'_>);
            let options = DecodeOptions { max_input_bytes: max_bytes, memory, release };
            let request = match &mut event {
                Some(event) => decode_event(&text, &declared, options, event)?,
                None => decode_predict(&text, &declared, options)?,
            };
            Ok((request, event, growing.read()))
        }
    };
    let decoded = offload_if(is_long, decode).await;
    let (PredictRequest { form, inputs, stacked }, event, charge) =
        decoded.unwrap_or_else(|| Err(InferError::internal("the request could not be read")))?;
    let logged = service.payloads.begin_body(&model, caller.request_id(), &head.headers, &sent);
    drop(sent);
    let mut terms = InferRequest { inputs, ..InferRequest::default() };
    charge.ride(&service.budget, &mut terms, &Held::default())?;
    Ok(Read { model, terms, form: AnswerForm { form, stacked, event }, logged })
}

/// The body, expanded, and its charge.
///
/// # Errors
///
/// `Unsupported` for an unknown compression, and what `body::read_text` and `compression::expand` refuse.
async fn read_text(
    service: &Service,
    head: &Parts,
    max_bytes: usize,
    body: &mut RequestBody,
) -> Result<(Bytes, Charge), InferError> {
    let coding = Coding::of_request(&head.headers);
    let coding = coding
        .ok_or_else(|| InferError::new(Code::Unsupported, "Unsupported compression type").at(Origin::Endpoint))?;
    let budget = &service.budget;
    let read = body::read_text(body, max_bytes as u64, budget).await?;
    if coding == Coding::Identity {
        return Ok(read);
    }
    let expected = Expected { header_length: None, max_bytes: max_bytes as u64, memory: None, budget };
    let into = Received::new(&expected, 0);
    let (Body::Whole(text) | Body::Parts { json: text, .. }, charge) =
        compression::expand(read, into, max_bytes).await?;
    Ok((text, charge))
}

/// The answer, and the event that it is.
async fn answer(
    service: &Arc<Service>,
    model: &Arc<ModelVersion>,
    terms: InferRequest,
    AnswerForm { form, stacked, event }: AnswerForm,
) -> Result<(Encoded, Option<CloudEventAnswer>), InferError> {
    let (responses, rows) = pin!(service.predict(model, terms, stacked)).await?;
    let event = event.map(|event| service.answer_event(&event, &model.name));
    encode(form, responses, rows, event).await
}

/// The answer as it is sent: written on this thread, or beside it where that takes long.
async fn encode(
    form: PredictForm,
    responses: Vec<InferResponse>,
    rows: Option<Vec<usize>>,
    event: Option<CloudEventAnswer>,
) -> Result<(Encoded, Option<CloudEventAnswer>), InferError> {
    let is_long = prediction_bytes(&responses) > limits::WRITTEN_AT_ONCE_BYTES;
    let write = move || {
        let data = encode_predictions(form, &responses, rows.as_deref())?;
        let head = event.as_ref().and_then(|event| event.around(&data)).unwrap_or(data);
        Ok((Encoded { head: head.into(), tail: Vec::new(), binary: false }, event))
    };
    let written = offload_if(is_long, write).await;
    written.unwrap_or_else(|| Err(InferError::internal("the response could not be written")))
}

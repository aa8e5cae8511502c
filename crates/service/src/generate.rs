//! One request whose responses are taken one by one, as many as the model sends.

use std::future;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use alipes_protocol::codec::json::DeclaredInput;
use alipes_protocol::{InferError, InferRequest, InferResponse};
use alipes_request::check::explain_refusal;
use alipes_request::inflight::OwnedAdmission;
use alipes_request::mailbox::{Mailbox, Responses};
use alipes_request::responder::{Reply, Responder};
use alipes_runtime::model::ModelVersion;
use compact_str::CompactString;

use super::Service;
use super::caller_end::CallerEnd;
use super::infer::submit_beside;
use super::log::RequestRecord;
use super::payloads::Exchange;

impl Service {
    /// Begins a request to a model of any kind.
    ///
    /// # Errors
    ///
    /// What the request's checks refuse, and `Unavailable` while the server drains.
    pub async fn generate(
        &self,
        model: &Arc<ModelVersion>,
        mut request: InferRequest,
    ) -> Result<Generation, InferError> {
        let exchange = self.payloads.begin(model, &mut request);
        let arrived = alipes_clock::now();
        let inside = self.inflight.enter_owned()?;
        let id = request.id.clone();
        let budget = Arc::clone(&self.budget);
        let respond = || Responder::stream_through(Mailbox::counted(budget));
        let submitted = if model.submits_at_once(&request) {
            model.submit(request, arrived, respond)
        } else {
            Box::pin(submit_beside(model, request, arrived, respond)).await
        };
        if let Err(error) = &submitted {
            exchange.iter().for_each(|exchange| exchange.end(Err(error)));
            self.log_request(model, &id, alipes_clock::elapsed(arrived), Some(error));
        }
        let record = self.log.is_verbose().then(|| RequestRecord::new(&self.events, model, &id, arrived));
        let caller = CallerEnd::of(Arc::clone(model));
        let responses = submitted.map_err(|error| explain_refusal(&model.spec, self.config.triton_release, error))?;
        Ok(Generation { id, responses, caller, record, exchange, _inside: inside })
    }
}

/// What a model declares of an input, where it has one of this name.
pub fn declared_input(model: &ModelVersion, name: &str) -> Option<DeclaredInput> {
    let port = model.spec.inputs.iter().find(|port| port.name == name)?;
    let batch = (model.spec.max_batch_size > 0).then_some(-1);
    Some(DeclaredInput { datatype: port.datatype, shape: batch.into_iter().chain(port.dims.iter().copied()).collect() })
}

/// A request in flight. Dropping it cancels the request: while it is queued, it never reaches the model.
pub struct Generation {
    id: CompactString,
    responses: Responses,
    // After the responses, whose end marks the request as cancelled.
    caller: CallerEnd<Arc<ModelVersion>>,
    /// Its record for a verbose log.
    record: Option<RequestRecord>,
    /// Its place in the payload log.
    exchange: Option<Exchange>,
    _inside: OwnedAdmission,
}

impl Generation {
    /// The next response; none after the last.
    pub async fn next(&mut self) -> Option<Result<InferResponse, InferError>> {
        future::poll_fn(|context| self.poll_next(context)).await
    }

    /// The poll form of `next`.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<InferResponse, InferError>>> {
        while let Some(response) = ready!(self.responses.poll_next(context)) {
            self.caller.is_answered = response.last;
            // An end without a response is no response.
            if let Some(answer) = response.answer {
                if let (Some(record), Err(error)) = (&mut self.record, &answer) {
                    record.failed(error);
                }
                if let Some(exchange) = &self.exchange {
                    exchange.end(answer.as_ref().map(|reply| (&reply.outputs[..], &reply.parameters[..])));
                }
                return Poll::Ready(Some(answer.map(|reply| self.response(reply))));
            }
        }
        self.record.take().into_iter().for_each(RequestRecord::ended);
        Poll::Ready(None)
    }

    fn response(&self, Reply { outputs, parameters }: Reply) -> InferResponse {
        InferResponse {
            id: self.id.clone(),
            model_name: Arc::clone(&self.caller.model.name),
            model_version: self.caller.model.spec.version,
            parameters,
            outputs,
        }
    }
}

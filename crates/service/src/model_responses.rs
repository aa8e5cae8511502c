//! The responses of a model to one request, as many as it sends.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use alipes_protocol::{InferError, InferRequest, InferResponse, Tensor};
use alipes_request::check::explain_refusal;
use alipes_request::inflight::OwnedAdmission;
use alipes_request::mailbox::{Mailbox, Response, Responses};
use alipes_request::responder::{Answer, Reply, Responder};
use alipes_runtime::model::ModelVersion;
use alipes_runtime::traffic::OpenOutcome;
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
    pub(super) async fn begin(
        &self,
        model: &Arc<ModelVersion>,
        mut request: InferRequest,
    ) -> Result<ModelResponses, InferError> {
        let exchange = self.payloads.begin(model, &mut request);
        let arrived = alipes_clock::now();
        // Part of a request that is counted: a server that stops still takes it.
        let inside = if request.admitted { None } else { Some(self.inflight.enter_owned()?) };
        let id = request.id.clone();
        let budget = Arc::clone(&self.budget);
        let respond = || Responder::stream_through(Mailbox::counted(budget));
        let submitted = if model.submits_at_once(&request) {
            model.submit(request, arrived, respond)
        } else {
            Box::pin(submit_beside(model, request, arrived, respond)).await
        };
        if let Err(error) = &submitted {
            self.count_outcome(model, arrived, Err(error));
            exchange.iter().for_each(|exchange| exchange.end(Err(error)));
            self.log_request(model, &id, alipes_clock::elapsed(arrived), Some(error));
        }
        let record = self.log.is_verbose().then(|| RequestRecord::new(&self.events, model, &id, arrived));
        let outcome = self.open_outcome(model, arrived);
        let caller = CallerEnd::of(Arc::clone(model));
        let responses = submitted.map_err(|error| explain_refusal(&model.spec, self.config.triton_release, error))?;
        Ok(ModelResponses { id, responses, caller, record, exchange, outcome, _inside: inside })
    }
}

/// The responses of a model to one request. Dropping it cancels the request.
pub(super) struct ModelResponses {
    id: CompactString,
    responses: Responses,
    // After the responses, whose end marks the request as cancelled.
    caller: CallerEnd<Arc<ModelVersion>>,
    /// Its record for a verbose log.
    record: Option<RequestRecord>,
    /// Its place in the payload log.
    exchange: Option<Exchange>,
    /// Its place in the outcomes of its version.
    outcome: Option<Box<OpenOutcome>>,
    _inside: Option<OwnedAdmission>,
}

impl ModelResponses {
    /// The next response, or the end without a further one; none after the last.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Response>> {
        let Some(response) = ready!(self.responses.poll_next(context)) else { return Poll::Ready(None) };
        self.caller.is_answered = response.last;
        if let Some(outcome) = &mut self.outcome {
            outcome.take(alipes_clock::now(), outputs_of(response.answer.as_ref()), response.last);
        }
        if let Some(answer) = &response.answer {
            if let (Some(record), Err(error)) = (&mut self.record, answer) {
                record.failed(error);
            }
            if let Some(exchange) = &self.exchange {
                exchange.end(answer.as_ref().map(|reply| (&reply.outputs[..], &reply.parameters[..])));
            }
        }
        if response.last {
            self.record.take().into_iter().for_each(RequestRecord::ended);
        }
        Poll::Ready(Some(response))
    }

    /// A response as one of the model.
    pub(super) fn response(&self, Reply { outputs, parameters }: Reply) -> InferResponse {
        InferResponse {
            id: self.id.clone(),
            model_name: Arc::clone(&self.caller.model.name),
            model_version: self.caller.model.spec.version,
            parameters,
            outputs,
        }
    }
}

/// The outputs of a response, or its error; none of an end without one.
pub(super) fn outputs_of(answer: Option<&Answer>) -> Option<Result<&[Tensor], &InferError>> {
    answer.map(|answer| answer.as_ref().map(|reply| &reply.outputs[..]))
}

//! Converts records to spans: one for the whole request, one for each model that it reached, one for each execution.
//!
//! Names, attributes and events are Triton's, so that dashboards built on its spans keep working.

use std::time::{SystemTime, UNIX_EPOCH};

use alipes_protocol::trace::{Context, Moment, Record};
use alipes_stats::clock;
use alipes_stats::trace::context;

use super::message::{Event, KeyValue, Span};

/// Kind of a span on the server's side of a call. Source: OTLP's `SPAN_KIND_SERVER`.
const SERVER: i32 = 2;

/// Converts times of records to Unix time.
#[derive(Clone, Copy, Debug)]
pub struct Calendar {
    offset_ns: u64,
}

impl Calendar {
    /// The conversion by the two clocks now.
    pub fn now() -> Calendar {
        let (unix, ns) = clock::at_once(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos());
        Calendar { offset_ns: u64::try_from(unix).unwrap_or(u64::MAX).saturating_sub(ns) }
    }

    fn unix(self, ns: u64) -> u64 {
        ns.saturating_add(self.offset_ns)
    }
}

/// The spans of a request and of the requests that it caused; its own record is the last.
pub fn spans(calendar: Calendar, context: &Context, records: &[Record]) -> Vec<Span> {
    let Some(first) = records.last() else { return Vec::new() };
    let make = Make { calendar, context };
    let root = make.root(first, records);
    let mut spans = Vec::with_capacity(1 + records.len() * 2);
    for record in records.iter().rev() {
        let above = records.iter().find(|other| other.id == record.parent).map_or(root.1, |other| other.span);
        make.model(record, above, &mut spans);
    }
    spans.extend(root.0);
    spans
}

struct Make<'a> {
    calendar: Calendar,
    context: &'a Context,
}

impl Make<'_> {
    /// The span of the whole request, with the moments that its endpoint noted, and the span's number. Without moments
    /// there is no span.
    fn root(&self, first: &Record, records: &[Record]) -> (Option<Span>, u64) {
        let number = context::new_span();
        let moments: Vec<_> = first.moments.iter().copied().filter(|(moment, _)| is_endpoint(*moment)).collect();
        let all = records.iter().flat_map(|record| &record.moments).map(|&(_, ns)| ns);
        let Some((start, end)) = ends(all) else { return (None, number) };
        let mut span = self.span("InferRequest", number, self.context.parent_span, (start, end), &moments);
        span.trace_state.clone_from(&self.context.state);
        (Some(span), number)
    }

    /// The span of a model that the request reached, and the span of its execution.
    fn model(&self, record: &Record, above: u64, spans: &mut Vec<Span>) {
        let Some(subject) = &record.subject else { return };
        let of = |wanted: fn(Moment) -> bool| -> Vec<_> {
            record.moments.iter().copied().filter(|&(moment, _)| wanted(moment)).collect()
        };
        let (request, compute) = (of(is_request), of(is_compute));
        let within = record.moments.iter().filter(|(moment, _)| !is_endpoint(*moment)).map(|&(_, ns)| ns);
        if let Some(bounds) = ends(within) {
            let mut span = self.span(&subject.model, record.span, Some(above), bounds, &request);
            span.attributes = vec![
                KeyValue::text("triton.model_name", &subject.model),
                KeyValue::number("triton.model_version", subject.version),
                KeyValue::number("triton.trace_id", record.id as i64),
                KeyValue::number("triton.trace_parent_id", record.parent as i64),
            ];
            if !subject.request_id.is_empty() {
                span.attributes.push(KeyValue::text("triton.request_id", &subject.request_id));
            }
            spans.push(span);
        }
        if let Some(bounds) = ends(compute.iter().map(|&(_, ns)| ns)) {
            spans.push(self.span("compute", context::new_span(), Some(record.span), bounds, &compute));
        }
    }

    fn span(
        &self,
        name: &str,
        number: u64,
        parent: Option<u64>,
        (start, end): (u64, u64),
        moments: &[(Moment, u64)],
    ) -> Span {
        let event = |&(moment, ns): &(Moment, u64)| Event {
            time_unix_nano: self.calendar.unix(ns),
            name: moment.name().into(),
        };
        let mut moments = moments.to_vec();
        moments.sort_by_key(|&(_, ns)| ns);
        Span {
            trace_id: self.context.trace_id.to_be_bytes().to_vec(),
            span_id: number.to_be_bytes().to_vec(),
            parent_span_id: parent.map_or_else(Vec::new, |parent| parent.to_be_bytes().to_vec()),
            name: name.to_owned(),
            kind: SERVER,
            start_time_unix_nano: self.calendar.unix(start),
            end_time_unix_nano: self.calendar.unix(end),
            events: moments.iter().map(event).collect(),
            ..Span::default()
        }
    }
}

/// The first and the last of some times; none without times.
fn ends(moments: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
    moments.fold(None, |ends, ns| {
        let (first, last) = ends.unwrap_or((ns, ns));
        Some((first.min(ns), last.max(ns)))
    })
}

fn is_endpoint(moment: Moment) -> bool {
    !is_request(moment) && !is_compute(moment)
}

fn is_request(moment: Moment) -> bool {
    matches!(moment, Moment::RequestStart | Moment::QueueStart | Moment::RequestEnd)
}

fn is_compute(moment: Moment) -> bool {
    matches!(moment, Moment::ComputeStart | Moment::ComputeInputEnd | Moment::ComputeOutputStart | Moment::ComputeEnd)
}

#[cfg(test)]
mod tests {
    use alipes_protocol::trace::Subject;

    use super::*;

    fn record(id: u64, parent: u64, moments: &[(Moment, u64)]) -> Record {
        let subject = Subject { model: format!("m{id}"), version: 1, request_id: "r".into() };
        let moments = moments.to_vec();
        Record { id, parent, span: id * 10, subject: Some(subject), moments, ..Record::default() }
    }

    #[test]
    fn each_span_lies_in_the_one_that_led_to_it() {
        let context = Context { trace_id: 7, parent_span: Some(3), state: "a=b".into() };
        let child = record(2, 1, &[(Moment::RequestStart, 30), (Moment::RequestEnd, 35)]);
        let moments = [
            (Moment::HttpRecvStart, 5),
            (Moment::RequestStart, 10),
            (Moment::ComputeStart, 20),
            (Moment::ComputeEnd, 40),
            (Moment::InferResponseComplete, 45),
            (Moment::RequestEnd, 45),
            (Moment::HttpSendEnd, 50),
        ];
        let spans = spans(Calendar { offset_ns: 1000 }, &context, &[child, record(1, 0, &moments)]);
        let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
        let (root, model, compute, child) = (named("InferRequest"), named("m1"), named("compute"), named("m2"));
        assert_eq!(spans.len(), 4);
        assert!(spans.iter().all(|span| span.trace_id == 7u128.to_be_bytes() && span.kind == SERVER));
        assert_eq!((root.parent_span_id.as_slice(), root.trace_state.as_str()), (&3u64.to_be_bytes()[..], "a=b"));
        assert_eq!((&model.parent_span_id, &model.span_id), (&root.span_id, &10u64.to_be_bytes().to_vec()));
        assert_eq!((&compute.parent_span_id, &child.parent_span_id), (&model.span_id, &model.span_id));
        assert_eq!((root.start_time_unix_nano, root.end_time_unix_nano), (1005, 1050));
        assert_eq!((model.start_time_unix_nano, model.end_time_unix_nano), (1010, 1045));
        let names = |span: &Span| -> Vec<String> { span.events.iter().map(|event| event.name.clone()).collect() };
        assert_eq!(names(root), ["HTTP_RECV_START", "INFER_RESPONSE_COMPLETE", "HTTP_SEND_END"]);
        assert_eq!(names(compute), ["COMPUTE_START", "COMPUTE_END"]);
        assert!(model.attributes.contains(&KeyValue::text("triton.request_id", "r")));
    }

    #[test]
    fn a_request_that_reached_no_model_is_one_span() {
        let context = Context { trace_id: 7, parent_span: None, state: String::new() };
        let refused = Record { subject: None, ..record(1, 0, &[(Moment::HttpRecvStart, 1)]) };
        let spans = spans(Calendar { offset_ns: 0 }, &context, &[refused]);
        assert_eq!((spans.len(), spans[0].parent_span_id.len()), (1, 0));
    }
}

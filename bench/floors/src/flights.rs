//! Requests of a stream that are under way: every response is checked, none may be missing, doubled or out of order.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::{
    inference::{ModelInferResponse, ModelStreamInferResponse},
    responses::index_bytes,
};

/// A request under way.
struct Flight {
    id: String,
    sent: Instant,
    /// The index of the response that must come next.
    next: u32,
}

/// What each request must get.
#[derive(Clone, Copy)]
pub enum Expected {
    /// So many responses, each with its index as its value.
    Indices(u32),
    /// One response of any value, as long as all others, in the order of the requests.
    AnyOne,
}

/// The requests under way on one stream.
pub struct Flights {
    expected: Expected,
    /// Bytes of a value, once one has come.
    length: Option<usize>,
    under_way: VecDeque<Flight>,
    sent: u64,
}

impl Flights {
    /// None yet.
    #[must_use]
    pub fn new(expected: Expected) -> Self {
        Self { expected, length: None, under_way: VecDeque::new(), sent: 0 }
    }

    /// Whether no response is outstanding.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Requests that were sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Notes a request that is sent now; returns the id to send it under.
    pub fn send(&mut self) -> String {
        self.sent += 1;
        let id = self.sent.to_string();
        self.under_way.push_back(Flight { id: id.clone(), sent: Instant::now(), next: 0 });
        id
    }

    /// Takes a response; returns how long its request took where it is the last one.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the response.
    pub fn take(&mut self, message: &ModelStreamInferResponse) -> Result<Option<Duration>, String> {
        if !message.error_message.is_empty() {
            return Err(format!("the server answered an error: {}", message.error_message));
        }
        let response = message.infer_response.as_ref().ok_or("a message without a response")?;
        let position = self.under_way.iter().position(|flight| flight.id == response.id);
        let position = position.ok_or_else(|| format!("a response to {:?}, which is not under way", response.id))?;
        let flight = &mut self.under_way[position];
        let complete = match self.expected {
            Expected::Indices(each) => {
                check(response, flight.next)?;
                flight.next += 1;
                flight.next == each
            }
            Expected::AnyOne if position > 0 => return Err(format!("a response to {:?} out of turn", response.id)),
            Expected::AnyOne => {
                check_length(response, &mut self.length)?;
                true
            }
        };
        Ok(if complete { self.under_way.remove(position).map(|flight| flight.sent.elapsed()) } else { None })
    }
}

fn check_length(response: &ModelInferResponse, length: &mut Option<usize>) -> Result<(), String> {
    let found = response.raw_output_contents.first().map(|value| value.len());
    match found {
        Some(bytes) if bytes > 0 && *length.get_or_insert(bytes) == bytes => Ok(()),
        _ => Err(format!("response to {}: a value of {found:?} bytes, expected {length:?}", response.id)),
    }
}

fn check(response: &ModelInferResponse, index: u32) -> Result<(), String> {
    let name = response.outputs.first().map(|output| output.name.as_str());
    let values = response.raw_output_contents.first().map(AsRef::as_ref);
    if name == Some("y") && values == Some(index_bytes(index).as_slice()) {
        return Ok(());
    }
    Err(format!("response {index} of {}: expected y = {index}, got {name:?} with the bytes {values:?}", response.id))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::inference::model_infer_response::InferOutputTensor;

    fn response(id: &str, index: u32) -> ModelStreamInferResponse {
        let response = ModelInferResponse {
            id: id.to_owned(),
            outputs: vec![InferOutputTensor { name: "y".to_owned(), ..Default::default() }],
            raw_output_contents: vec![Bytes::copy_from_slice(&index_bytes(index))],
            ..Default::default()
        };
        ModelStreamInferResponse { error_message: String::new(), infer_response: Some(response) }
    }

    #[test]
    fn a_request_is_complete_with_its_last_response_whatever_others_do() {
        let mut flights = Flights::new(Expected::Indices(2));
        let (one, other) = (flights.send(), flights.send());
        assert_eq!(flights.take(&response(&one, 0)), Ok(None));
        assert_eq!(flights.take(&response(&other, 0)), Ok(None));
        assert!(flights.take(&response(&other, 1)).unwrap().is_some());
        assert!(flights.take(&response(&one, 1)).unwrap().is_some());
        assert!(flights.is_empty());
    }

    #[test]
    fn a_response_out_of_order_is_noticed() {
        let mut flights = Flights::new(Expected::Indices(3));
        let id = flights.send();
        flights.take(&response(&id, 0)).unwrap();
        assert!(flights.take(&response(&id, 2)).unwrap_err().contains("expected y = 1"));
    }

    #[test]
    fn a_response_too_many_is_noticed() {
        let mut flights = Flights::new(Expected::Indices(1));
        let id = flights.send();
        flights.take(&response(&id, 0)).unwrap();
        assert!(flights.take(&response(&id, 1)).unwrap_err().contains("not under way"));
    }

    #[test]
    fn any_response_will_do_where_one_is_expected_but_only_in_turn() {
        let mut flights = Flights::new(Expected::AnyOne);
        let (one, other) = (flights.send(), flights.send());
        assert!(flights.take(&response(&other, 7)).unwrap_err().contains("out of turn"));
        assert!(flights.take(&response(&one, 9)).unwrap().is_some());
        assert!(flights.take(&response(&other, 7)).unwrap().is_some());
        assert!(flights.is_empty());
    }

    #[test]
    fn an_error_is_noticed() {
        let message = ModelStreamInferResponse { error_message: "no".to_owned(), infer_response: None };
        assert_eq!(
            Flights::new(Expected::Indices(1)).take(&message),
            Err("the server answered an error: no".to_owned())
        );
    }
}

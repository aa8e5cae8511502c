//! Requests of a stream that are under way: every response is checked, none may be missing, doubled or out of order.

use std::time::{Duration, Instant};

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

/// The requests under way on one stream.
pub struct Flights {
    /// Responses that each request must get.
    each: u32,
    under_way: Vec<Flight>,
    sent: u64,
}

impl Flights {
    /// None yet.
    #[must_use]
    pub fn new(each: u32) -> Self {
        Self { each, under_way: Vec::new(), sent: 0 }
    }

    /// Whether no response is outstanding.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Notes a request that is sent now; returns the id to send it under.
    pub fn send(&mut self) -> String {
        self.sent += 1;
        let id = self.sent.to_string();
        self.under_way.push(Flight { id: id.clone(), sent: Instant::now(), next: 0 });
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
        check(response, flight.next)?;
        flight.next += 1;
        let complete = flight.next == self.each;
        Ok(complete.then(|| self.under_way.swap_remove(position).sent.elapsed()))
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
        let mut flights = Flights::new(2);
        let (one, other) = (flights.send(), flights.send());
        assert_eq!(flights.take(&response(&one, 0)), Ok(None));
        assert_eq!(flights.take(&response(&other, 0)), Ok(None));
        assert!(flights.take(&response(&other, 1)).unwrap().is_some());
        assert!(flights.take(&response(&one, 1)).unwrap().is_some());
        assert!(flights.is_empty());
    }

    #[test]
    fn a_response_out_of_order_is_noticed() {
        let mut flights = Flights::new(3);
        let id = flights.send();
        flights.take(&response(&id, 0)).unwrap();
        assert!(flights.take(&response(&id, 2)).unwrap_err().contains("expected y = 1"));
    }

    #[test]
    fn a_response_too_many_is_noticed() {
        let mut flights = Flights::new(1);
        let id = flights.send();
        flights.take(&response(&id, 0)).unwrap();
        assert!(flights.take(&response(&id, 1)).unwrap_err().contains("not under way"));
    }

    #[test]
    fn an_error_is_noticed() {
        let message = ModelStreamInferResponse { error_message: "no".to_owned(), infer_response: None };
        assert_eq!(Flights::new(1).take(&message), Err("the server answered an error: no".to_owned()));
    }
}

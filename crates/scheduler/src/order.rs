//! Answers in the order of arrival, from batches that finish in any order.

use std::collections::VecDeque;

/// Holds the answers of a batch back until every batch that was taken before it has been answered.
///
/// Batches are taken in the order of arrival, so keeping the order of batches keeps the order of requests. `A` is what
/// a finished batch has to send.
#[derive(Debug)]
pub struct Order<A> {
    /// One place per batch that was taken and not yet released; `None` while it runs.
    places: VecDeque<Option<A>>,
    /// The ticket of the first place.
    first: u64,
}

impl<A> Default for Order<A> {
    fn default() -> Self {
        Order { places: VecDeque::new(), first: 0 }
    }
}

impl<A> Order<A> {
    /// A ticket for the batch that was just taken. To be called under the same lock as the taking.
    pub fn taken(&mut self) -> u64 {
        self.places.push_back(None);
        self.first + self.places.len() as u64 - 1
    }

    /// Hands in what the batch has to send; what may leave now is appended to `released`, oldest first.
    ///
    /// # Panics
    /// If the ticket is unknown or was answered before: then a request would be answered twice.
    pub fn answered(&mut self, ticket: u64, answer: A, released: &mut Vec<A>) {
        let place = ticket.checked_sub(self.first).and_then(|place| self.places.get_mut(usize::try_from(place).ok()?));
        let place = place.filter(|place| place.is_none()).expect("each ticket is answered once");
        *place = Some(answer);
        while let Some(answer) = self.places.front_mut().and_then(Option::take) {
            self.places.pop_front();
            self.first += 1;
            released.push(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_leave_in_the_order_of_the_tickets() {
        let (mut order, mut released) = (Order::default(), Vec::new());
        let tickets = [order.taken(), order.taken(), order.taken()];
        order.answered(tickets[1], "second", &mut released);
        assert!(released.is_empty());
        order.answered(tickets[0], "first", &mut released);
        assert_eq!(released, ["first", "second"]);
        order.answered(tickets[2], "third", &mut released);
        assert_eq!(released, ["first", "second", "third"]);
    }

    #[test]
    #[should_panic(expected = "answered once")]
    fn a_ticket_that_was_released_cannot_be_answered_again() {
        let (mut order, mut released) = (Order::default(), Vec::new());
        let ticket = order.taken();
        order.answered(ticket, (), &mut released);
        order.answered(ticket, (), &mut released);
    }
}

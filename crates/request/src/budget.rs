//! The bytes in flight: what the requests and answers that are in the house take, and the bound on it.
//!
//! A body is charged as room is made for it, so a length that is only announced holds nothing, and is looked at before
//! the first byte is read: what cannot fit is refused at once. The charge goes with the largest tensor of the request
//! and ends when that tensor is let go of, however the request ends, also where its client has left. Answers are
//! counted in the same way until the connection has sent them. Their memory is taken already, so one may overrun the
//! limit; while it is overrun, further answers and all requests are refused, the smallest included, since nobody knows
//! how much comes of them. Inputs that are converted to another datatype are charged beside the body until that is let
//! go of.

use std::cell::{Cell, RefCell};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alipes_protocol::limits::{BUDGET_FREE_BYTES, BUDGET_LARGE_BYTES, FREED_HERE_BYTES};
use alipes_protocol::{Code, InferError, InferRequest, Tensor};
use alipes_shared_memory::Held;
use bytes::Bytes;
use tokio::runtime::Handle;

/// What of the budget is kept back for requests that are not large, so that they still pass beside those that are.
const RESERVED_SHARE: u64 = 8;

/// Bytes that are taken, and how many may be.
#[derive(Debug)]
pub struct Budget {
    used: AtomicU64,
    limit: AtomicU64,
}

impl Budget {
    /// A budget of so many bytes.
    pub fn new(limit: u64) -> Arc<Budget> {
        Arc::new(Budget { used: AtomicU64::new(0), limit: AtomicU64::new(limit) })
    }

    /// Changes how many bytes there may be. What is taken stays, so that more than that may be in use for a while.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Bytes that are taken.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether a body of so many bytes could be had now.
    ///
    /// # Errors
    ///
    /// `Overloaded` where it could not.
    pub fn check(&self, announced: u64) -> Result<(), InferError> {
        let fits = announced <= BUDGET_FREE_BYTES || self.used().saturating_add(announced) <= self.ceiling(announced);
        if fits { Ok(()) } else { Err(self.exhausted("a body", announced)) }
    }

    /// Whether answers take more than there is.
    pub fn is_overrun(&self) -> bool {
        self.used() > self.limit()
    }

    /// What may be in use, a body of so many bytes included.
    fn ceiling(&self, bytes: u64) -> u64 {
        let limit = self.limit();
        if bytes > BUDGET_LARGE_BYTES { limit - limit / RESERVED_SHARE } else { limit }
    }

    fn take(&self, what: &str, more: u64, whole: u64) -> Result<(), InferError> {
        let before = self.used.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) <= self.ceiling(whole) {
            return Ok(());
        }
        self.used.fetch_sub(more, Ordering::Relaxed);
        Err(self.exhausted(what, whole))
    }

    fn exhausted(&self, what: &str, bytes: u64) -> InferError {
        let text = format!(
            "{what} of {bytes} bytes does not fit beside the requests and answers in flight, which take {} of {} bytes; \
             try again later, or give the server more with --max-inflight-bytes",
            self.used(),
            self.limit()
        );
        InferError::new(Code::Overloaded, text)
    }
}

/// What one body takes of the budget, until it is dropped.
#[derive(Debug, Default)]
pub struct Charge {
    // None as long as nothing is taken: a small body costs one comparison.
    budget: Option<Arc<Budget>>,
    bytes: u64,
}

impl Charge {
    /// Takes as much as a body of so many bytes needs; it never shrinks.
    ///
    /// # Errors
    ///
    /// `Overloaded` where it cannot be had; what was taken before is kept.
    pub fn grow(&mut self, budget: &Arc<Budget>, bytes: usize) -> Result<(), InferError> {
        self.grow_for("a body", budget, bytes as u64)
    }

    /// What an input takes in another datatype than it was sent in.
    ///
    /// # Errors
    ///
    /// `Overloaded` where it cannot be had.
    pub fn of_conversion(budget: &Arc<Budget>, bytes: usize) -> Result<Charge, InferError> {
        let mut charge = Charge::default();
        charge.grow_for("an input in the model's datatype", budget, bytes as u64)?;
        Ok(charge)
    }

    fn grow_for(&mut self, what: &str, budget: &Arc<Budget>, bytes: u64) -> Result<(), InferError> {
        if bytes <= BUDGET_FREE_BYTES || bytes <= self.bytes {
            return Ok(());
        }
        budget.take(what, bytes - self.bytes, bytes)?;
        self.bytes = bytes;
        self.budget.get_or_insert_with(|| Arc::clone(budget));
        Ok(())
    }

    /// Gives back what is over so many bytes.
    fn shrink(&mut self, bytes: u64) {
        if let Some(budget) = self.budget.as_ref().filter(|_| bytes < self.bytes) {
            budget.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }

    /// Counts an answer of so many bytes.
    ///
    /// # Errors
    ///
    /// `Overloaded` where answers take more than there is already.
    pub fn of_answer(budget: &Arc<Budget>, bytes: u64) -> Result<Charge, InferError> {
        if bytes > BUDGET_FREE_BYTES && budget.is_overrun() {
            return Err(budget.exhausted("an answer", bytes));
        }
        Ok(Charge::unchecked(budget, bytes))
    }

    /// Counts so many bytes that take the place of others, whatever else is in use.
    pub fn unchecked(budget: &Arc<Budget>, bytes: u64) -> Charge {
        if bytes <= BUDGET_FREE_BYTES {
            return Charge::default();
        }
        budget.used.fetch_add(bytes, Ordering::Relaxed);
        Charge { budget: Some(Arc::clone(budget)), bytes }
    }

    /// Hands the charge of a body to the request that it has become: it ends with the request's largest tensor.
    ///
    /// Numbers that came as text may take more now, and are charged for it; inputs that stay in their caller's regions
    /// take none of the server's memory.
    ///
    /// # Errors
    ///
    /// `Overloaded` where there is no room for what the body has become, or for any request.
    pub fn ride(mut self, budget: &Arc<Budget>, request: &mut InferRequest, held: &Held) -> Result<(), InferError> {
        if budget.is_overrun() {
            return Err(budget.exhausted("a request", bytes_of(&request.inputs) as u64));
        }
        self.grow(budget, bytes_of(&request.inputs).saturating_sub(held.lent_bytes()))?;
        self.ride_on(&mut request.inputs);
        Ok(())
    }

    fn ride_on(self, tensors: &mut [Tensor]) {
        if self.budget.is_none() {
            return;
        }
        if let Some(largest) = tensors.iter_mut().max_by_key(|tensor| tensor.data.len()) {
            largest.data = self.over(mem::take(&mut largest.data));
        }
    }

    /// The same bytes: when they are let go of, the charge ends.
    pub fn over(self, data: Bytes) -> Bytes {
        if self.budget.is_none() {
            return data;
        }
        Bytes::from_owner(Charged { data, _charge: self })
    }
}

/// The charge of a body while it is read: besides the body it counts what a text in it becomes, and what is copied from
/// regions that it names.
pub struct GrowingCharge<'a> {
    charge: RefCell<Charge>,
    budget: &'a Arc<Budget>,
    body_bytes: usize,
    /// What the text has become so far.
    read_bytes: Cell<usize>,
    copied_bytes: Cell<usize>,
}

impl<'a> GrowingCharge<'a> {
    /// The charge of a body that was received.
    pub fn new(charge: Charge, budget: &'a Arc<Budget>) -> GrowingCharge<'a> {
        let body_bytes = charge.bytes as usize;
        GrowingCharge {
            charge: RefCell::new(charge),
            budget,
            body_bytes,
            read_bytes: Cell::new(0),
            copied_bytes: Cell::new(0),
        }
    }

    /// Takes as much as is needed once the text has become so many bytes.
    ///
    /// # Errors
    ///
    /// `Overloaded` where it cannot be had.
    pub fn take(&self, bytes: usize) -> Result<(), InferError> {
        self.read_bytes.set(bytes);
        self.grow()
    }

    /// Takes as much as so many further bytes need that are copied from a region.
    ///
    /// # Errors
    ///
    /// `Overloaded` where it cannot be had.
    pub fn copy(&self, bytes: usize) -> Result<(), InferError> {
        self.copied_bytes.set(self.copied_bytes.get() + bytes);
        self.grow()
    }

    /// The charge once the body has been read and its text is let go of.
    pub fn read(self) -> Charge {
        let mut charge = self.charge.into_inner();
        charge.shrink((self.body_bytes + self.copied_bytes.get()) as u64);
        charge
    }

    fn grow(&self) -> Result<(), InferError> {
        let bytes = self.body_bytes + self.read_bytes.get() + self.copied_bytes.get();
        self.charge.borrow_mut().grow(self.budget, bytes)
    }
}

/// Counts the outputs of an answer until the last of their bytes is sent.
///
/// # Errors
///
/// As `Charge::of_answer`.
pub fn count_answer(budget: &Arc<Budget>, outputs: &mut [Tensor]) -> Result<(), InferError> {
    Charge::of_answer(budget, bytes_of(outputs) as u64)?.ride_on(outputs);
    Ok(())
}

fn bytes_of(tensors: &[Tensor]) -> usize {
    tensors.iter().map(|tensor| tensor.data.len()).sum()
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Bytes that a charge goes with.
struct Charged {
    data: Bytes,
    _charge: Charge,
}

impl Drop for Charged {
    fn drop(&mut self) {
        // The system takes milliseconds for each hundred megabytes that it gets back, and this may be a network thread.
        if self.data.len() > FREED_HERE_BYTES
            && let Ok(runtime) = Handle::try_current()
        {
            let data = mem::take(&mut self.data);
            drop(runtime.spawn_blocking(move || drop(data)));
        }
    }
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use alipes_protocol::{Datatype, Tensor};

    use super::*;

    const LIMIT: u64 = 8 << 20;

    fn tensor(name: &str, length: usize) -> Tensor {
        let (shape, data) = ([length as i64].into_iter().collect(), Bytes::from(vec![7; length]));
        Tensor { name: name.into(), datatype: Datatype::Uint8, shape, data }
    }

    fn grown(budget: &Arc<Budget>, bytes: usize) -> Result<Charge, InferError> {
        let mut charge = Charge::default();
        charge.grow(budget, bytes).map(|()| charge)
    }

    #[test]
    fn charged_bytes_are_released() {
        let budget = Budget::new(LIMIT);
        let mut charge = grown(&budget, 10_000).unwrap();
        charge.grow(&budget, 9_000).unwrap();
        assert_eq!(budget.used(), 10_000);
        charge.grow(&budget, 70_000).unwrap();
        assert_eq!(budget.used(), 70_000);
        drop(charge);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn nothing_is_charged_over_the_limit() {
        let budget = Budget::new(LIMIT);
        let held = grown(&budget, 6 << 20).unwrap();
        let refused = grown(&budget, 2 << 20).unwrap_err();
        assert_eq!(refused.code, Code::Overloaded);
        assert!(refused.message.starts_with("a body of 2097152 bytes does not fit beside"), "{}", refused.message);
        assert_eq!(budget.used(), 6 << 20);
        assert!(budget.check(2 << 20).is_err());
        drop(held);
        assert_eq!(budget.check(2 << 20), Ok(()));
    }

    #[test]
    fn a_lower_limit_leaves_what_is_in_use_and_refuses_more() {
        let budget = Budget::new(LIMIT);
        let held = grown(&budget, 6 << 20).unwrap();
        budget.set_limit(LIMIT / 2);
        assert!(budget.is_overrun() && budget.check(100_000).is_err());
        drop(held);
        assert_eq!((budget.check(100_000), budget.check(LIMIT / 2 + 1).is_err()), (Ok(()), true));
        budget.set_limit(2 * LIMIT);
        assert_eq!(budget.check(LIMIT), Ok(()));
    }

    #[test]
    fn a_body_of_exactly_the_limit_fits_and_one_byte_more_does_not() {
        let budget = Budget::new(100_000);
        assert!(grown(&budget, 100_000).is_ok());
        assert!(grown(&budget, 100_001).is_err());
        assert_eq!((budget.check(100_000), budget.check(100_001).is_err()), (Ok(()), true));
        assert!(budget.check(u64::MAX).is_err());
    }

    #[test]
    fn large_bodies_leave_room_for_others_and_small_ones_are_free() {
        let budget = Budget::new(LIMIT);
        let large = grown(&budget, (LIMIT - LIMIT / RESERVED_SHARE) as usize).unwrap();
        assert!(grown(&budget, BUDGET_LARGE_BYTES as usize + 1).is_err());
        let others = [grown(&budget, BUDGET_LARGE_BYTES as usize), grown(&budget, 5000)];
        assert!(others.iter().all(Result::is_ok));
        let full = Charge::of_answer(&budget, LIMIT).unwrap();
        assert!(grown(&budget, 5000).is_err());
        assert!(grown(&budget, BUDGET_FREE_BYTES as usize).is_ok());
        drop((large, others, full));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_charge_ends_with_the_tensor_that_it_rides_on() {
        let budget = Budget::new(LIMIT);
        let mut request = InferRequest { inputs: vec![tensor("a", 10), tensor("b", 9000)], ..InferRequest::default() };
        let address = request.inputs[1].data.as_ptr();
        grown(&budget, 9010).unwrap().ride(&budget, &mut request, &Held::default()).unwrap();
        assert_eq!(request.inputs[1].data.as_ptr(), address);
        let slice = request.inputs[1].data.slice(100..200);
        drop(request);
        assert_eq!((budget.used(), &slice[..2]), (9010, &[7, 7][..]));
        drop(slice);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_request_without_tensors_gives_its_charge_back() {
        let budget = Budget::new(LIMIT);
        grown(&budget, 9010).unwrap().ride(&budget, &mut InferRequest::default(), &Held::default()).unwrap();
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_grows_when_it_is_read_is_charged_for_what_it_has_become() {
        let budget = Budget::new(100_000);
        let request = |length| InferRequest { inputs: vec![tensor("a", length)], ..InferRequest::default() };
        let mut grows = request(80_000);
        grown(&budget, 20_000).unwrap().ride(&budget, &mut grows, &Held::default()).unwrap();
        assert_eq!(budget.used(), 80_000);
        let refused = Charge::default().ride(&budget, &mut request(20_001), &Held::default()).unwrap_err();
        assert_eq!((refused.code, budget.used()), (Code::Overloaded, 80_000));
    }

    #[test]
    fn copies_from_regions_are_charged_beside_the_body_and_once() {
        let budget = Budget::new(100_000);
        let growing = GrowingCharge::new(grown(&budget, 20_000).unwrap(), &budget);
        growing.copy(30_000).unwrap();
        growing.copy(10_000).unwrap();
        assert_eq!((growing.copy(40_001).unwrap_err().code, budget.used()), (Code::Overloaded, 60_000));
        drop(growing);
        let growing = GrowingCharge::new(Charge::default(), &budget);
        growing.copy(30_000).unwrap();
        let inputs = vec![tensor("a", 30_000)];
        let mut request = InferRequest { inputs, ..InferRequest::default() };
        growing.read().ride(&budget, &mut request, &Held::default()).unwrap();
        assert_eq!(budget.used(), 30_000);
        drop(request);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_a_text_becomes_is_charged_while_it_is_read() {
        let budget = Budget::new(100_000);
        let growing = GrowingCharge::new(grown(&budget, 20_000).unwrap(), &budget);
        growing.take(30_000).unwrap();
        assert_eq!(budget.used(), 50_000);
        growing.take(80_000).unwrap();
        let refused = growing.take(80_001).unwrap_err();
        assert_eq!((refused.code, budget.used()), (Code::Overloaded, 100_000));
        let charge = growing.read();
        assert_eq!(budget.used(), 20_000);
        drop(charge);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn an_answer_counts_until_the_last_slice_of_its_largest_output() {
        let budget = Budget::new(LIMIT);
        let mut outputs = [tensor("a", 10), tensor("b", 2 * LIMIT as usize)];
        count_answer(&budget, &mut outputs).unwrap();
        assert_eq!(budget.used(), 2 * LIMIT + 10);
        let slice = outputs[1].data.slice(..1);
        drop(outputs);
        assert_eq!(budget.used(), 2 * LIMIT + 10);
        drop(slice);
        assert_eq!(budget.used(), 0);
        count_answer(&budget, &mut [tensor("a", BUDGET_FREE_BYTES as usize)]).unwrap();
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_answer_may_overrun_the_limit_and_stops_admission() {
        let budget = Budget::new(LIMIT);
        let mut small = InferRequest { inputs: vec![tensor("a", 4)], ..InferRequest::default() };
        let mut first = [tensor("a", LIMIT as usize + 1)];
        count_answer(&budget, &mut first).unwrap();
        let refused = count_answer(&budget, &mut [tensor("a", 5000)]).unwrap_err();
        assert_eq!(refused.code, Code::Overloaded);
        assert!(refused.message.starts_with("an answer of 5000 bytes does not fit beside"), "{}", refused.message);
        assert!(count_answer(&budget, &mut [tensor("a", 10)]).is_ok());
        assert!(Charge::default().ride(&budget, &mut small, &Held::default()).is_err());
        drop(first);
        assert!(Charge::default().ride(&budget, &mut small, &Held::default()).is_ok());
        assert_eq!(budget.used(), 0);
    }
}

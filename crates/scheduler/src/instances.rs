//! Which instances of a model are idle.

/// Bits in one word of the bitmap.
const WORD: usize = u64::BITS as usize;

/// A record of a model's instances: each has a number and a place, and is idle or claimed.
///
/// The idle instance with the first place is claimed. Under light load the same few instances do all the work, so their
/// threads and memory stay warm and the others cost nothing; a round robin would keep every one of them half awake.
#[derive(Debug)]
pub struct Instances {
    /// One bit per place, set while its instance is idle.
    idle: Vec<u64>,
    count: usize,
    /// None as long as each instance has the place of its number, which is always but after a change of their number.
    order: Option<Box<Order>>,
}

/// The places of the instances, once some have been added or removed.
#[derive(Debug)]
struct Order {
    /// The instance at each place.
    at: Vec<usize>,
    /// By number: the place of the instance, and whether it is claimed.
    states: Vec<InstanceState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct InstanceState {
    /// `None` for an instance that is gone, or goes when it is released.
    place: Option<usize>,
    claimed: bool,
}

impl Instances {
    /// A record of `count` idle instances, each at the place of its number, from zero.
    pub fn new(count: usize) -> Self {
        let mut instances = Instances { idle: words(count), count, order: None };
        (0..count).for_each(|place| instances.mark(place));
        instances
    }

    /// All instances in service, idle or not.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Instances in service that are idle.
    pub fn idle(&self) -> usize {
        self.idle.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is an idle one in service.
    pub fn is_any_idle(&self) -> bool {
        self.idle.iter().any(|word| *word != 0)
    }

    /// Instances that are claimed, among them those that go when they are given back.
    pub fn claimed(&self) -> usize {
        match &self.order {
            None => self.count - self.idle(),
            Some(order) => order.states.iter().filter(|state| state.claimed).count(),
        }
    }

    /// Whether an instance is out of service: gone, or to go when it is given back.
    pub fn is_retired(&self, instance: usize) -> bool {
        self.order.as_ref().is_some_and(|order| order.states[instance].place.is_none())
    }

    /// Whether a number can be given to a new instance: nobody has it, or the one that had it is gone.
    pub fn is_free(&self, instance: usize) -> bool {
        match &self.order {
            None => instance >= self.count,
            Some(order) => order.states.get(instance).is_none_or(|state| !state.claimed && state.place.is_none()),
        }
    }

    /// Claims the first idle instance, or `None` if all are claimed.
    pub fn acquire(&mut self) -> Option<usize> {
        let (index, word) = self.idle.iter_mut().enumerate().find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros() as usize;
        *word &= *word - 1;
        let place = index * WORD + bit;
        let Some(order) = &mut self.order else { return Some(place) };
        let instance = order.at[place];
        order.states[instance].claimed = true;
        Some(instance)
    }

    /// Gives a claimed instance back.
    ///
    /// # Panics
    /// If there is no such instance, or if it is idle already: then two callers believe that it is theirs.
    pub fn release(&mut self, instance: usize) {
        let Some(order) = &mut self.order else {
            assert!(instance < self.count, "there is no instance {instance} of {}", self.count);
            return self.mark(instance);
        };
        let state = &mut order.states[instance];
        assert!(state.claimed, "instance {instance} was released twice");
        state.claimed = false;
        if let Some(place) = state.place {
            self.mark(place);
        }
    }

    /// Puts these instances into service, in the order in which they are to be claimed, and no others. Numbers that are
    /// free stand for new instances, which are idle. One that is left out goes at once where it is idle, else when it
    /// is given back.
    ///
    /// # Panics
    /// If an instance is named twice.
    pub fn rearrange(&mut self, instances: &[usize]) {
        let mut states = self.states();
        let numbers = instances.iter().map(|number| number + 1).max().unwrap_or(0);
        states.resize(numbers.max(states.len()), InstanceState::default());
        self.idle = words(instances.len());
        self.count = instances.len();
        for (place, &instance) in instances.iter().enumerate() {
            let state = &mut states[instance];
            assert!(state.place.replace(place).is_none(), "instance {instance} is named twice");
            if !state.claimed {
                self.mark(place);
            }
        }
        self.order = Some(Box::new(Order { at: instances.to_vec(), states }));
    }

    /// Which instances are claimed, by number; no place is assigned yet.
    fn states(&self) -> Vec<InstanceState> {
        match &self.order {
            None => {
                (0..self.count).map(|place| InstanceState { place: None, claimed: !self.is_marked(place) }).collect()
            }
            Some(order) => order.states.iter().map(|state| InstanceState { place: None, ..*state }).collect(),
        }
    }

    fn mark(&mut self, place: usize) {
        let (word, bit) = (&mut self.idle[place / WORD], 1 << (place % WORD));
        assert!(*word & bit == 0, "the instance at place {place} was released twice");
        *word |= bit;
    }

    fn is_marked(&self, place: usize) -> bool {
        self.idle[place / WORD] & (1 << (place % WORD)) != 0
    }
}

fn words(count: usize) -> Vec<u64> {
    vec![0; count.div_ceil(WORD)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(instances: &mut Instances) -> Vec<usize> {
        std::iter::from_fn(|| instances.acquire()).collect()
    }

    #[test]
    fn lowest_idle_instance_is_claimed_first() {
        let mut instances = Instances::new(3);
        assert_eq!([instances.acquire(), instances.acquire()], [Some(0), Some(1)]);
        instances.release(0);
        assert_eq!([instances.acquire(), instances.acquire(), instances.acquire()], [Some(0), Some(2), None]);
    }

    #[test]
    fn more_instances_than_bits_in_a_word_are_all_claimed_once() {
        let mut instances = Instances::new(130);
        assert_eq!(instances.idle(), 130);
        assert_eq!(all(&mut instances), (0..130).collect::<Vec<_>>());
        assert_eq!(instances.idle(), 0);
    }

    #[test]
    #[should_panic(expected = "released twice")]
    fn releasing_an_idle_instance_is_a_bug_that_shows() {
        Instances::new(1).release(0);
    }

    #[test]
    fn instances_are_claimed_in_the_order_that_they_were_put_in() {
        let mut instances = Instances::new(2);
        instances.rearrange(&[0, 2, 1, 3]);
        assert_eq!((instances.count(), instances.idle()), (4, 4));
        assert_eq!(all(&mut instances), [0, 2, 1, 3]);
        instances.release(1);
        assert_eq!(instances.acquire(), Some(1));
    }

    #[test]
    fn an_idle_instance_that_is_left_out_is_gone() {
        let mut instances = Instances::new(3);
        instances.rearrange(&[0, 2]);
        assert!(instances.is_retired(1) && instances.is_free(1));
        assert_eq!(all(&mut instances), [0, 2]);
    }

    #[test]
    fn a_claimed_instance_retires_at_its_release() {
        let mut instances = Instances::new(2);
        assert_eq!(all(&mut instances), [0, 1]);
        instances.rearrange(&[0]);
        assert!(instances.is_retired(1) && !instances.is_free(1));
        assert_eq!(instances.claimed(), 2);
        instances.release(1);
        assert!(instances.is_free(1));
        assert_eq!((instances.claimed(), instances.acquire()), (1, None));
    }

    #[test]
    fn a_reinstated_instance_stays_claimed_until_its_release() {
        let mut instances = Instances::new(1);
        assert_eq!(instances.acquire(), Some(0));
        instances.rearrange(&[]);
        instances.rearrange(&[0, 1]);
        assert_eq!(all(&mut instances), [1]);
        instances.release(0);
        assert_eq!(instances.acquire(), Some(0));
    }

    #[test]
    #[should_panic(expected = "released twice")]
    fn releasing_an_idle_instance_shows_after_a_change_too() {
        let mut instances = Instances::new(1);
        instances.rearrange(&[0, 1]);
        instances.release(1);
    }
}

//! Which instances of a model are idle.

/// Bits in one word of the book.
const WORD: usize = u64::BITS as usize;

/// The book of a model's instances, numbered from zero: each is idle or claimed.
///
/// The lowest idle number is claimed first. Under light load the same few instances do all the work, so their threads
/// and memory stay warm and the others cost nothing; a round robin would keep every one of them half awake.
#[derive(Debug)]
pub struct Instances {
    /// One bit per instance, set while it is idle.
    idle: Vec<u64>,
    count: usize,
}

impl Instances {
    /// A book of `count` idle instances.
    pub fn new(count: usize) -> Self {
        let mut instances = Instances { idle: vec![0; count.div_ceil(WORD)], count };
        (0..count).for_each(|instance| instances.release(instance));
        instances
    }

    /// All instances, idle or not.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Instances that are idle.
    pub fn idle(&self) -> usize {
        self.idle.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Claims the lowest idle instance, or `None` if all are claimed.
    pub fn acquire(&mut self) -> Option<usize> {
        let (index, word) = self.idle.iter_mut().enumerate().find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros() as usize;
        *word &= *word - 1;
        Some(index * WORD + bit)
    }

    /// Gives a claimed instance back.
    ///
    /// # Panics
    /// If there is no such instance, or if it is idle already: then two callers believe that it is theirs.
    pub fn release(&mut self, instance: usize) {
        assert!(instance < self.count, "there is no instance {instance} of {}", self.count);
        let (word, bit) = (&mut self.idle[instance / WORD], 1 << (instance % WORD));
        assert!(*word & bit == 0, "instance {instance} was released twice");
        *word |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let claimed: Vec<usize> = std::iter::from_fn(|| instances.acquire()).collect();
        assert_eq!(claimed, (0..130).collect::<Vec<_>>());
        assert_eq!(instances.idle(), 0);
    }

    #[test]
    #[should_panic(expected = "released twice")]
    fn releasing_an_idle_instance_is_a_bug_that_shows() {
        Instances::new(1).release(0);
    }
}

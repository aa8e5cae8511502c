//! What a fuzzer tries.

/// Longest input in bytes unless a fuzzer says otherwise: enough for each field of a message twice.
const LONGEST: usize = 4096;

/// Damaged seeds that are tried where nobody searches, unless a fuzzer says otherwise: a second's work at most.
const INPUTS: u32 = 4_000;

/// What a fuzzer tries, and under which name.
pub(super) struct Plan {
    /// Names its vectors, its corpus and its line in the table of `make fuzz`.
    pub name: &'static str,
    /// What inputs are made of at first.
    pub seeds: Vec<Vec<u8>>,
    /// Words of the format, which nobody finds letter by letter.
    pub words: Vec<String>,
    /// Longest input in bytes.
    pub longest: usize,
    /// Damaged seeds that are tried where nobody searches.
    pub inputs: u32,
}

impl Plan {
    /// A plan that says nothing unusual.
    pub fn new(name: &'static str, mut seeds: Vec<Vec<u8>>) -> Plan {
        seeds.retain(|seed| seed.len() <= LONGEST);
        Plan { name, seeds, words: Vec::new(), longest: LONGEST, inputs: INPUTS }
    }
}

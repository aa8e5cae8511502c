//! The states of a sequence as bytes, which anybody may send: they are read or refused, and never take more than they
//! are.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use alipes_engine::EngineError;
use alipes_protocol::codec::elements;
use alipes_protocol::{Code, Datatype, Shape};
use alipes_runtime::sequences::{StatePort, StateTensor, States};
use alipes_testkit::mutation::damaged;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

/// What a refusal may take, or the list of the states, beside the bytes that are kept.
const SMALL_BYTES: usize = 8 << 10;

/// The system's, which counts what each thread takes.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: what the system does; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: the caller keeps the same promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the same promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads bytes; what came of it, and what it took.
fn read(states: &States, bytes: &[u8]) -> (Result<Box<[StateTensor]>, EngineError>, usize) {
    let before = ALLOCATED.get();
    let read = states.of_bytes(bytes);
    (read, ALLOCATED.get() - before)
}

/// Reads bytes that anybody sent. What is taken for states is, byte for byte, what would be written of them.
fn assert_read_or_refused(states: &States, bytes: &[u8]) -> Result<(), TestCaseError> {
    let (read, allocated) = read(states, bytes);
    prop_assert!(allocated <= bytes.len() + SMALL_BYTES, "{allocated} bytes were taken for {}", bytes.len());
    match read {
        Ok(tensors) => prop_assert_eq!(&written(states, &tensors)[..], bytes),
        Err(error) => {
            prop_assert_eq!(error.code, Code::InvalidArgument);
            prop_assert!(!error.message.is_empty() && error.message.len() < 2000, "{}", error.message);
        }
    }
    Ok(())
}

fn written(states: &States, tensors: &[StateTensor]) -> Bytes {
    states.to_bytes(&tensors.iter().collect::<Vec<_>>())
}

/// A model's states, and what is kept for a sequence.
#[derive(Debug)]
struct Example {
    states: States,
    tensors: Vec<StateTensor>,
}

/// One state: its name, its type, its sizes, each with whether the model leaves it open, and numbers to make bytes of.
type Drawn = (String, Datatype, Vec<(usize, bool)>, Vec<u8>);

fn example(drawn: Vec<Drawn>) -> Example {
    let (list, tensors) = drawn
        .into_iter()
        .map(|(input, datatype, sizes, numbers)| {
            let declared: Shape = sizes.iter().map(|&(size, open)| if open { -1 } else { size as i64 }).collect();
            let shape: Shape = sizes.iter().map(|&(size, _)| size as i64).collect();
            let count = sizes.iter().map(|&(size, _)| size).product();
            let tensor = StateTensor { shape, data: data(datatype, count, &numbers) };
            let port = StatePort {
                input,
                output: "NEW".to_owned(),
                datatype,
                shape: declared,
                output_index: 0,
                initial: tensor.clone(),
            };
            (port, tensor)
        })
        .unzip();
    Example { states: States { list }, tensors }
}

/// So many elements.
fn data(datatype: Datatype, count: usize, numbers: &[u8]) -> Bytes {
    let mut numbers = numbers.iter().copied().cycle();
    let mut data = Vec::new();
    for _ in 0..count {
        match datatype.size() {
            Some(size) => data.extend(numbers.by_ref().take(size)),
            None => {
                let length = usize::from(numbers.next().unwrap_or_default() % 5);
                let element: Vec<u8> = numbers.by_ref().take(length).collect();
                elements::push(&mut data, &element);
            }
        }
    }
    data.into()
}

fn examples() -> impl Strategy<Value = Example> {
    let sizes = vec((0usize..4, any::<bool>()), 0..4);
    let state = ("[a-zA-Z_é]{0,8}", prop::sample::select(&Datatype::ALL[..]), sizes, vec(any::<u8>(), 1..40));
    vec(state, 0..4).prop_map(example)
}

/// States whose bytes are damaged: none, numbers of one size and of any, texts, and several of one name.
fn corpus() -> Vec<Example> {
    let state = |name: &str, datatype, sizes: &[(usize, bool)]| -> Drawn {
        (name.to_owned(), datatype, sizes.to_vec(), (1..=9).collect())
    };
    let floats = state("OLD", Datatype::Fp32, &[(1, false), (3, true)]);
    let texts = state("OLD", Datatype::Bytes, &[(2, true)]);
    let scalar = state("", Datatype::Bool, &[]);
    let empty = state("EMPTY", Datatype::Int64, &[(0, true), (4, false)]);
    let all = vec![floats.clone(), texts.clone(), scalar.clone(), empty.clone()];
    [vec![], vec![floats], vec![texts], vec![scalar, empty], all].map(example).into()
}

fn wire() -> Vec<Vec<u8>> {
    corpus().iter().map(|example| written(&example.states, &example.tensors).to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, max_shrink_iters: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn a_checkpoint_restores_the_states(example in examples()) {
        let Example { states, tensors } = example;
        let bytes = written(&states, &tensors);
        let (read, allocated) = read(&states, &bytes);
        prop_assert_eq!(&*read.unwrap(), &tensors[..]);
        prop_assert!(allocated <= bytes.len() + SMALL_BYTES);
    }

    #[test]
    fn the_states_of_one_model_are_those_of_another_only_where_they_fit_it(one in examples(), other in examples()) {
        assert_read_or_refused(&other.states, &written(&one.states, &one.tensors))?;
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in vec(any::<u8>(), 0..200), states in 0u32..5, length in any::<u32>()) {
        for Example { states: model, .. } in corpus() {
            assert_read_or_refused(&model, &bytes)?;
            let count = states.to_le_bytes();
            assert_read_or_refused(&model, &[b"ALIPSTA1", &count[..], &bytes].concat())?;
            assert_read_or_refused(&model, &[b"ALIPSTA1", &count[..], &length.to_le_bytes(), &bytes].concat())?;
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_read(bytes in damaged(wire())) {
        for Example { states, .. } in corpus() {
            assert_read_or_refused(&states, &bytes)?;
        }
    }
}

#[test]
fn a_name_or_a_shape_without_end_is_refused_in_a_few_words() {
    let states = &corpus()[1].states;
    let state = |name: &[u8], rank: usize| {
        let mut bytes = b"ALIPSTA1\x01\0\0\0".to_vec();
        bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[name, b"FP32\0\0\0\0", &(rank as u32).to_le_bytes()].concat());
        bytes.extend_from_slice(&vec![0xff; 8 * rank]);
        bytes.extend_from_slice(&[0; 8]);
        bytes
    };
    for (bytes, text) in [
        (state(&[0xff; 1 << 20], 2), "there is a state '\u{fffd}"),
        (state(b"OLD", 1 << 17), "state 'OLD' has 131072 dimensions, expected at most 64"),
        (state(b"OLD", 65), "state 'OLD' has 65 dimensions, expected at most 64"),
        (state(b"OLD", 64), "state 'OLD' has shape [-1,-1,"),
    ] {
        let (read, allocated) = read(states, &bytes);
        let message = read.unwrap_err().message;
        assert!(message.starts_with(text) && message.len() < 2000, "{message}");
        assert!(allocated <= SMALL_BYTES, "{allocated} bytes were taken to say: {message}");
    }
}

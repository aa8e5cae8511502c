use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alipes_protocol::limits::REGION_MAX_NAME_BYTES;
use alipes_protocol::{Code, Datatype, InferError, Origin, RegionSlice, Regions as _, Tensor};
use bytes::Bytes;
use rustix::fs::{Mode, ftruncate};
use rustix::{param, shm};

use crate::{Finder, MemoryKind, Regions};

const FLOATS: Datatype = Datatype::Fp32;

/// A client's object of shared memory, gone at the end of the test.
struct Object {
    key: String,
    fd: std::os::fd::OwnedFd,
}

impl Object {
    fn new(bytes: &[u8]) -> Object {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let key = format!("/alipes_test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
        let fd = shm::open(&key, flags, Mode::RUSR | Mode::WUSR).unwrap();
        let object = Object { key, fd };
        object.cut(bytes.len());
        object.write(0, bytes);
        object
    }

    fn cut(&self, len: usize) {
        ftruncate(&self.fd, len as u64).unwrap();
    }

    fn write(&self, offset: usize, bytes: &[u8]) {
        assert_eq!(rustix::io::pwrite(&self.fd, bytes, offset as u64), Ok(bytes.len()));
    }

    fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        assert_eq!(rustix::io::pread(&self.fd, &mut bytes, offset as u64), Ok(len));
        bytes
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let _ = shm::unlink(&self.key);
    }
}

fn page() -> usize {
    param::page_size()
}

/// The regions of a test, and an object of two pages behind the region `r`.
fn registered() -> (Arc<Regions>, Object) {
    let regions = Arc::new(Regions::new(8));
    let bytes: Vec<u8> = (0..2 * page()).map(|at| at as u8).collect();
    let object = Object::new(&bytes);
    regions.register("r", &object.key, 0, bytes.len() as u64).unwrap();
    (regions, object)
}

/// A finder that has room for any copy.
fn find_in(regions: &Arc<Regions>) -> Finder<'_> {
    Finder::new(regions, &|_| Ok(()))
}

fn slice(offset: usize, byte_size: usize) -> RegionSlice<'static> {
    RegionSlice { name: "r".into(), offset: offset as u64, byte_size: byte_size as u64 }
}

fn output(bytes: &[u8]) -> Tensor {
    let shape = [bytes.len() as i64].into_iter().collect();
    Tensor { name: "Y".into(), datatype: Datatype::Uint8, shape, data: Bytes::copy_from_slice(bytes) }
}

fn message<T>(outcome: Result<T, InferError>) -> String {
    outcome.err().expect("a refusal").message
}

#[test]
fn floats_are_lent_and_other_datatypes_are_copied() {
    let (regions, object) = registered();
    let mut finder = find_in(&regions);
    let lent = finder.input(slice(16, 8), FLOATS, &[1, 2]).unwrap();
    assert_eq!(lent[..], object.read(16, 8));
    object.write(16, &[9; 8]);
    assert_eq!(lent[..], [9; 8]);
    for datatype in [Datatype::Bool, Datatype::Bytes] {
        let copied = finder.input(slice(16, 8), datatype, &[8]).unwrap();
        object.write(16, &[7; 8]);
        assert_eq!(copied[..], [9; 8], "{datatype}");
        object.write(16, &[9; 8]);
    }
    let copied = finder.input(slice(16, 8), Datatype::Int64, &[1]).unwrap();
    object.write(16, &[7; 8]);
    assert_eq!(copied[..], [9; 8]);
}

#[test]
fn room_is_made_for_what_is_copied_and_for_nothing_else() {
    let (regions, _object) = registered();
    let wanted = RefCell::new(Vec::new());
    let room = |bytes| {
        wanted.borrow_mut().push(bytes);
        if bytes < 32 { Ok(()) } else { Err(InferError::new(Code::Overloaded, "no room")) }
    };
    let mut finder = Finder::new(&regions, &room);
    finder.input(slice(0, 8), FLOATS, &[2]).unwrap();
    finder.input(slice(0, 24), Datatype::Int64, &[3]).unwrap();
    let refused = finder.input(slice(0, 32), Datatype::Bytes, &[1]);
    assert_eq!(message(refused), "no room");
    assert_eq!((&wanted.borrow()[..], finder.held.lent_bytes()), (&[24, 32][..], 8));
}

#[test]
fn an_output_is_written_to_its_place_and_nowhere_else() {
    let (regions, object) = registered();
    let before = object.read(0, 64);
    let mut finder = find_in(&regions);
    finder.output(slice(10, 6), "Y").unwrap();
    let mut outputs = [output(&[1, 2, 3])];
    finder.held.settle(&mut outputs).unwrap();
    assert!(outputs[0].data.is_empty());
    assert_eq!(object.read(0, 64), [&before[..10], &[1, 2, 3], &before[13..]].concat());
    let refused = finder.held.settle(&mut [output(&[0; 7])]).unwrap_err();
    let text = "shared memory size specified with the request for output 'Y' (6 bytes) should be at least 7 bytes to \
                hold the results";
    assert_eq!((refused.code, refused.origin, refused.message.as_str()), (Code::Internal, Origin::Model, text));
}

#[test]
fn a_part_outside_of_its_region_is_refused() {
    let (regions, _object) = registered();
    let end = 2 * page();
    let mut finder = find_in(&regions);
    let mut refused = |offset: u64, byte_size: u64| {
        let slice = RegionSlice { name: "r".into(), offset, byte_size };
        message(finder.input(slice, FLOATS, &[1]))
    };
    assert_eq!(refused(end as u64, 1), "Invalid offset for shared memory region: 'r'");
    assert_eq!(refused(u64::MAX, 1), "Invalid offset for shared memory region: 'r'");
    assert_eq!(refused(1, end as u64), "Invalid offset + byte size for shared memory region: 'r'");
    assert_eq!(refused(0, 0), "Invalid offset + byte size for shared memory region: 'r'");
    let text = "Integer overflow detected: byte_size (18446744073709551584) + offset (32) exceeds maximum value \
                (18446744073709551615) for region 'r'";
    assert_eq!(refused(32, u64::MAX - 31), text);
    assert!(finder.input(slice(end - 4, 4), FLOATS, &[1]).is_ok());
}

#[test]
fn a_cut_region_reads_as_zeroes_and_fails_its_request() {
    let (regions, object) = registered();
    let mut finder = find_in(&regions);
    let lent = finder.input(slice(0, 2 * page()), FLOATS, &[page() as i64 / 2]).unwrap();
    object.cut(page());
    assert_eq!(lent[page() - 1], (page() - 1) as u8);
    assert!(finder.held.settle(&mut []).is_ok());
    // From here on the memory is the server's own.
    assert_eq!(lent[2 * page() - 1], 0);
    assert_eq!(lent[page() - 1], 0);
    assert!(message(finder.held.settle(&mut [])).starts_with("shared memory region 'r' has lost its memory"));
    assert!(message(finder.input(slice(0, 4), FLOATS, &[1])).contains("register it again"));
}

#[test]
fn a_cut_region_takes_no_output_and_leaves_the_object_alone() {
    let (regions, object) = registered();
    let mut finder = find_in(&regions);
    finder.output(slice(page() + 8, 4), "Y").unwrap();
    object.cut(page());
    let before = object.read(0, page());
    assert!(message(finder.held.settle(&mut [output(&[1, 2, 3, 4])])).contains("has lost its memory"));
    assert_eq!(object.read(0, page()), before);
}

#[test]
fn a_copy_of_a_cut_region_is_refused_at_once() {
    let (regions, object) = registered();
    object.cut(0);
    let refused = find_in(&regions).input(slice(0, 8), Datatype::Int64, &[1]);
    assert!(message(refused).contains("has lost its memory"));
}

#[test]
fn other_regions_notice_nothing_and_a_new_registration_makes_up_for_it() {
    let (regions, object) = registered();
    let other = Object::new(&[5; 100]);
    regions.register("other", &other.key, 0, 100).unwrap();
    object.cut(0);
    let mut finder = find_in(&regions);
    let _ = finder.input(slice(0, 8), Datatype::Int64, &[1]);
    let intact = RegionSlice { name: "other".into(), offset: 0, byte_size: 100 };
    assert_eq!(finder.input(intact, FLOATS, &[25]).unwrap()[..], [5; 100]);
    drop(finder);
    regions.unregister("r", MemoryKind::System);
    object.cut(page());
    object.write(0, &[3; 8]);
    regions.register("r", &object.key, 0, 8).unwrap();
    assert_eq!(find_in(&regions).input(slice(0, 8), FLOATS, &[2]).unwrap()[..], [3; 8]);
}

#[test]
fn many_threads_survive_a_region_that_is_cut_while_they_read_it() {
    let (regions, object) = registered();
    let mut finder = find_in(&regions);
    let lent = finder.input(slice(0, 2 * page()), FLOATS, &[page() as i64 / 2]).unwrap();
    let begun = std::sync::Barrier::new(5);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                begun.wait();
                while !lent.iter().all(|&byte| byte == 0) {}
            });
        }
        begun.wait();
        object.cut(0);
    });
    assert!(finder.held.settle(&mut []).is_err());
}

#[test]
fn a_region_in_use_stays_until_nobody_uses_it() {
    let (regions, object) = registered();
    let mut first = find_in(&regions);
    let lent = first.input(slice(0, 8), FLOATS, &[2]).unwrap();
    regions.unregister("r", MemoryKind::System);
    assert_eq!(regions.status("r", MemoryKind::System).unwrap().len(), 1);
    assert!(message(regions.register("r", &object.key, 0, 8)).contains("already in manager"));
    // Later requests keep it as well.
    let mut second = find_in(&regions);
    second.output(slice(0, 8), "Y").unwrap();
    drop((first, lent));
    assert_eq!(regions.status("", MemoryKind::System).unwrap().len(), 1);
    drop(second);
    assert_eq!(message(regions.status("r", MemoryKind::System)), "Unable to find system shared memory region: 'r'");
    assert!(regions.register("r", &object.key, 0, 8).is_ok());
}

#[test]
fn memory_that_was_lent_stays_after_its_region_has_gone() {
    let (regions, object) = registered();
    let mut finder = find_in(&regions);
    let lent = finder.input(slice(16, 8), FLOATS, &[2]).unwrap();
    let expected = object.read(16, 8);
    drop(finder);
    regions.unregister("", MemoryKind::System);
    drop(object);
    assert_eq!(lent[..], expected);
    drop(lent);
    assert!(regions.status("", MemoryKind::System).unwrap().is_empty());
}

#[test]
fn what_cannot_be_a_region_is_refused_with_triton_s_words() {
    let regions = Regions::new(2);
    let object = Object::new(&[0; 64]);
    let register = |name: &str, key: &str, offset, byte_size| regions.register(name, key, offset, byte_size);
    assert_eq!(message(register("a", "/none", 0, 1)), "Unable to open shared memory region: '/none'");
    for key in ["", "/", "..", "a/b", "/a/../b", "nul\0", &"x".repeat(300)] {
        assert_eq!(message(register("a", key, 0, 1)), format!("Unable to open shared memory region: '{key}'"));
    }
    let reserved = "//triton_python_backend_shm_region_1";
    let text = format!(
        "cannot register shared memory region 'a' with key '{reserved}' as the key contains the reserved prefix \
         'triton_python_backend_shm_region_'"
    );
    assert_eq!(message(register("a", reserved, 0, 1)), text);
    let failed = |text: &str| format!("failed to register shared memory region 'a': {text}");
    let invalid = failed("unable to process address spaceInvalid argument");
    assert_eq!(message(register("a", &object.key, 16, 32)), invalid);
    assert_eq!(message(register("a", &object.key, 0, 0)), invalid);
    assert_eq!(message(register("a", &object.key, 0, 65)), failed("invalid args"));
    assert_eq!(message(register("a", &object.key, 1, u64::MAX)), failed("invalid args"));
    assert!(regions.status("", MemoryKind::System).unwrap().is_empty());
}

#[test]
fn a_link_out_of_shared_memory_is_not_followed() {
    let target = std::env::temp_dir().join(format!("alipes_test_{}", std::process::id()));
    std::fs::write(&target, [1; 64]).unwrap();
    let name = format!("alipes_test_link_{}", std::process::id());
    let link = std::path::Path::new("/dev/shm").join(&name);
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let refused = Regions::new(1).register("a", &name, 0, 64);
    std::fs::remove_file(&link).unwrap();
    std::fs::remove_file(&target).unwrap();
    assert_eq!(message(refused), format!("Unable to open shared memory region: '{name}'"));
}

#[test]
fn no_more_regions_and_no_longer_names_than_allowed() {
    let regions = Regions::new(2);
    let object = Object::new(&[0; 64]);
    let longest = "n".repeat(REGION_MAX_NAME_BYTES);
    regions.register(&longest, &object.key, 0, 64).unwrap();
    regions.register("b", &object.key, 0, 64).unwrap();
    assert!(message(regions.register("c", &object.key, 0, 64)).contains("2 regions are registered"));
    assert!(message(regions.register(&format!("{longest}n"), &object.key, 0, 64)).contains("at most 1024"));
    regions.unregister("b", MemoryKind::System);
    assert!(regions.register("c", &object.key, 0, 64).is_ok());
}

#[test]
fn a_sparse_object_is_no_way_to_make_the_server_set_memory_aside() {
    let regions = Arc::new(Regions::new(1));
    let object = Object::new(&[]);
    object.cut(8 << 30);
    regions.register("r", &object.key, 0, 8 << 30).unwrap();
    let mut finder = find_in(&regions);
    assert!(message(finder.input(slice(0, 8 << 30), Datatype::Bytes, &[1])).contains("at most 2147483647"));
    // Of another size than its shape says: it is refused by the model, before anybody copies it.
    assert_eq!(finder.input(slice(0, 1 << 30), Datatype::Int64, &[1]).unwrap().len(), 1 << 30);
}

#[test]
fn descriptors_do_not_stay_open() {
    let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let (regions, object) = registered();
    // Other tests of this process open descriptors too, and close them again.
    let before = count();
    for index in 0..100 {
        let name = format!("n{index}");
        let _ = regions.register(&name, &object.key, 0, 8);
        regions.unregister(&name, MemoryKind::System);
    }
    assert!(count() < before + 80);
}

mod gpus {
    use std::sync::OnceLock;
    use std::thread;

    use alipes_cuda::Driver;
    use alipes_protocol::limits::REGION_MAX_TENSOR_BYTES;
    use alipes_testkit::gpu::{StubMemory, stub_driver};

    use super::*;

    fn driver() -> &'static Driver {
        static DRIVER: OnceLock<Driver> = OnceLock::new();
        DRIVER.get_or_init(|| Driver::load(stub_driver().as_os_str()).expect("the stub"))
    }

    fn register(regions: &Regions, name: &str, memory: &StubMemory, byte_size: u64) -> Result<(), InferError> {
        regions.register_on(driver(), name, memory.handle(), 1, byte_size)
    }

    /// The regions of a test, and 64 bytes on a GPU behind the region `r`.
    fn on_gpu() -> (Arc<Regions>, StubMemory) {
        let regions = Arc::new(Regions::new(8));
        let memory = StubMemory::new(1, &(0..64).collect::<Vec<u8>>());
        register(&regions, "r", &memory, 64).unwrap();
        (regions, memory)
    }

    #[test]
    fn inputs_of_every_datatype_are_copies() {
        let (regions, memory) = on_gpu();
        let mut finder = find_in(&regions);
        let inputs: Vec<Bytes> = [(FLOATS, 2), (Datatype::Int64, 1), (Datatype::Bytes, 1), (FLOATS, 5)]
            .map(|(datatype, count)| finder.input(slice(16, 8), datatype, &[count]).unwrap())
            .into();
        memory.write(&[9; 64]);
        assert!(inputs.iter().all(|input| input[..] == [16, 17, 18, 19, 20, 21, 22, 23]));
        assert_eq!((finder.held.lent_bytes(), finder.held.may_wait()), (0, false));
    }

    #[test]
    fn an_output_is_written_to_its_place_on_the_gpu() {
        let (regions, memory) = on_gpu();
        let mut finder = find_in(&regions);
        finder.output(slice(10, 6), "Y").unwrap();
        assert!(finder.held.may_wait());
        let mut outputs = [output(&[1, 2, 3])];
        finder.held.settle(&mut outputs).unwrap();
        assert!(outputs[0].data.is_empty());
        assert_eq!(memory.read()[8..16], [8, 9, 1, 2, 3, 13, 14, 15]);
        let refused = finder.held.settle(&mut [output(&[0; 7])]).unwrap_err();
        assert!(refused.message.contains("(6 bytes) should be at least 7 bytes"), "{}", refused.message);
    }

    #[test]
    fn a_gpu_that_fails_costs_the_request_alone() {
        let (regions, memory) = on_gpu();
        let mut finder = find_in(&regions);
        finder.output(slice(0, 8), "Y").unwrap();
        memory.set_broken(true);
        let read = finder.input(slice(0, 8), FLOATS, &[2]);
        let text = "GPU memory of shared memory region 'r' cannot be read: an illegal memory access was encountered; \
                    register the region again, with memory that its process still holds";
        assert_eq!(read.map_err(|error| (error.code, error.message)), Err((Code::Internal, text.to_owned())));
        assert!(message(finder.held.settle(&mut [output(&[1])])).contains("cannot be written"));
        memory.set_broken(false);
        assert!(finder.held.settle(&mut [output(&[1])]).is_ok());
    }

    #[test]
    fn a_region_in_use_is_closed_after_its_last_request() {
        let (regions, memory) = on_gpu();
        let mut finder = find_in(&regions);
        finder.output(slice(0, 8), "Y").unwrap();
        assert_eq!(regions.unregister("r", MemoryKind::Cuda), ["r"]);
        assert_eq!(regions.status("r", MemoryKind::Cuda).unwrap().len(), 1);
        finder.held.settle(&mut [output(&[1])]).unwrap();
        assert_eq!(memory.opens(), 1);
        drop(finder);
        assert!(regions.status("", MemoryKind::Cuda).unwrap().is_empty());
        // On a thread of its own.
        while memory.opens() > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn an_unused_region_is_closed_when_unregister_returns() {
        let (regions, memory) = on_gpu();
        register(&regions, "other", &memory, 8).unwrap();
        assert_eq!(memory.opens(), 2);
        assert!(regions.unregister("r", MemoryKind::Cuda).is_empty());
        assert_eq!(memory.opens(), 1);
        regions.unregister("", MemoryKind::Cuda);
        assert_eq!(memory.opens(), 0);
    }

    #[test]
    fn the_kinds_are_registered_shown_and_unregistered_apart() {
        let (regions, memory) = on_gpu();
        let object = Object::new(&[0; 64]);
        regions.register("s", &object.key, 0, 64).unwrap();
        assert!(message(regions.register("r", &object.key, 0, 64)).contains("already in manager"));
        assert!(message(register(&regions, "s", &memory, 64)).contains("already in manager"));
        let names = |kind| {
            let shown = regions.status("", kind).unwrap();
            shown.into_iter().map(|region| region.name).collect::<Vec<_>>()
        };
        assert_eq!((names(MemoryKind::System), names(MemoryKind::Cuda)), (vec!["s".into()], vec!["r".into()]));
        let text = "The region named 'r' is registered as CUDA shared memory, not system shared memory";
        assert_eq!(message(regions.status("r", MemoryKind::System)), text);
        let text = "The region named 's' is registered as system shared memory, not CUDA shared memory";
        assert_eq!(message(regions.status("s", MemoryKind::Cuda)), text);
        assert_eq!(message(regions.status("x", MemoryKind::Cuda)), "Unable to find cuda shared memory region: 'x'");
        regions.unregister("r", MemoryKind::System);
        regions.unregister("", MemoryKind::System);
        assert_eq!(names(MemoryKind::Cuda), ["r"]);
    }

    #[test]
    fn what_cannot_be_opened_is_refused_with_triton_s_words() {
        let (regions, memory) = on_gpu();
        let failed = |cause: &str| format!("failed to register CUDA shared memory region 'a': {cause}");
        let refused = regions.register_on(driver(), "a", [3; 64], 0, 64);
        assert_eq!(message(refused), failed("failed to open CUDA IPC handle: invalid argument"));
        let refused = regions.register_on(driver(), "a", memory.handle(), 2, 64);
        assert_eq!(message(refused), failed("there is no device 2: devices 0 to 1 exist"));
        let refused = regions.register_on(driver(), "a", memory.handle(), 0, 64);
        assert_eq!(message(refused), failed("invalid args: the memory lies on device 1, not on device 0"));
        let short = "invalid args: 65 bytes were given as its size, and the allocation has 64";
        assert_eq!(message(register(&regions, "a", &memory, 65)), failed(short));
        assert_eq!((memory.opens(), regions.status("", MemoryKind::Cuda).unwrap().len()), (1, 1));
    }

    #[test]
    fn both_kinds_count_against_one_limit() {
        let (regions, memory) = (Regions::new(2), StubMemory::new(1, &[0; 64]));
        let object = Object::new(&[0; 64]);
        regions.register("s", &object.key, 0, 64).unwrap();
        register(&regions, "r", &memory, 64).unwrap();
        assert!(message(register(&regions, "q", &memory, 64)).contains("2 regions are registered"));
        assert_eq!(memory.opens(), 1);
    }

    #[test]
    fn one_request_cannot_name_the_same_memory_without_end() {
        let regions = Arc::new(Regions::new(1));
        let memory = StubMemory::new(1, &[0; 64]);
        register(&regions, "r", &memory, 64).unwrap();
        let mut finder = find_in(&regions);
        assert!(finder.held.count_device_bytes(&slice(0, 1), REGION_MAX_TENSOR_BYTES - 8).is_ok());
        assert!(finder.input(slice(0, 8), FLOATS, &[2]).is_ok());
        let refused = finder.input(slice(0, 8), FLOATS, &[2]).unwrap_err();
        let text = "with the input in shared memory region 'r' the inputs on GPUs have 2147483655 bytes, but at most \
                    2147483647 are allowed in one request";
        assert_eq!((refused.code, refused.message.as_str()), (Code::TooLarge, text));
    }

    #[test]
    fn requests_may_wait_once_there_is_memory_of_a_gpu() {
        let named = br#"{"parameters":{"shared_memory_region":"r"}}"#;
        assert!(!registered().0.may_wait(named));
        let (regions, _memory) = on_gpu();
        assert!(regions.may_wait(named));
        assert!(regions.may_wait(br#"{"parameters":{"\u0073hared_memory_region":"r"}}"#));
        assert!(!regions.may_wait(br#"{"inputs":[{"name":"X","data":[1]}]}"#));
        assert!(!regions.may_wait(b""));
    }
}

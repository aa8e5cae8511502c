use std::ffi::OsStr;
use std::sync::OnceLock;
use std::thread;

use alipes_testkit::gpu::{StubMemory, stub_driver};

use crate::{DeviceMemory, Driver, OpenError};

const CONTENT: [u8; 64] = [7; 64];

fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| Driver::load(stub_driver().as_os_str()).expect("the stub"))
}

fn refusal(memory: &StubMemory, device: i64, byte_size: u64) -> String {
    DeviceMemory::open(driver(), memory.handle(), device, byte_size).err().expect("a refusal").to_string()
}

#[test]
fn a_library_that_is_no_driver_is_none() {
    assert!(Driver::load(OsStr::new("libalipes-no-such.so.1")).is_none());
    assert!(Driver::load(OsStr::new("libc.so.6")).is_none());
    assert_eq!(driver().devices(), 2);
}

#[test]
fn parts_are_read_and_written_where_they_lie() {
    let memory = StubMemory::new(1, &CONTENT);
    let opened = DeviceMemory::open(driver(), memory.handle(), 1, 40).unwrap();
    assert_eq!(opened.len(), 40);
    opened.write(8, &[1, 2, 3]).unwrap();
    assert_eq!(opened.read(7, 5).unwrap(), [7, 1, 2, 3, 7]);
    assert_eq!(memory.read(), [&CONTENT[..8], &[1, 2, 3], &CONTENT[11..]].concat());
    memory.write(&[9; 64]);
    assert_eq!(opened.read(0, 40).unwrap(), [9; 40]);
}

#[test]
fn memory_is_open_as_long_as_somebody_has_it() {
    let memory = StubMemory::new(0, &CONTENT);
    let first = DeviceMemory::open(driver(), memory.handle(), 0, 64).unwrap();
    let second = DeviceMemory::open(driver(), memory.handle(), 0, 1).unwrap();
    assert_eq!(memory.opens(), 2);
    drop(first);
    assert_eq!((memory.opens(), second.read(0, 1).unwrap()), (1, vec![7]));
    drop(second);
    assert_eq!(memory.opens(), 0);
}

#[test]
fn a_refused_memory_is_closed_again() {
    let memory = StubMemory::new(0, &CONTENT);
    let sizes = |wanted: u64| format!("invalid args: {wanted} bytes were given as its size, and the allocation has 64");
    for wanted in [0, 65, u64::MAX] {
        assert_eq!(refusal(&memory, 0, wanted), sizes(wanted));
    }
    assert_eq!(refusal(&memory, 1, 64), "invalid args: the memory lies on device 0, not on device 1");
    assert_eq!(memory.opens(), 0);
}

#[test]
fn unknown_devices_and_handles_are_refused() {
    let memory = StubMemory::new(0, &CONTENT);
    for device in [-1, 2, i64::MAX, i64::MIN] {
        let text = format!("there is no device {device}: devices 0 to 1 exist");
        assert_eq!(refusal(&memory, device, 64), text);
    }
    for handle in [[0; 64], [255; 64]] {
        let refused = DeviceMemory::open(driver(), handle, 0, 64).err().unwrap();
        assert!(matches!(refused, OpenError::Handle(_)));
        assert_eq!(refused.to_string(), "failed to open CUDA IPC handle: invalid argument");
    }
}

#[test]
fn a_failed_copy_is_an_error_in_the_drivers_words() {
    let memory = StubMemory::new(0, &CONTENT);
    let opened = DeviceMemory::open(driver(), memory.handle(), 0, 64).unwrap();
    memory.set_broken(true);
    let text = "an illegal memory access was encountered";
    assert_eq!(opened.read(0, 8).unwrap_err().to_string(), text);
    assert_eq!(opened.write(0, &[1]).unwrap_err().to_string(), text);
    memory.set_broken(false);
    assert_eq!(opened.read(0, 1).unwrap(), [7]);
}

#[test]
#[should_panic(expected = "parts are checked")]
fn a_part_beyond_the_memory_is_a_bug() {
    let memory = StubMemory::new(0, &CONTENT);
    let opened = DeviceMemory::open(driver(), memory.handle(), 0, 40).unwrap();
    let _ = opened.read(32, 9);
}

#[test]
fn many_threads_copy_at_a_time() {
    let memory = StubMemory::new(0, &[0; 4096]);
    let opened = DeviceMemory::open(driver(), memory.handle(), 0, 4096).unwrap();
    thread::scope(|scope| {
        for at in 0..8_usize {
            let opened = &opened;
            scope.spawn(move || {
                for round in 0..50 {
                    opened.write(at * 512, &[round; 512]).unwrap();
                    assert_eq!(opened.read(at * 512, 512).unwrap(), [round; 512]);
                }
            });
        }
    });
}

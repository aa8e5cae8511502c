//! The driver's functions, found in its library by name.
//!
//! Names and signatures are those of the CUDA driver API, as published for CUDA 11 and later; a suffix such as `_v2` is
//! part of the name that the library exports.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;

/// Outcome of a call; 0 is success.
pub(crate) type Outcome = c_int;

/// An address in a device's memory.
pub(crate) type DeviceAddress = c_ulonglong;

/// Length of a handle in bytes. Source: `CUipcMemHandle` of the CUDA driver API.
pub const HANDLE_BYTES: usize = 64;

/// A handle as the driver takes it: by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct IpcHandle(pub [u8; HANDLE_BYTES]);

/// Declares the table of functions, and how it is filled.
macro_rules! calls {
    ($($name:ident: $symbol:literal ($($kind:ty),*);)*) => {
        /// The functions of a driver's library, which stays loaded.
        pub(crate) struct Calls {
            $(pub $name: unsafe extern "C" fn($($kind),*) -> Outcome,)*
        }

        impl Calls {
            /// The functions of a library; none where it lacks one of them.
            ///
            /// # Safety
            ///
            /// The library exports these names with the signatures of the CUDA driver API, and is never unloaded.
            pub unsafe fn find(library: &Library) -> Option<Calls> {
                Some(Calls {
                    // SAFETY: the caller's promise: the type is the function's, and the library outlives the table.
                    $($name: *unsafe { library.get::<unsafe extern "C" fn($($kind),*) -> Outcome>($symbol) }.ok()?,)*
                })
            }
        }
    };
}

calls! {
    init: b"cuInit\0" (c_uint);
    error_string: b"cuGetErrorString\0" (Outcome, *mut *const c_char);
    device_count: b"cuDeviceGetCount\0" (*mut c_int);
    device: b"cuDeviceGet\0" (*mut c_int, c_int);
    retain_context: b"cuDevicePrimaryCtxRetain\0" (*mut *mut c_void, c_int);
    release_context: b"cuDevicePrimaryCtxRelease_v2\0" (c_int);
    push_context: b"cuCtxPushCurrent_v2\0" (*mut c_void);
    pop_context: b"cuCtxPopCurrent_v2\0" (*mut *mut c_void);
    create_stream: b"cuStreamCreate\0" (*mut *mut c_void, c_uint);
    destroy_stream: b"cuStreamDestroy_v2\0" (*mut c_void);
    synchronize: b"cuStreamSynchronize\0" (*mut c_void);
    open_handle: b"cuIpcOpenMemHandle_v2\0" (*mut DeviceAddress, IpcHandle, c_uint);
    close_handle: b"cuIpcCloseMemHandle\0" (DeviceAddress);
    address_range: b"cuMemGetAddressRange_v2\0" (*mut DeviceAddress, *mut usize, DeviceAddress);
    pointer_attribute: b"cuPointerGetAttribute\0" (*mut c_void, c_int, DeviceAddress);
    copy_to_host: b"cuMemcpyDtoHAsync_v2\0" (*mut c_void, DeviceAddress, usize, *mut c_void);
    copy_to_device: b"cuMemcpyHtoDAsync_v2\0" (DeviceAddress, *const c_void, usize, *mut c_void);
}

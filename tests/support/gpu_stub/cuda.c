/*
 * A stub of NVIDIA's driver library, libcuda.so.1, for tests on machines without a GPU.
 *
 * It answers the functions that alipes calls, and those that a client of shared GPU memory calls, as the published
 * driver API says. Device memory is host memory in /dev/shm; the handle of an allocation names its object:
 *
 *     bytes 0..8    "GPUSTUB" and a zero
 *     bytes 8..12   ordinal of the device, in the machine's byte order
 *     bytes 12..64  name of the object, ended by a zero
 *
 * What tests set:
 *
 *     GPU_STUB_DEVICES       number of devices; 2 unless it is set
 *     /dev/shm/NAME.broken   copies from and to the object NAME fail while this file exists
 *     /dev/shm/NAME.held     copies from and to the object NAME wait while this file exists, and say so in it
 *     /dev/shm/NAME.open     number of times that the object NAME is opened now, as text; written where it exists
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef struct { char reserved[64]; } CUipcMemHandle;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
};

enum { MOST_DEVICES = 16, MOST_ALLOCATIONS = 8192, MOST_DEPTH = 32, DEVICE_ORDINAL = 9, MAGIC_BYTES = 8, NAME_AT = 12 };

static const char MAGIC[MAGIC_BYTES] = "GPUSTUB";

struct context { int device; int retained; };
struct stream { int device; };
struct allocation { char *begin; size_t bytes; int device, opens, ours; char name[64 - NAME_AT]; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int devices = -1;
static struct context contexts[MOST_DEVICES];
static struct allocation allocations[MOST_ALLOCATIONS];
static __thread CUcontext current[MOST_DEPTH];
static __thread int depth;

CUresult cuInit(unsigned flags) {
    const char *wanted = getenv("GPU_STUB_DEVICES");
    int count = wanted ? atoi(wanted) : 2;
    if (flags != 0 || count > MOST_DEVICES) return INVALID_VALUE;
    if (count < 1) return NO_DEVICE;
    for (int device = 0; device < count; device++) contexts[device].device = device;
    devices = count;
    return SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    switch (error) {
    case SUCCESS: *text = "no error"; break;
    case INVALID_VALUE: *text = "invalid argument"; break;
    case OUT_OF_MEMORY: *text = "out of memory"; break;
    case NOT_INITIALIZED: *text = "initialization error"; break;
    case NO_DEVICE: *text = "no CUDA-capable device is detected"; break;
    case INVALID_DEVICE: *text = "invalid device ordinal"; break;
    case INVALID_CONTEXT: *text = "invalid device context"; break;
    case INVALID_HANDLE: *text = "invalid resource handle"; break;
    case NOT_FOUND: *text = "named symbol not found"; break;
    case ILLEGAL_ADDRESS: *text = "an illegal memory access was encountered"; break;
    default: *text = NULL; return INVALID_VALUE;
    }
    return SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    if (devices < 0) return NOT_INITIALIZED;
    *count = devices;
    return SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    if (devices < 0) return NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= devices) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    if (devices < 0) return NOT_INITIALIZED;
    if (device < 0 || device >= devices) return INVALID_DEVICE;
    __atomic_add_fetch(&contexts[device].retained, 1, __ATOMIC_SEQ_CST);
    *context = &contexts[device];
    return SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (devices < 0) return NOT_INITIALIZED;
    if (device < 0 || device >= devices) return INVALID_DEVICE;
    if (__atomic_sub_fetch(&contexts[device].retained, 1, __ATOMIC_SEQ_CST) < 0) return INVALID_CONTEXT;
    return SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    if (!context || context->retained < 1 || depth == MOST_DEPTH) return INVALID_CONTEXT;
    current[depth++] = context;
    return SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    if (depth == 0) return INVALID_CONTEXT;
    depth--;
    if (context) *context = current[depth];
    return SUCCESS;
}

/* The device of the context that is current on this thread, or -1. */
static int current_device(void) { return depth ? current[depth - 1]->device : -1; }

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    if (current_device() < 0) return INVALID_CONTEXT;
    if (flags > 1) return INVALID_VALUE;
    *stream = malloc(sizeof **stream);
    if (!*stream) return OUT_OF_MEMORY;
    (*stream)->device = current_device();
    return SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    if (current_device() < 0) return INVALID_CONTEXT;
    free(stream);
    return SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
    return stream && stream->device == current_device() ? SUCCESS : INVALID_HANDLE;
}

/* The allocation that holds so many bytes from an address on; call it under the lock. */
static struct allocation *holder(CUdeviceptr address, size_t bytes) {
    char *begin = (char *)(uintptr_t)address;
    for (int at = 0; at < MOST_ALLOCATIONS; at++) {
        struct allocation *one = &allocations[at];
        if (!one->begin || begin < one->begin || begin >= one->begin + one->bytes) continue;
        return bytes <= (size_t)(one->begin + one->bytes - begin) ? one : NULL;
    }
    return NULL;
}

/* A place in the table for a new allocation; call it under the lock. */
static struct allocation *vacant(void) {
    for (int at = 0; at < MOST_ALLOCATIONS; at++)
        if (!allocations[at].begin) return &allocations[at];
    return NULL;
}

static void path_of(const struct allocation *one, const char *suffix, char *path, size_t size) {
    snprintf(path, size, "/dev/shm/%s.%s", one->name, suffix);
}

/* Writes a number to a file where a test has made it. */
static void tell_number(const char *path, int number) {
    char text[16];
    int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (file < 0) return;
    int length = snprintf(text, sizeof text, "%d", number);
    if (write(file, text, (size_t)length) != length) abort();
    close(file);
}

/* Tells a test that watches how often an allocation is open. */
static void tell(const struct allocation *one) {
    char path[128];
    path_of(one, "open", path, sizeof path);
    tell_number(path, one->opens);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    static int count;
    int device = current_device();
    if (device < 0) return INVALID_CONTEXT;
    if (bytes == 0) return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    struct allocation *one = vacant();
    char *begin = MAP_FAILED;
    if (one) {
        snprintf(one->name, sizeof one->name, "alipes_gpu_stub_%d_%d", (int)getpid(), count++);
        int object = shm_open(one->name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (object >= 0 && ftruncate(object, (off_t)bytes) == 0)
            begin = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, object, 0);
        if (object >= 0) close(object);
    }
    if (begin != MAP_FAILED) {
        one->begin = begin, one->bytes = bytes, one->device = device, one->ours = 1, one->opens = 0;
        *address = (CUdeviceptr)(uintptr_t)begin;
    }
    pthread_mutex_unlock(&lock);
    return begin == MAP_FAILED ? OUT_OF_MEMORY : SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    struct allocation *one = holder(address, 1);
    int found = one && one->ours && one->begin == (char *)(uintptr_t)address;
    if (found) {
        shm_unlink(one->name);
        munmap(one->begin, one->bytes);
        memset(one, 0, sizeof *one);
    }
    pthread_mutex_unlock(&lock);
    return found ? SUCCESS : INVALID_VALUE;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    struct allocation *one = holder(address, 1);
    if (one && one->ours) {
        memset(handle, 0, sizeof *handle);
        memcpy(handle->reserved, MAGIC, MAGIC_BYTES);
        memcpy(handle->reserved + MAGIC_BYTES, &one->device, sizeof one->device);
        memcpy(handle->reserved + NAME_AT, one->name, sizeof one->name);
    }
    pthread_mutex_unlock(&lock);
    return one && one->ours ? SUCCESS : INVALID_VALUE;
}

/* Opens the object of a handle, or counts it once more where this process has it open; call it under the lock. */
static CUresult opened(const char *name, int device, CUdeviceptr *address) {
    for (int at = 0; at < MOST_ALLOCATIONS; at++) {
        struct allocation *one = &allocations[at];
        if (!one->begin || strcmp(one->name, name) != 0) continue;
        if (one->ours) return INVALID_CONTEXT; /* a process cannot open its own memory */
        one->opens++;
        tell(one);
        *address = (CUdeviceptr)(uintptr_t)one->begin;
        return SUCCESS;
    }
    struct allocation *one = vacant();
    struct stat about;
    int object = shm_open(name, O_RDWR, 0);
    if (object < 0) return INVALID_VALUE;
    char *begin = MAP_FAILED;
    if (one && fstat(object, &about) == 0 && about.st_size > 0)
        begin = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, object, 0);
    close(object);
    if (begin == MAP_FAILED) return OUT_OF_MEMORY;
    one->begin = begin, one->bytes = (size_t)about.st_size, one->device = device, one->ours = 0, one->opens = 1;
    snprintf(one->name, sizeof one->name, "%s", name);
    tell(one);
    *address = (CUdeviceptr)(uintptr_t)begin;
    return SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    int device;
    if (current_device() < 0) return INVALID_CONTEXT;
    if (flags != 1 || memcmp(handle.reserved, MAGIC, MAGIC_BYTES) != 0) return INVALID_VALUE;
    memcpy(&device, handle.reserved + MAGIC_BYTES, sizeof device);
    handle.reserved[sizeof handle.reserved - 1] = 0;
    pthread_mutex_lock(&lock);
    CUresult outcome = opened(handle.reserved + NAME_AT, device, address);
    pthread_mutex_unlock(&lock);
    return outcome;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    if (current_device() < 0) return INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    struct allocation *one = holder(address, 1);
    int found = one && !one->ours && one->begin == (char *)(uintptr_t)address;
    if (found) {
        one->opens--;
        tell(one);
        if (one->opens == 0) {
            munmap(one->begin, one->bytes);
            memset(one, 0, sizeof *one);
        }
    }
    pthread_mutex_unlock(&lock);
    return found ? SUCCESS : INVALID_VALUE;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *begin, size_t *bytes, CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    struct allocation *one = holder(address, 1);
    if (one && begin) *begin = (CUdeviceptr)(uintptr_t)one->begin;
    if (one && bytes) *bytes = one->bytes;
    pthread_mutex_unlock(&lock);
    return one ? SUCCESS : NOT_FOUND;
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    struct allocation *one = holder(address, 1);
    if (one) *(int *)value = one->device;
    pthread_mutex_unlock(&lock);
    return one && attribute == DEVICE_ORDINAL ? SUCCESS : INVALID_VALUE;
}

/* Waits while a test holds copies of an allocation, and says whether they succeed. */
static CUresult ready(CUdeviceptr address, size_t bytes) {
    char held[128], broken[128];
    pthread_mutex_lock(&lock);
    struct allocation *one = holder(address, bytes);
    if (one) path_of(one, "held", held, sizeof held), path_of(one, "broken", broken, sizeof broken);
    pthread_mutex_unlock(&lock);
    if (!one) return INVALID_VALUE;
    struct timespec pause = {0, 1000000};
    tell_number(held, 1);
    while (access(held, F_OK) == 0) nanosleep(&pause, NULL);
    return access(broken, F_OK) == 0 ? ILLEGAL_ADDRESS : SUCCESS;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUresult outcome = cuStreamSynchronize(stream);
    if (outcome == SUCCESS) outcome = ready(from, bytes);
    if (outcome == SUCCESS) memcpy(to, (void *)(uintptr_t)from, bytes);
    return outcome;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    CUresult outcome = cuStreamSynchronize(stream);
    if (outcome == SUCCESS) outcome = ready(to, bytes);
    if (outcome == SUCCESS) memcpy((void *)(uintptr_t)to, from, bytes);
    return outcome;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    if (current_device() < 0) return INVALID_CONTEXT;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    if (current_device() < 0) return INVALID_CONTEXT;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return SUCCESS;
}

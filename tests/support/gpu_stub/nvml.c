/* A management library of GPUs for tests, on a machine that has none.
 *
 * It answers as NVIDIA's NVML API reference says, for the GPUs of a file that GPU_STUB_MACHINE names. The file is read
 * at each call, so a test changes a GPU by writing the file. Each line is a GPU of ten fields with tabs between:
 *
 *   state, uuid, name, compute capability, memory total and used in bytes, utilization in percent, power and its limit
 *   in milliwatts, energy in millijoules
 *
 * A field that is "-" is one that the GPU does not tell. The state is "ok", "lost" for a GPU that fell off the bus,
 * "stuck" for one whose use cannot be read: calls for it do not return; or "part" for a part (MIG device) of the GPU
 * above it.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, NO_DRIVER = 9, LOST = 15 };
enum { STATE, UUID, NAME, CAPABILITY, TOTAL, USED, UTILIZATION, POWER, LIMIT, ENERGY, FIELDS };

typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { char line[512]; char *field[FIELDS]; } gpu;

/* A handle of a device is the number of its line, counted from one. */
typedef void *handle;

/* Reads one line, or counts them where `wanted` is negative. */
static int find(long wanted, gpu *found) {
    const char *path = getenv("GPU_STUB_MACHINE");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return -1;
    int count = 0;
    while (fgets(found->line, sizeof found->line, file)) {
        if (count++ != wanted) continue;
        found->line[strcspn(found->line, "\n")] = 0;
        char *rest = found->line;
        for (int i = 0; i < FIELDS; i++) {
            found->field[i] = rest ? rest : "-";
            rest = rest ? strchr(rest, '\t') : NULL;
            if (rest) *rest++ = 0;
        }
        break;
    }
    fclose(file);
    return count;
}

static int answer(handle device, int field, gpu *found) {
    if (find((long)device - 1, found) < (long)device) return INVALID_ARGUMENT;
    if (!strcmp(found->field[STATE], "lost")) return LOST;
    if (!strcmp(found->field[STATE], "stuck") && field >= UTILIZATION) pause();
    return strcmp(found->field[field], "-") ? OK : NOT_SUPPORTED;
}

static int text(handle device, int field, char *into, unsigned size) {
    gpu found;
    int code = answer(device, field, &found);
    if (code) return code;
    if (strlen(found.field[field]) >= size) return TOO_SMALL;
    strcpy(into, found.field[field]);
    return OK;
}

static int number(handle device, int field, unsigned long long *into) {
    gpu found;
    int code = answer(device, field, &found);
    if (!code) *into = strtoull(found.field[field], NULL, 10);
    return code;
}

int nvmlInit_v2(void) { gpu found; return find(-1, &found) < 0 ? NO_DRIVER : OK; }
int nvmlShutdown(void) { return OK; }

int nvmlSystemGetDriverVersion(char *into, unsigned size) { snprintf(into, size, "570.00"); return OK; }

static int is_part(long line) {
    gpu found;
    find(line, &found);
    return !strcmp(found.field[STATE], "part");
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    gpu found;
    int lines = find(-1, &found);
    *count = 0;
    for (long i = 0; i < lines; i++) *count += !is_part(i);
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *device) {
    gpu found;
    int lines = find(-1, &found);
    for (long i = 0; i < lines; i++) {
        if (is_part(i) || index--) continue;
        *device = (handle)(i + 1);
        return answer(*device, STATE, &found);
    }
    return INVALID_ARGUMENT;
}

/* As a real one, it has numbers that no part has: two more than there are lines. */
int nvmlDeviceGetMaxMigDeviceCount(handle device, unsigned *count) {
    gpu found;
    (void)device;
    *count = (unsigned)find(-1, &found) + 2;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(handle device, unsigned index, handle *part) {
    gpu found;
    int lines = find(-1, &found);
    /* No part has the number 0, as if it was removed. */
    for (long i = (long)device; i < lines && is_part(i); i++) {
        if (i - (long)device + 1 != index) continue;
        *part = (handle)(i + 1);
        return OK;
    }
    return NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, handle *device) {
    gpu found;
    int count = find(-1, &found);
    for (long i = 0; i < count; i++) {
        find(i, &found);
        *device = (handle)(i + 1);
        if (!strcmp(found.field[UUID], uuid)) return answer(*device, STATE, &found);
    }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(handle device, char *into, unsigned size) { return text(device, UUID, into, size); }
int nvmlDeviceGetName(handle device, char *into, unsigned size) { return text(device, NAME, into, size); }

int nvmlDeviceGetCudaComputeCapability(handle device, int *major, int *minor) {
    char version[32];
    int code = text(device, CAPABILITY, version, sizeof version);
    if (!code) sscanf(version, "%d.%d", major, minor);
    return code;
}

int nvmlDeviceGetMemoryInfo_v2(handle device, memory_v2 *into) {
    if (into->version != (sizeof *into | 2u << 24)) return INVALID_ARGUMENT;
    int code = number(device, TOTAL, &into->total);
    if (!code && (code = number(device, USED, &into->used)) == NOT_SUPPORTED) return NOT_SUPPORTED;
    into->reserved = 0;
    into->free = into->total - into->used;
    return code;
}

int nvmlDeviceGetUtilizationRates(handle device, utilization *into) {
    unsigned long long percent = 0;
    int code = number(device, UTILIZATION, &percent);
    into->gpu = (unsigned)percent;
    into->memory = 0;
    return code;
}

static int milliwatts(handle device, int field, unsigned *into) {
    unsigned long long value = 0;
    int code = number(device, field, &value);
    *into = (unsigned)value;
    return code;
}

int nvmlDeviceGetPowerUsage(handle device, unsigned *into) { return milliwatts(device, POWER, into); }
int nvmlDeviceGetPowerManagementLimit(handle device, unsigned *into) { return milliwatts(device, LIMIT, into); }
int nvmlDeviceGetTotalEnergyConsumption(handle device, unsigned long long *into) {
    return number(device, ENERGY, into);
}

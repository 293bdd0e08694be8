/* A double of NVIDIA's management library: two equal GPUs and one that fell off the bus. The file $NVML_DOUBLE has what
 * the first GPU counts: time throttled by heat (ns), corrected errors. Signatures: nvml.h, version 12. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, GPU_IS_LOST = 15 };
typedef struct { unsigned long long reference_time, violation_time; } violation;

static int first, second;

static unsigned long long counted(int which) {
    const char *path = getenv("NVML_DOUBLE");
    FILE *file = path ? fopen(path, "r") : NULL;
    unsigned long long values[2] = {0, 0};
    if (file && fscanf(file, "%llu %llu", &values[0], &values[1]) != 2)
        abort();
    if (file)
        fclose(file);
    return values[which];
}

/* Waits for the file $NVML_GATE, if it is set: a driver that hangs, for a minute at most. */
int nvmlInit_v2(void) {
    const char *gate = getenv("NVML_GATE");
    for (int i = 0; gate && access(gate, F_OK) != 0 && i < 600; i++)
        usleep(100000);
    return SUCCESS;
}

int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int error) { return error == GPU_IS_LOST ? "GPU is lost" : "not supported"; }

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    snprintf(version, length, "570.86.15");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 3;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = index == 0 ? (void *)&first : (void *)&second;
    return index < 2 ? SUCCESS : GPU_IS_LOST;
}

int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    (void)device;
    snprintf(name, length, "NVIDIA H100 PCIe");
    return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned *clock) {
    (void)device;
    *clock = 1755;
    return type == 1 ? SUCCESS : NOT_SUPPORTED; /* NVML_CLOCK_SM */
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
    (void)device;
    *milliwatts = 350000;
    return SUCCESS;
}

int nvmlDeviceGetEccMode(void *device, int *current, int *pending) {
    (void)device;
    *current = *pending = 1;
    return SUCCESS;
}

int nvmlDeviceGetViolationStatus(void *device, int policy, violation *status) {
    memset(status, 0, sizeof *status);
    if (policy == 1) /* NVML_PERF_POLICY_THERMAL */
        status->violation_time = device == (void *)&first ? counted(0) : 0;
    return policy < 2 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count) {
    (void)counter;
    *count = device == (void *)&first && kind == 0 ? counted(1) : 0; /* NVML_MEMORY_ERROR_TYPE_CORRECTED */
    return SUCCESS;
}

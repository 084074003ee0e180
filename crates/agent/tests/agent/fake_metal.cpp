// Stands in for libtt_metal.so: devices whose dispatch cores count as they are told, and that notice who reads when they are closed.
//
// A program loads it and calls `command` with one line at a time.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace ttsl {
template <typename T, typename Tag>
struct StrongType {
    T value;
};
}  // namespace ttsl

static uint64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

// What the cores answer.
static std::atomic<int> percent{25};
static std::atomic<uint64_t> began{0}, stopped{0}, delay_ms{0};
static std::atomic<uint32_t> programs{0};
enum Mode { COUNT, TORN, ONES, STILL, THROWS, UNSIGNED };
static std::atomic<int> mode{COUNT};
// Who reads what.
static std::atomic<uint64_t> reads{0}, longest{0}, wrong{0};
static std::atomic<bool> is_gone{false};
static const uint64_t ADDRESS = 0x1A180;
static std::atomic<uint64_t> block_address{ADDRESS};

namespace tt {
struct cxy_pair {
    std::size_t x, y, chip;
};
namespace umd {
class TTDevice {};
}  // namespace umd

static std::atomic<bool> is_open[64], is_remote[64];

class Cluster {
public:
    ~Cluster();
    void read_core(void *to, uint32_t size, cxy_pair core, uint64_t address) const;
};

Cluster::~Cluster() { is_gone = true; }

void Cluster::read_core(void *to, uint32_t size, cxy_pair core, uint64_t address) const {
    ++reads;
    if (size > longest) longest = size;
    if (is_gone || core.chip >= 64 || !is_open[core.chip] || is_remote[core.chip] || size >= 32) ++wrong;
    if (uint64_t ms = delay_ms) usleep(ms * 1000);
    if (mode == THROWS) throw std::runtime_error("the device hangs");
    unsigned char block[248] = {};
    const bool is_prefetch = core.x == 18, is_dispatch = core.x == 19;
    if (!is_prefetch && !is_dispatch) throw std::runtime_error("there is no such core");
    if (address >= block_address && address + size <= block_address + sizeof block) {
        const uint32_t head[2] = {1, is_prefetch ? 0x50524546u : 0x44495350u};
        if (mode != UNSIGNED) memcpy(block, head, sizeof head);
        if (is_dispatch) {
            const uint64_t now = mode == STILL ? stopped.load() : now_ns(), step = 10000000;
            uint64_t work = (now - began) / step * step / 100 * percent;
            if (mode == TORN) work = reads;
            const uint32_t count = programs;
            memcpy(block + 16, &count, sizeof count);
            memcpy(block + 24, &now, sizeof now);
            memcpy(block + 40, &work, sizeof work);
        }
        memcpy(to, block + (address - block_address), size);
    } else {
        memset(to, 0, size);
    }
    if (mode == ONES) memset(to, 0xFF, size);
    // It may have closed meanwhile.
    if (is_gone || !is_open[core.chip]) ++wrong;
}

namespace tt_metal {
struct ContextIdTag;
using ContextId = ttsl::StrongType<int, ContextIdTag>;
class Buffer;

class GraphTracker {
public:
    void track_allocate(const Buffer *buffer);
};
void GraphTracker::track_allocate(const Buffer *) {}

enum class CommandQueueDeviceAddrType : uint8_t {};

class DispatchMemMap {
public:
    uint32_t get_device_command_queue_addr(const CommandQueueDeviceAddrType &type, uint8_t queue) const;
};
uint32_t DispatchMemMap::get_device_command_queue_addr(const CommandQueueDeviceAddrType &type, uint8_t) const {
    if (static_cast<int>(type) > 11) throw std::runtime_error("no such type");
    return static_cast<int>(type) == 11 ? ADDRESS : 0x1000;
}

class MetalContext {
public:
    static MetalContext &instance(ContextId id);
    Cluster &get_cluster();
    const DispatchMemMap &dispatch_mem_map() const;

private:
    Cluster cluster;
    DispatchMemMap map;
};
MetalContext &MetalContext::instance(ContextId) {
    static MetalContext context;
    return context;
}
Cluster &MetalContext::get_cluster() { return cluster; }
const DispatchMemMap &MetalContext::dispatch_mem_map() const { return map; }

class IDevice {
public:
    virtual ~IDevice() = default;
    virtual int id() const = 0;
};
ContextId extract_context_id(const IDevice *device);
ContextId extract_context_id(const IDevice *) { return {0}; }

namespace dispatch_telemetry_types {
struct __attribute__((packed)) SMCDispatchCoreCoords {
    uint32_t prefetch_xy, dispatch_xy, dispatch_s_xy;
};
struct __attribute__((packed)) SMCDispatchTelemetryControl {
    uint32_t version = 1, signature = 0x534D435F;
    uint8_t flags = 0;
    uint32_t address = ADDRESS;
    uint8_t num_hw_cqs = 1;
    SMCDispatchCoreCoords cores[3];
    uint16_t num_worker_cores = 72;
};
}  // namespace dispatch_telemetry_types

bool write_smc_dispatch_telemetry_control(
    umd::TTDevice &device, const dispatch_telemetry_types::SMCDispatchTelemetryControl &control);
bool write_smc_dispatch_telemetry_control(
    umd::TTDevice &, const dispatch_telemetry_types::SMCDispatchTelemetryControl &) {
    return false;
}

class Device : public IDevice {
public:
    Device(int number, bool has_control) : number(number), has_control(has_control) {}
    ~Device() override;
    int id() const override;
    bool close();
    bool is_mmio_capable() const;
    void update_smc_dispatch_telemetry_for_fast_dispatch(
        uint8_t queue, const dispatch_telemetry_types::SMCDispatchCoreCoords &cores);
    void invalidate_smc_dispatch_telemetry_control();

private:
    int number;
    bool has_control;
    umd::TTDevice tt_device;
    dispatch_telemetry_types::SMCDispatchTelemetryControl control;
};
Device::~Device() { close(); }
int Device::id() const { return number; }
bool Device::close() {
    invalidate_smc_dispatch_telemetry_control();
    is_open[number] = false;
    return true;
}
bool Device::is_mmio_capable() const { return !is_remote[number]; }
void Device::invalidate_smc_dispatch_telemetry_control() {}
void Device::update_smc_dispatch_telemetry_for_fast_dispatch(
    uint8_t queue, const dispatch_telemetry_types::SMCDispatchCoreCoords &cores) {
    control.cores[queue] = cores;
    if (has_control) write_smc_dispatch_telemetry_control(tt_device, control);
}

// Made when a chip is opened.
class SharedMemoryStatsProvider {
public:
    SharedMemoryStatsProvider(unsigned long unique_id, int device, bool disabled, bool verbose);
};
SharedMemoryStatsProvider::SharedMemoryStatsProvider(unsigned long, int, bool, bool) {}

namespace distributed {
class MeshDevice : public IDevice {
public:
    int id() const override;
    std::vector<int> get_device_ids() const;
};
int MeshDevice::id() const { return 0; }
std::vector<int> MeshDevice::get_device_ids() const { return {}; }
}  // namespace distributed

namespace experimental {
bool IsProgramRealtimeProfilerActive();
bool IsProgramRealtimeProfilerActive() { return false; }
}  // namespace experimental
}  // namespace tt_metal

void NotifyProgramRealtimeProfilerActivated(tt_metal::ContextId context, unsigned device);
void NotifyProgramRealtimeProfilerActivated(tt_metal::ContextId, unsigned) {}
}  // namespace tt

using tt::tt_metal::Device;
static Device *devices[64];

static int threads() {
    int count = 0;
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    while (status && fgets(line, sizeof line, status)) sscanf(line, "Threads: %d", &count);
    if (status) fclose(status);
    return count;
}

static void open_device(int chip, const char *as) {
    tt::is_remote[chip] = strcmp(as, "remote") == 0;
    tt::is_open[chip] = true;
    Device *device = new Device(chip, strcmp(as, "simulator") != 0);
    tt::tt_metal::MetalContext::instance({0});
    if (strcmp(as, "quiet") != 0) tt::tt_metal::SharedMemoryStatsProvider(7000 + chip, chip, false, false);
    device->update_smc_dispatch_telemetry_for_fast_dispatch(0, {18u << 16 | 27, 19u << 16 | 27, UINT32_MAX});
    if (strcmp(as, "profiled") == 0) tt::NotifyProgramRealtimeProfilerActivated({0}, chip);
    devices[chip] = device;
}

static void close_device(int chip) {
    delete devices[chip];
    devices[chip] = nullptr;
}

// Does what a line says, and prints the result.
extern "C" void command(const char *line) {
    char what[32] = "", how[32] = "";
    int number = 0;
    sscanf(line, "%31s %d %31s", what, &number, how);
    const auto is = [&](const char *word) { return strcmp(what, word) == 0; };
    if (began == 0) began = now_ns();
    const uint64_t start = now_ns();
    if (is("open")) open_device(number, how);
    if (is("close")) close_device(number);
    if (is("mode")) {
        stopped = now_ns();
        mode = number;
    }
    if (is("percent")) percent = number;
    if (is("delay")) delay_ms = number;
    if (is("programs")) programs = number;
    if (is("move")) block_address = number;
    if (is("fork")) {
        const pid_t child = fork();
        if (child == 0) {
            // The device is the parent's; a child that closes it must not wait for a thread that it does not have.
            if (number == 1) close_device(0);
            _exit(threads() == 1 ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        printf("child=%d ", status);
    }
    printf(
        "reads=%llu longest=%llu wrong=%llu threads=%d us=%llu\n",
        (unsigned long long)reads, (unsigned long long)longest, (unsigned long long)wrong, threads(),
        (unsigned long long)((now_ns() - start) / 1000));
    fflush(stdout);
}

// The last word, after all that was to be done at exit.
__attribute__((destructor)) static void last_word() {
    dprintf(1, "end wrong=%llu gone=%d\n", (unsigned long long)wrong, (int)is_gone);
}

/* The functions of libtt_metal.so that say what runs, by their mangled names: declared for the program, defined by the stand-in. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef SINGLE
#define RECORDS "21ProgramRealtimeRecordEEE"
#else
#define RECORDS "26ProgramRealtimeRecordBatchEEE"
#endif
#define EXPERIMENTAL "_ZN2tt8tt_metal12experimental"
#define DISTRIBUTED "_ZN2tt8tt_metal11distributed"
#define TRACE_ID "ERKN4ttsl10StrongTypeIjNS1_14MeshTraceIdTagEEE"
#define SUB_DEVICES "St4spanIKN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEELm18446744073709551615EE"

/* std::function */
struct function {
    uint64_t storage[2];
    bool (*manager)(void *to, const void *from, int what);
    void (*invoker)(const void *storage, const void *argument);
};
struct text {
    size_t length;
    const char *text;
};
struct record {
    uint32_t runtime_id, chip_id;
    uint64_t start, end;
    double cycles_per_ns;
    const struct text *sources;
    size_t source_count;
};
struct batch {
    const struct record *records;
    size_t count;
    uint64_t dropped;
};

void track_allocate(void *tracker, void *buffer) __asm__("_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE");
#ifndef WITHOUT_PROFILER
uint64_t register_callback(struct function *callback)
    __asm__(EXPERIMENTAL "39RegisterProgramRealtimeProfilerCallbackESt8functionIFvRKNS1_" RECORDS);
void unregister_callback(uint64_t handle) __asm__(EXPERIMENTAL "41UnregisterProgramRealtimeProfilerCallbackEm");
#endif
void activated(uint32_t chip) __asm__("_ZN2tt38NotifyProgramRealtimeProfilerActivatedEj");
void deactivated(uint32_t chip) __asm__("_ZN2tt40NotifyProgramRealtimeProfilerDeactivatedEj");
void enqueue(void *queue, void *workload, bool blocking)
    __asm__(DISTRIBUTED "19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb");
void set_runtime_id(void *program, uint64_t id) __asm__("_ZN2tt8tt_metal7Program14set_runtime_idEm");
bool inspector_is_enabled(void) __asm__(EXPERIMENTAL "9inspector9IsEnabledEv");
void emit_name(void *workload, uint64_t id, struct text name, void *specs, uint64_t trace)
    __asm__(EXPERIMENTAL "9inspector26EmitMeshWorkloadDebugEntryERNS0_11distributed12MeshWorkloadEmSt17basic_string_viewIcSt11char_"
                         "traitsIcEESt6vectorINS0_10TensorSpecESaISB_EESt8optionalIN4ttsl10StrongTypeIjNS3_14MeshTraceIdTagEEEE");
void record_begin(void *queue, const uint32_t *trace, void *descriptor)
    __asm__(DISTRIBUTED "18FDMeshCommandQueue12record_begin" TRACE_ID "RKSt10shared_ptrINS1_19MeshTraceDescriptorEE");
void record_end(void *queue) __asm__(DISTRIBUTED "18FDMeshCommandQueue10record_endEv");
void enqueue_trace(void *queue, const uint32_t *trace, bool blocking)
    __asm__(DISTRIBUTED "18FDMeshCommandQueue13enqueue_trace" TRACE_ID "b");
void release_trace(void *device, const uint32_t *trace) __asm__(DISTRIBUTED "10MeshDevice18release_mesh_trace" TRACE_ID);
void finish(void *queue, const void *sub_devices, size_t count) __asm__(DISTRIBUTED "6FinishERNS1_16MeshCommandQueueE" SUB_DEVICES);
void finish_nolock(void *queue, const void *sub_devices, size_t count)
    __asm__(DISTRIBUTED "18FDMeshCommandQueue13finish_nolockE" SUB_DEVICES);
void event_synchronize(void *event) __asm__(DISTRIBUTED "16EventSynchronizeERKNS1_9MeshEventE");
void reserve_back(void *manager, uint8_t queue) __asm__("_ZN2tt8tt_metal19SystemMemoryManager24fetch_queue_reserve_backEh");

/* Not of the real one: passes records to whoever is registered. True when someone is. */
bool deliver(const struct record *records, size_t count, uint64_t dropped);
int callbacks(void);
int names_passed_on(void);

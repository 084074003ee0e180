/* Stands in for libtt_metal.so: the functions that say what runs, and a profiler whose records the program gives. */

#include "metal.h"
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct function callback;
static uint64_t handle;
static int names;

void track_allocate(void *tracker, void *buffer) {}
#ifndef WITHOUT_PROFILER
uint64_t register_callback(struct function *given) {
    pthread_mutex_lock(&lock);
    callback = *given;
    uint64_t new = handle = 7;
    pthread_mutex_unlock(&lock);
    return new;
}
/* No callback is under way when it returns, as the real one promises. */
void unregister_callback(uint64_t given) {
    pthread_mutex_lock(&lock);
    if (given == handle) {
        callback.manager(&callback, &callback, 3);
        handle = 0;
    }
    pthread_mutex_unlock(&lock);
}
#endif
void activated(uint32_t chip) {}
void deactivated(uint32_t chip) {}
void enqueue(void *queue, void *workload, bool blocking) {
    if (blocking)
        finish_nolock(queue, NULL, 0);
}
void set_runtime_id(void *program, uint64_t id) {}
bool inspector_is_enabled(void) { return false; }
void emit_name(void *workload, uint64_t id, struct text name, void *specs, uint64_t trace) { names++; }
void record_begin(void *queue, const uint32_t *trace, void *descriptor) {}
void record_end(void *queue) {}
void enqueue_trace(void *queue, const uint32_t *trace, bool blocking) {
    if (blocking)
        finish_nolock(queue, NULL, 0);
}
void release_trace(void *device, const uint32_t *trace) {}
void finish(void *queue, const void *sub_devices, size_t count) { finish_nolock(queue, sub_devices, count); }
void finish_nolock(void *queue, const void *sub_devices, size_t count) { usleep(2000); }
void event_synchronize(void *event) { usleep(3000); }
void reserve_back(void *manager, uint8_t queue) {
    if (queue)
        usleep(4000);
}

bool deliver(const struct record *records, size_t count, uint64_t dropped) {
    pthread_mutex_lock(&lock);
    bool is_registered = handle != 0;
#ifdef SINGLE
    for (size_t i = 0; i < count && is_registered; i++)
        callback.invoker(&callback, &records[i]);
#else
    struct batch batch = {records, count, dropped};
    if (is_registered)
        callback.invoker(&callback, &batch);
#endif
    pthread_mutex_unlock(&lock);
    return is_registered;
}
int callbacks(void) { return handle != 0; }
int names_passed_on(void) { return names; }

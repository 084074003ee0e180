/* Calls what the library would be called for, as its standard input says, and answers each line with OK and a number. */

#include "metal.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT(literal) {sizeof literal - 1, literal}

static const struct text sources[] = {
    TEXT("/x/ttnn/cpp/ttnn/operations/eltwise/binary/device/kernels/reader.cpp"),
    TEXT("ttnn/cpp/ttnn/operations/matmul/device/kernels/bmm.cpp"),
};
static char queues[16], object;
static atomic_bool stop;
static atomic_long delivered;

/* Records of chip 0, one after another, until they are no longer wanted. */
static void *deliver_on(void *nothing) {
    for (uint64_t tick = 0; !stop; tick += 10) {
        struct record record = {(uint32_t)(tick / 10), 0, 1000 + tick, 1004 + tick, 1.0, NULL, 0};
        if (deliver(&record, 1, 0))
            delivered++;
    }
    return NULL;
}

/* So many records of chip 0, one a microsecond by its clock, a batch each millisecond. Returns how many were wanted. */
static long flood(long count, long batch) {
    struct record *records = calloc(batch, sizeof *records);
    long wanted = 0;
    uint64_t tick = 0;
    while (count > 0) {
        long now = count < batch ? count : batch;
        for (long i = 0; i < now; i++, tick += 1000)
            records[i] = (struct record){(uint32_t)(tick / 1000), 0, tick, tick + 900, 1.0, NULL, 0};
        wanted += deliver(records, now, 0) ? now : 0;
        count -= now;
        usleep(1000);
    }
    free(records);
    return wanted;
}

int main(void) {
    char line[256], word[32], name[64];
    pthread_t thread;
    while (fgets(line, sizeof line, stdin)) {
        long a = 0, b = 0, result = 0;
        name[0] = 0;
        sscanf(line, "%31s %ld %ld %63s", word, &a, &b, name);
        uint32_t trace = (uint32_t)b;
        if (!strcmp(word, "activate"))
            activated(a);
        else if (!strcmp(word, "deactivate"))
            deactivated(a);
        else if (!strcmp(word, "launch")) {
            set_runtime_id(&object, b);
            if (name[0] && inspector_is_enabled())
                emit_name(&object, b, (struct text){strlen(name), name}, &object, 0);
            enqueue(&queues[a], &object, false);
        } else if (!strcmp(word, "begin"))
            record_begin(&queues[a], &trace, &object);
        else if (!strcmp(word, "end"))
            record_end(&queues[a]);
        else if (!strcmp(word, "replay"))
            enqueue_trace(&queues[a], &trace, false);
        else if (!strcmp(word, "release"))
            release_trace(&object, &trace);
        else if (!strcmp(word, "finish"))
            finish(&queues[a], NULL, b);
        else if (!strcmp(word, "event"))
            event_synchronize(&object);
        else if (!strcmp(word, "reserve"))
            reserve_back(&object, a);
        else if (!strcmp(word, "records")) {
            /* Each on a line of its own: id chip start end cycles kernel */
            struct record *records = calloc(a ? a : 1, sizeof *records);
            for (long i = 0; i < a; i++) {
                struct record *it = &records[i];
                int kernel = -1;
                if (!fgets(line, sizeof line, stdin))
                    return 1;
                sscanf(line, "%u %u %lu %lu %lf %d", &it->runtime_id, &it->chip_id, &it->start, &it->end, &it->cycles_per_ns, &kernel);
                it->sources = kernel < 0 ? NULL : &sources[kernel];
                it->source_count = kernel >= 0;
            }
            result = deliver(records, a, b);
            free(records);
        } else if (!strcmp(word, "flood"))
            result = flood(a, b ? b : 1);
        else if (!strcmp(word, "deliver"))
            pthread_create(&thread, NULL, deliver_on, NULL);
        else if (!strcmp(word, "stop")) {
            stop = true;
            pthread_join(thread, NULL);
            result = delivered;
        } else if (!strcmp(word, "delivered"))
            result = delivered;
        else if (!strcmp(word, "callbacks"))
            result = callbacks();
        else if (!strcmp(word, "names"))
            result = names_passed_on();
        else
            return 2;
        printf("OK %ld\n", result);
        fflush(stdout);
    }
    return 0;
}

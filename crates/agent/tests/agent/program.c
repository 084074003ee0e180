/* A runtime of its own, which reports its buffers by ttmon.h. Prints the results, one line each. */
#include "ttmon.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, long value) {
    printf("%s: %ld\n", what, value);
    fflush(stdout);
}

static void tell(const char *what, char *json) {
    printf("%s: %s\n", what, json);
    fflush(stdout);
    ttmon_text_free(json);
}

static ttmon_buffer buffer(uint64_t id, uint64_t chips, const char *label) {
    ttmon_buffer buffer = {0};
    buffer.id = id;
    buffer.chips = chips;
    buffer.kind = TTMON_KIND_DRAM;
    buffer.logical_bytes = 1000;
    buffer.bytes_per_bank = 1024;
    buffer.banks = 12;
    buffer.address = 4096;
    buffer.page_bytes = 512;
    buffer.label = label;
    return buffer;
}

/* What must be harmless at any time. */
static void nonsense(void) {
    say("allocate nothing", ttmon_allocate(NULL));
    say("free unknown", ttmon_free(12345));
    ttmon_banks(-1, TTMON_KIND_DRAM, NULL);
    ttmon_banks(77, 200, &(ttmon_bank_figures){0});
    ttmon_label_pop();
    ttmon_label_push(NULL);
    ttmon_label_pop();
    ttmon_text_free(NULL);
}

int main(int count, char **arguments) {
    if (count > 1) {
        tell("system", ttmon_system(-1));
        tell("device 0", ttmon_system(0));
        tell("detailed", ttmon_detailed(0));
        tell("device 77", ttmon_system(77));
        tell("device -5", ttmon_detailed(-5));
        return strcmp(arguments[1], "queries") != 0;
    }
    nonsense();
    say("chip before", ttmon_chip(0, 0));
    ttmon_buffer early = buffer(1, 1, "early");
    say("allocate before", ttmon_allocate(&early));
    tell("memory before", ttmon_memory());

    say("open", ttmon_open("c-program 1.0"));
    say("open again", ttmon_open(NULL));
    say("chip 3", ttmon_chip(3, 0x1122334455667788));
    say("chip 4", ttmon_chip(4, 0));
    say("chip 3 again", ttmon_chip(3, 0));
    nonsense();

    ttmon_buffer own = buffer(1, 1, "weights");
    ttmon_label_push("layer 0");
    ttmon_label_push("kv-cache");
    ttmon_buffer both = buffer(2, 3, NULL);
    say("allocate 1", ttmon_allocate(&own));
    say("allocate 2", ttmon_allocate(&both));
    ttmon_label_pop();
    ttmon_buffer small = buffer(3, 2, NULL);
    small.kind = TTMON_KIND_L1;
    say("allocate 3", ttmon_allocate(&small));
    ttmon_label_pop();
    ttmon_buffer plain = buffer(4, 2, NULL);
    say("allocate 4", ttmon_allocate(&plain));
    say("free 4", ttmon_free(4));
    say("free 4 again", ttmon_free(4));
    ttmon_bank_figures figures = {
        .allocatable_bytes = 10000, .allocated_bytes = 2048, .free_bytes = 7952, .largest_free_bytes = 3976, .banks = 12,
    };
    ttmon_banks(0, TTMON_KIND_DRAM, &figures);
    tell("memory", ttmon_memory());
    tell("process", ttmon_process((int32_t)getpid()));
    tell("no process", ttmon_process(-1));
    tell("without a book", ttmon_process(1));
    getchar();

    pid_t child = fork();
    if (child == 0) {
        say("free in child", ttmon_free(1));
        tell("memory in child", ttmon_memory());
        say("open in child", ttmon_open("c-program's child"));
        tell("own memory in child", ttmon_memory());
        fflush(stdout);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    say("child", status);
    ttmon_buffer odd = buffer(5, 1, NULL);
    ttmon_close();
    tell("memory closed", ttmon_memory());
    odd.kind = 200;
    say("allocate odd", ttmon_allocate(&odd));
    tell("memory odd", ttmon_memory());
    getchar();
    return 0;
}

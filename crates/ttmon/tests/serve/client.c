/* A client of the proof of concept as an instrumented tt-metal is: structs of 144 bytes, buffer types 0 DRAM, 1 L1, 2 host memory,
   3 L1_SMALL, 4 TRACE. Written from the description of the protocol alone. Reads commands, a line each, and answers each. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct __attribute__((packed)) message {
    uint8_t type, pad1[3];
    int32_t device;
    uint64_t size;
    uint8_t buffer_type, pad2[3];
    int32_t pid;
    uint64_t buffer, time;
    uint64_t allocated[6];
    uint64_t total_dram, total_l1;
    uint32_t arch, channels, per_channel, per_core, available, devices;
    uint32_t ring[4];
};
_Static_assert(sizeof(struct message) == 144, "144 bytes");

static int sock = -1;
static int32_t pid;
static const char *path;
static char *held;
static size_t held_bytes;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void dial(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    sock = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(sock, (struct sockaddr *)&address, sizeof address)) fail("connect");
}

static void push(const void *bytes, size_t count) {
    for (const char *at = bytes; count;) {
        ssize_t sent = send(sock, at, count, MSG_NOSIGNAL);
        if (sent < 0) fail("send");
        at += sent, count -= sent;
    }
}

static void tell(uint8_t type, int32_t device, uint64_t size, uint8_t buffer_type, uint64_t buffer) {
    struct message message = {.type = type, .device = device, .size = size, .buffer_type = buffer_type, .pid = pid, .buffer = buffer};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (type != 2) message.time = now.tv_sec * 1000000000ull + now.tv_nsec;
    if (!held) return push(&message, sizeof message);
    held = realloc(held, held_bytes + sizeof message);
    memcpy(held + held_bytes, &message, sizeof message);
    held_bytes += sizeof message;
}

static struct message hear(uint8_t type, int32_t device) {
    struct message message;
    if (recv(sock, &message, sizeof message, MSG_WAITALL) != sizeof message) fail("recv");
    if (message.type != type || message.device != device) exit(2);
    return message;
}

static uint64_t state;
static uint64_t chance(uint64_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 11) % below;
}

/* Allocates and frees so often, buffers, circular buffers and kernels, and knows what is left. */
static void at_random(uint64_t seed, uint64_t count, int32_t device, uint64_t totals[6]) {
    static const uint8_t types[6] = {1, 1, 1, 1, 8, 10}, buffer_types[6] = {0, 1, 3, 4, 0, 2};
    struct { uint64_t size; int kind; } live[512] = {0};
    state = seed * 2654435761u + 1;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t slot = chance(512), buffer = (slot + 1) * 4096;
        if (live[slot].size) {
            int kind = live[slot].kind;
            tell(kind < 4 ? 2 : kind == 4 ? 9 : 11, device, 0, 0, buffer);
            totals[kind] -= live[slot].size;
            live[slot].size = 0;
        } else {
            int kind = live[slot].kind = chance(6);
            live[slot].size = 1 + chance(1 << 24);
            totals[kind] += live[slot].size;
            tell(types[kind], device, live[slot].size, buffer_types[kind], buffer);
        }
    }
}

int main(int argc, char **argv) {
    char line[4096], word[32];
    if (argc < 2) return 2;
    path = argv[1], pid = getpid();
    dial();
    printf("READY %d\n", pid), fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long long a = 0, b = 0, c = 0, d = 0;
        if (sscanf(line, "%31s %lld %lld %lld %lld", word, &a, &b, &c, &d) < 1) continue;
        uint64_t numbers[8] = {0};
        int count = 0;
        if (!strcmp(word, "alloc")) tell(1, a, b, c, d);
        else if (!strcmp(word, "free")) tell(2, a, 0, 0, b);
        else if (!strcmp(word, "cb")) tell(8, a, b, 0, c);
        else if (!strcmp(word, "cbfree")) tell(9, a, 0, 0, b);
        else if (!strcmp(word, "kernel")) tell(10, a, b, 1, c);
        else if (!strcmp(word, "unload")) tell(11, a, 0, 1, b);
        else if (!strcmp(word, "dump")) tell(5, 0, 0, 0, 0), tell(12, 0, 0, 0, 0);
        else if (!strcmp(word, "query")) {
            tell(3, a, 0, 0, 0);
            struct message answer = hear(4, a);
            memcpy(numbers, answer.allocated, sizeof answer.allocated), count = 6;
        } else if (!strcmp(word, "info")) {
            tell(6, a, 0, 0, 0);
            struct message m = hear(7, a);
            uint64_t all[8] = {m.total_dram, m.total_l1, m.arch, m.channels, m.per_channel, m.per_core, m.available, m.devices};
            memcpy(numbers, all, sizeof all), count = 8;
        } else if (!strcmp(word, "random")) at_random(a, b, c, numbers), count = 6;
        else if (!strcmp(word, "pid")) pid = a;
        else if (!strcmp(word, "reconnect")) close(sock), dial();
        else if (!strcmp(word, "hold")) held = calloc(1, 1), held_bytes = 0;
        else if (!strcmp(word, "flush")) {
            char *bytes = held;
            held = NULL;
            for (size_t at = 0; at < held_bytes; at += a) {
                push(bytes + at, held_bytes - at < (size_t)a ? held_bytes - at : (size_t)a);
                usleep(b * 1000);
            }
            free(bytes);
        } else return 2;
        printf("OK");
        for (int i = 0; i < count; i++) printf(" %llu", (unsigned long long)numbers[i]);
        printf("\n"), fflush(stdout);
    }
    return 0;
}

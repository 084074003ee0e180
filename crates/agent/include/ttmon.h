// Reports device memory to ttmon, and queries it: for runtimes other than tt-metal, and for tools.
//
// A program that uses tt-metal or ttnn need not report anything: loaded before libtt_metal.so, libttmon_agent.so follows its
// buffers by itself. Others report theirs, and `ttmon smi` shows them:
//
//     ttmon_open("my-runtime 1.2");
//     int chip = ttmon_chip(0, unique_id);
//     ttmon_buffer buffer = {.id = 1, .chips = 1ull << chip, .kind = TTMON_KIND_DRAM, .logical_bytes = 1000,
//                            .bytes_per_bank = 1024, .banks = 12, .address = 4096, .page_bytes = 1024};
//     ttmon_allocate(&buffer);
//     ...
//     ttmon_free(1);
//
// All functions may be called at any time and from any thread, and do nothing where there is nothing to do.
// They start no service and wait for none. TTMON_AGENT=off in the environment turns all of them but the queries off.
//
// Made from crates/agent/src/c_abi.rs: UPDATE_EXPECT=1 cargo test -p ttmon-agent the_header

#ifndef TTMON_H
#define TTMON_H

#include <stdbool.h>
#include <stdint.h>

// What device memory is used for.
typedef enum ttmon_kind {
    // Buffers in DRAM.
    TTMON_KIND_DRAM = 0,
    // Buffers in L1.
    TTMON_KIND_L1 = 1,
    // Buffers in the small L1 region.
    TTMON_KIND_L1_SMALL = 2,
    // Recorded command traces, in DRAM.
    TTMON_KIND_TRACE = 3,
    // Circular buffers, in L1.
    TTMON_KIND_CB = 4,
    // Kernel code.
    TTMON_KIND_KERNEL = 5,
} ttmon_kind;

// A buffer, the same on all of its chips. It takes `bytes_per_bank` × `banks` of each.
typedef struct ttmon_buffer {
    // Id of the buffer, unique among the live buffers of this process.
    uint64_t id;
    // The chips that have it: bit n for the chip that `ttmon_chip` numbered n.
    uint64_t chips;
    // Bytes that were asked for, per chip.
    uint64_t logical_bytes;
    // Bytes that are reserved in each bank.
    uint64_t bytes_per_bank;
    // Address in each bank.
    uint64_t address;
    // Bytes of a page.
    uint64_t page_bytes;
    // What people call it: UTF-8, of which 56 bytes are kept. NULL for the innermost label of this thread.
    const char *label;
    // The banks in which memory is reserved.
    uint32_t banks;
    // A `ttmon_kind`.
    uint8_t kind;
    // As the runtime numbers its layouts.
    uint8_t layout;
} ttmon_buffer;

// What an allocator says of one bank; all banks of a kind are alike.
typedef struct ttmon_bank_figures {
    // Bytes that can be handed out at all.
    uint64_t allocatable_bytes;
    // Bytes that are handed out.
    uint64_t allocated_bytes;
    // Bytes that are left.
    uint64_t free_bytes;
    // The largest piece of them.
    uint64_t largest_free_bytes;
    // How many banks there are.
    uint32_t banks;
} ttmon_bank_figures;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Begins the book of this process, if it has none yet; a forked child begins its own.
//
// `producer` says who keeps it, such as "my-runtime 1.2". False when no book can be kept, or `TTMON_AGENT=off`: all
// that follows is harmless then.
// `producer` must be NULL or end with a zero.
bool ttmon_open(const char *producer);

// The number in the book of the chip that this process calls `device_id`, or -1.
//
// `unique_id` identifies the chip: the number that tt-umd gives it. 0 when it is not known.
int32_t ttmon_chip(uint32_t device_id, uint64_t unique_id);

// A buffer was allocated. One with the same id is replaced. False when no book is kept, or there is no such kind.
// `buffer` must be NULL or point to one, whose label is NULL or ends with a zero.
bool ttmon_allocate(const struct ttmon_buffer *buffer);

// A buffer is about to be given back. False when the book does not know it.
bool ttmon_free(uint64_t id);

// What the allocator says of the banks of a `ttmon_kind` on a chip, as of the last buffer that was reported. Only DRAM,
// L1, L1_SMALL and TRACE have banks.
// `figures` must be NULL or point to some.
void ttmon_banks(int32_t chip, uint8_t kind, const struct ttmon_bank_figures *figures);

// Labels the buffers that this thread allocates from now on, until `ttmon_label_pop`. The innermost label counts.
// `text` must be NULL or end with a zero.
void ttmon_label_push(const char *text);

// Goes back to the label before the last `ttmon_label_push`.
void ttmon_label_pop(void);

// Notes in the book that this process is done. What is still allocated counts as left behind. The end of the process
// does the same, if it comes by `exit`.
void ttmon_close(void);

// The book of this process with its live buffers, as JSON.
//
// The answer of each query goes back with `ttmon_text_free`. When there is none, it is `{"error":"why"}`.
char *ttmon_memory(void);

// The book of a process with its live buffers, as JSON. A process may look into those of its own user; root into all.
char *ttmon_process(int32_t pid);

// The device with this index and the processes that use it, as JSON, in the form of `ttmon smi --json`. -1 for all.
char *ttmon_system(int32_t device);

// The same, and in each process its `book` with its live buffers, where it keeps one that may be read.
char *ttmon_detailed(int32_t device);

// The operations that a process has launched, and their time on the devices, as JSON. 0 for this process.
char *ttmon_ops(int32_t pid);

// Gives the answer of a query back. NULL is fine.
// `text` must be NULL or the answer of a query, once.
void ttmon_text_free(char *text);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TTMON_H */

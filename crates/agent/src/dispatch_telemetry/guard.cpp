// Ends the exceptions of tt-metal's functions: Rust code cannot catch them.

// Calls a function. False if it threw something, which ends here.
extern "C" bool ttmon_guard(void (*call)(void *), void *with) {
    try {
        call(with);
        return true;
    } catch (...) {
        return false;
    }
}

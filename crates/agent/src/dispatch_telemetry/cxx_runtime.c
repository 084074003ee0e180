/* What guard.cpp needs of the C++ runtime, passed on to the runtime that tt-metal has.
 *
 * The agent is loaded into processes that have no C++ runtime, and in others it is there before the runtime is: Python loads it
 * together with tt-metal. So the agent neither links it nor refers to it. These functions have its names inside of this library
 * only, and are called only after ttmon_cxx_runtime. */

typedef int personality(int version, int actions, unsigned long long class, void *exception, void *context);
typedef void *begin_catch(void *exception);
typedef void end_catch(void);

static personality *the_personality;
static begin_catch *the_begin_catch;
static end_catch *the_end_catch;

/* Says where the functions of the runtime are. */
void ttmon_cxx_runtime(personality *first, begin_catch *second, end_catch *third) {
    the_personality = first;
    the_begin_catch = second;
    the_end_catch = third;
}

int __gxx_personality_v0(int version, int actions, unsigned long long class, void *exception, void *context) {
    return the_personality(version, actions, class, exception, context);
}

void *__cxa_begin_catch(void *exception) {
    return the_begin_catch(exception);
}

void __cxa_end_catch(void) {
    the_end_catch();
}

#include "thread.h"

#include <pthread.h>
#include <signal.h>

static bool start(pthread_t *thread, bool joined, void *(*run)(void *), void *argument) {
    static const int ours[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, STOP_SIGNAL};
    sigset_t masked, before;
    pthread_attr_t attributes;
    sigfillset(&masked);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) sigdelset(&masked, ours[i]);
    pthread_sigmask(SIG_SETMASK, &masked, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, joined ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED);
    bool started = !pthread_create(thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

bool thread_start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    return start(&thread, false, run, argument);
}

bool thread_start_joined(pthread_t *thread, void *(*run)(void *), void *argument) {
    return start(thread, true, run, argument);
}

#include "thread.h"

#include <pthread.h>
#include <signal.h>

bool thread_start(void *(*run)(void *), void *argument) {
    static const int ours[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, STOP_SIGNAL};
    sigset_t masked, before;
    pthread_t thread;
    pthread_attr_t attributes;
    sigfillset(&masked);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) sigdelset(&masked, ours[i]);
    pthread_sigmask(SIG_SETMASK, &masked, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool started = !pthread_create(&thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

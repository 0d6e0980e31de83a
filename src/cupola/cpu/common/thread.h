/* Threads of the CPU device's own. */
#ifndef CUPOLA_CPU_THREAD_H
#define CUPOLA_CPU_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* By which a thread that runs device code is told that a launch is to end (engine/schedule/stop.c). By default nobody minds
 * it. */
#define STOP_SIGNAL SIGURG

/* Start a thread that nobody joins. Signals are for the program's own threads; but those of faults and the one above come to
 * the thread that runs device code. False when the system has no room for another one. */
bool thread_start(void *(*run)(void *), void *argument);

/* The same for a thread that is joined. */
bool thread_start_joined(pthread_t *thread, void *(*run)(void *), void *argument);

#endif

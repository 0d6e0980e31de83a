/* Other processes: who they are, and whether they are still there. */
#define _GNU_SOURCE
#include "ipc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

void random_bytes(void *target, size_t size) {
    if (getrandom(target, size, GRND_NONBLOCK) == (ssize_t)size) return;
    struct timespec now; /* the computer has just been started: unlikely to repeat is good enough */
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t state = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)getpid() << 48;
    for (size_t i = 0; i < size; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        ((uint8_t *)target)[i] = (uint8_t)(state >> 56);
    }
}

/* When a process began (field 22 of /proc/N/stat, see proc(5)); 0 when it has ended, waited for or not. */
static uint64_t beginning_of(int64_t number) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)number);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    char *at = strrchr(text, ')'); /* behind the name, which may have any characters */
    if (!at || at[1] != ' ' || strchr("ZXx", at[2])) return 0;
    for (int field = 2; field < 22; field++)
        if (!(at = strchr(at + 1, ' '))) return 0;
    return strtoull(at, NULL, 10);
}

bool process_is_alive(int64_t number, uint64_t began) { return beginning_of(number) == began && began; }

static struct process self;

static void introduce(void) {
    random_bytes(self.nonce, sizeof self.nonce);
    self.number = getpid();
    self.began = beginning_of(self.number);
}

const struct process *this_process(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, introduce);
    return &self;
}

bool is_this_process(const struct process *process) {
    return !memcmp(process->nonce, this_process()->nonce, sizeof process->nonce);
}

int open_file_of(const struct process *process, int file) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)process->number, file);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Which of the modeled devices this process sees, and in which order, as CUDA_VISIBLE_DEVICES says (CUDA C++ Programming
 * Guide, "CUDA Environment Variables"). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device.h"

/* The place that a name of the list means; -1: none. A UUID may be shortened as long as one device has it. Parts of a GPU
 * (MIG) are not modeled. */
static int named(const char *name, size_t length, int present) {
    int found = -1;
    char *end;
    if (!strncasecmp(name, "GPU-", 4)) {
        for (int place = 0; place < present; place++) {
            char text[UUID_TEXT];
            device_uuid_text(place, text);
            if (length > strlen(text) || strncasecmp(name, text, length)) continue;
            if (found >= 0) return -1;
            found = place;
        }
        return found;
    }
    long number = strtol(name, &end, 10);
    return end == name + length && number >= 0 && number < present ? (int)number : -1;
}

/* Fills `places`; returns how many there are. A name that means nothing ends the list; one that is there twice makes it
 * empty. */
static int read_list(const char *list, int present, int *places) {
    int count = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        while (length && isspace((unsigned char)*at)) at++, length--;
        while (length && isspace((unsigned char)at[length - 1])) length--;
        int place = length ? named(at, length, present) : -1;
        if (place < 0) return count;
        for (int i = 0; i < count; i++)
            if (places[i] == place) return 0;
        places[count++] = place;
        at += strcspn(at, ",");
        if (!*at) return count;
    }
}

int visible_devices(int present, bool is_asked_for, int *places) {
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int count = list ? read_list(list, present, places) : 0;
    if (count || (list && is_asked_for)) return count;
    for (int i = 0; i < present; i++) places[i] = i;
    return present;
}

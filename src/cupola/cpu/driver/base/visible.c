/* Which of the modeled devices this process sees, and in which order, as CUDA_VISIBLE_DEVICES says (CUDA C++ Programming
 * Guide, "CUDA Environment Variables"). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

static bool is_uuid(const char *name) { return !strncmp(name, "GPU-", 4); }

/* Whether the digits of `name`, without its dashes, are the first of `uuid`. There is one at least. */
static bool begins(const char *name, size_t length, const char *uuid) {
    bool any = false;
    for (size_t i = 4; i < length; i++) {
        if (!*uuid) return true; /* what is behind it does not count */
        if (name[i] == '-') continue;
        uuid += *uuid == '-';
        if (tolower((unsigned char)name[i]) != *uuid++) return false;
        any = true;
    }
    return any;
}

/* The place that a name of the list means; -1: none. A UUID may be shortened as long as one device has it. Parts of a GPU
 * (MIG) are not modeled. */
static int named(const char *name, size_t length, int present) {
    int found = -1;
    char *end;
    for (int place = 0; is_uuid(name) && place < present; place++) {
        char text[UUID_TEXT];
        device_uuid_text(place, text);
        if (!begins(name, length, text + 4)) continue;
        if (found >= 0) return -1;
        found = place;
    }
    if (is_uuid(name)) return found;
    long number = strtol(name, &end, 10);
    return end != name && number >= 0 && number < present ? (int)number : -1; /* what is behind it does not count */
}

/* Fills `places`; returns how many there are. A name that means nothing ends the list, and so does a number among UUIDs or a
 * UUID among numbers. -1: a device is there twice. */
static int read_list(const char *list, int present, int *places) {
    int count = 0;
    bool are_uuids = false;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        while (length && isspace((unsigned char)at[length - 1])) length--;
        int place = length ? named(at, length, present) : -1;
        if (!count) are_uuids = is_uuid(at);
        if (place < 0 || is_uuid(at) != are_uuids) return count;
        for (int i = 0; i < count; i++)
            if (places[i] == place) return -1;
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

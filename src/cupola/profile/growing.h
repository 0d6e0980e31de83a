/* A list that grows, of anything. */
#ifndef CUPOLA_PROFILE_GROWING_H
#define CUPOLA_PROFILE_GROWING_H

#include <stdbool.h>
#include <stdlib.h>

/* Room for one more of `size` bytes behind the `count` there are; false: there is no memory. */
static inline bool room_for_one(void **list, size_t count, size_t *room, size_t size) {
    if (count < *room) return true;
    size_t wanted = *room ? 2 * *room : 1024;
    void *longer = realloc(*list, wanted * size);
    if (!longer) return false;
    *list = longer;
    *room = wanted;
    return true;
}

#endif

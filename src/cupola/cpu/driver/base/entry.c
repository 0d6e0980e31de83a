#include "entry.h"

#include <string.h>

const struct entry *entry_find(const struct entry *const *tables, const char *symbol, size_t length) {
    for (; *tables; tables++)
        for (const struct entry *entry = *tables; entry->name; entry++)
            if (!strncmp(entry->name, symbol, length) && !entry->name[length]) return entry;
    return NULL;
}

void *entry_lookup(const struct entry *const *tables, const char *symbol) {
    size_t length = strlen(symbol);
    bool per_thread = length > 5 && (!strcmp(symbol + length - 5, "_ptsz") || !strcmp(symbol + length - 5, "_ptds"));
    const struct entry *entry = entry_find(tables, symbol, per_thread ? length - 5 : length);
    if (!entry) return NULL;
    return per_thread ? entry->per_thread : entry->function;
}

size_t entry_count(const struct entry *const *tables) {
    size_t count = 0;
    for (; *tables; tables++)
        for (const struct entry *entry = *tables; entry->name; entry++) count++;
    return count;
}

const char *entry_name(const struct entry *const *tables, size_t index) {
    for (; *tables; tables++)
        for (const struct entry *entry = *tables; entry->name; entry++)
            if (!index--) return entry->name;
    return NULL;
}

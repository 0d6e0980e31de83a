/* Names that stay: each text is stored once, in lists by its hash. Whoever has a table holds the table's lock. */
#ifndef CUPOLA_CPU_NAMES_H
#define CUPOLA_CPU_NAMES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LISTS = 1024 };
struct name {
    struct name *next;
    char text[];
};
struct names {
    struct name *lists[NAME_LISTS];
};

/* A copy that stays until the process ends; NULL: there is no memory for it. */
static inline const char *names_keep(struct names *names, const char *text) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = text; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    struct name **list = &names->lists[hash % NAME_LISTS], *found = *list;
    while (found && strcmp(found->text, text)) found = found->next;
    if (!found && (found = malloc(sizeof *found + strlen(text) + 1))) {
        strcpy(found->text, text);
        found->next = *list;
        *list = found;
    }
    return found ? found->text : NULL;
}

#endif

#ifndef KEPT_PAGES_H
#define KEPT_PAGES_H

#include <sqlite3.h>

/* Pages of one database, as one connection has read them from the file and from its log. */
typedef struct KeptPages KeptPages;

enum {
    keptPageBytes = 4096,
    /* Of the log (https://www.sqlite.org/fileformat2.html#walformat). */
    logHeader = 32,
    frameHeader = 24,
};

/* The first part of the shared memory of a database, once it is mapped; NULL when it is not. */
void kept_pages_share(KeptPages **pages, const volatile void *shared);
void kept_pages_free(KeptPages **pages);
/* Forgets all of them. */
void kept_pages_forget(KeptPages *pages);

/* Reads from `file` what is not kept, and keeps it. `log` is 0 for the database itself. */
int kept_pages_read(KeptPages *pages, int log, sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset);

#endif

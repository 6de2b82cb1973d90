#include "KeptPages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* After every commit of another process SQLite forgets all pages that it has read. Most of them are what they were, and the
   shared memory of the log tells which (https://www.sqlite.org/walformat.html#walidxfmt):

   A frame of the log stays as it is once the transaction that wrote it has committed, until the log begins anew, which gives
   it another salt.

   A page is read from the file itself by who sees it in none of the frames that come after those moved into the file, and
   no more are moved than all who read may see. So while as many are moved as when it was read, who reads it from the file
   sees it as it was. Up to where a checkpoint means to go tells less: who mends the shared memory writes down all of the
   log, whatever those see who read meanwhile.

   To be asked by who is in a transaction that reads: the log does not begin anew below them. */

/* Of the file and of the log: 16 and 8 megabytes, which take memory as they are used. A log has about so many frames before
   it begins anew. */
static const int slots[] = {4096, 2048};

enum {
    /* Where numbers of the shared memory lie, in units of four bytes. There are two copies of its header; `other` is the
       second, which is written first. */
    version = 0,
    lastFrame = 4,
    salts = 8,
    other = 12,
    moved = 24,
    knownVersion = 3007000,
};

typedef struct {
    /* Of which kind it is: one of another edition is none. */
    uint64_t edition;
    uint32_t number;
    unsigned char bytes[keptPageBytes];
} Slot;

typedef struct {
    /* Far more than can be counted: one that came again would be taken for the old one. */
    uint64_t edition;
    uint32_t salts[2];
    /* Of the file, up to where the log has been moved into it; of the log, its last frame when somebody looked last. */
    uint32_t frame;
    Slot *slots;
} Table;

struct KeptPages {
    const volatile uint32_t *shared;
    Table tables[2];
};

void kept_pages_share(KeptPages **pages, const volatile void *shared) {
    if (*pages == NULL && shared != NULL) *pages = calloc(1, sizeof **pages);
    if (*pages == NULL) return;
    (*pages)->shared = shared;
    kept_pages_forget(*pages);
}

void kept_pages_free(KeptPages **pages) {
    if (*pages == NULL) return;
    for (int i = 0; i < 2; i++) free((*pages)->tables[i].slots);
    free(*pages);
    *pages = NULL;
}

void kept_pages_forget(KeptPages *pages) {
    if (pages == NULL) return;
    for (int i = 0; i < 2; i++) pages->tables[i].edition++;
}

static uint32_t shared(const KeptPages *pages, int at) { return __atomic_load_n(pages->shared + at, __ATOMIC_ACQUIRE); }

/* What of the log has been moved into the file and what its last frame is; whether they are of one log. Where it begins anew
   just now, they are not. */
static int look(const KeptPages *pages, uint32_t found[2], uint32_t *first, uint32_t *last) {
    found[0] = shared(pages, salts);
    found[1] = shared(pages, salts + 1);
    *first = shared(pages, moved);
    *last = shared(pages, other + lastFrame);
    int isOne = *first <= *last;
    for (int i = 0; i < 2; i++) isOne = isOne && shared(pages, other + salts + i) == found[i];
    isOne = isOne && shared(pages, moved) == *first;
    for (int i = 0; i < 2; i++) isOne = isOne && shared(pages, salts + i) == found[i];
    return isOne;
}

/* The table as far as it holds now; NULL where nothing is known. */
static Table *current(KeptPages *pages, int log) {
    uint32_t found[2], first, last;
    if (pages->shared == NULL || shared(pages, version) != knownVersion) return NULL;
    if (!look(pages, found, &first, &last)) return NULL;
    Table *table = &pages->tables[log];
    if (table->slots == NULL) {
        table->slots = calloc((size_t)slots[log], sizeof(Slot));
        if (table->slots == NULL) return NULL;
        table->edition = 1;
    }
    uint32_t frame = log ? last : first;
    int isOther = table->salts[0] != found[0] || table->salts[1] != found[1];
    /* A log that has become shorter was found so by who mended it. */
    if (isOther || (log ? frame < table->frame : frame != table->frame)) {
        table->edition++;
        table->salts[0] = found[0];
        table->salts[1] = found[1];
    }
    table->frame = frame;
    return table;
}

int kept_pages_read(KeptPages *pages, int log, sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    const int64_t before = log ? logHeader + frameHeader : 0, length = log ? frameHeader + keptPageBytes : keptPageBytes;
    int isPage = count == keptPageBytes && offset >= before && (offset - before) % length == 0;
    int64_t number = isPage ? (offset - before) / length : 0;
    Table *table = isPage && number < UINT32_MAX ? current(pages, log) : NULL;
    if (table == NULL) return file->pMethods->xRead(file, bytes, count, offset);
    Slot *slot = &table->slots[number % slots[log]];
    if (slot->edition == table->edition && slot->number == number) {
        memcpy(bytes, slot->bytes, keptPageBytes);
        return SQLITE_OK;
    }
    slot->edition = 0;
    int status = file->pMethods->xRead(file, bytes, count, offset);
    if (status != SQLITE_OK) return status;
    memcpy(slot->bytes, bytes, keptPageBytes);
    slot->number = (uint32_t)number;
    slot->edition = table->edition;
    return SQLITE_OK;
}

#include "CFiles.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* A frame of the write-ahead log is a header of 24 bytes and a page; SQLite writes each of them on its own. Those of one
   transaction follow each other, and nobody may look at them before the last one, whose header says how many pages the
   database has then (https://www.sqlite.org/fileformat2.html#walformat). So they are kept until that one comes, and
   written as one. A kill before leaves nothing of a transaction that had not committed anyway.

   So what is kept is always of a transaction that has not committed. It is dropped when that is undone: later, another
   process may have written its own there. */

enum {
    fileHeader = 32,
    frameHeader = 24,
    /* Less than what SQLite's own file layer writes at once. */
    capacity = 120 * 1024,
};

typedef struct {
    sqlite3_file base;
    /* SQLite's own file behind it, in the memory that follows. */
    sqlite3_file *file;
    unsigned char *buffer;
    sqlite3_int64 start;
    int used;
    /* Where the next frame of this connection is expected: nothing is kept of what is written elsewhere, such as headers
       that are written anew. */
    sqlite3_int64 next;
    /* Whether a frame's header was the last that was written, at its end, and whether it is the last of a transaction. */
    sqlite3_int64 headerEnd;
    int isLast;
} LogFile;

static sqlite3_vfs *original;

static int flush(LogFile *log) {
    int used = log->used;
    log->used = 0;
    return used == 0 ? SQLITE_OK : log->file->pMethods->xWrite(log->file, log->buffer, used, log->start);
}

/* Adds to what is kept; what does not fit is written after that. */
static int keep(LogFile *log, const void *bytes, int count, sqlite3_int64 offset) {
    if (log->used > 0 && (log->start + log->used != offset || log->used + count > capacity)) {
        int status = flush(log);
        if (status != SQLITE_OK) return status;
    }
    if (log->buffer == NULL) log->buffer = malloc(capacity);
    if (log->buffer == NULL || count > capacity) {
        int status = flush(log);
        return status != SQLITE_OK ? status : log->file->pMethods->xWrite(log->file, bytes, count, offset);
    }
    if (log->used == 0) log->start = offset;
    memcpy(log->buffer + log->used, bytes, (size_t)count);
    log->used += count;
    return SQLITE_OK;
}

static int logWrite(sqlite3_file *self, const void *bytes, int count, sqlite3_int64 offset) {
    LogFile *log = (LogFile *)self;
    if (count == frameHeader) {
        const unsigned char *pages = (const unsigned char *)bytes + 4;
        log->isLast = (pages[0] | pages[1] | pages[2] | pages[3]) != 0;
        log->headerEnd = offset + count;
        if (offset == log->next) return keep(log, bytes, count, offset);
    } else if (offset == log->headerEnd) {
        /* The page of a frame, kept if its header is. */
        log->headerEnd = -1;
        log->next = offset + count;
        if (log->used > 0) {
            int status = keep(log, bytes, count, offset);
            return status != SQLITE_OK || !log->isLast ? status : flush(log);
        }
    } else if (offset == 0 && count == fileHeader) {
        log->next = fileHeader;
    }
    int status = flush(log);
    return status != SQLITE_OK ? status : log->file->pMethods->xWrite(log->file, bytes, count, offset);
}

static int logClose(sqlite3_file *self) {
    LogFile *log = (LogFile *)self;
    free(log->buffer);
    log->buffer = NULL;
    log->used = 0;
    return log->file->pMethods->xClose(log->file);
}

/* A long transaction reads back what it has written. */
static int logRead(sqlite3_file *self, void *bytes, int count, sqlite3_int64 offset) {
    LogFile *log = (LogFile *)self;
    if (log->used > 0 && offset < log->start + log->used && log->start < offset + count) {
        int status = flush(log);
        if (status != SQLITE_OK) return status;
    }
    return log->file->pMethods->xRead(log->file, bytes, count, offset);
}

#define PASS_ON(call)                                                          \
    sqlite3_file *file = ((LogFile *)self)->file;                              \
    return file->pMethods->call

static int logTruncate(sqlite3_file *self, sqlite3_int64 size) { PASS_ON(xTruncate(file, size)); }
static int logSync(sqlite3_file *self, int flags) { PASS_ON(xSync(file, flags)); }
static int logSize(sqlite3_file *self, sqlite3_int64 *size) { PASS_ON(xFileSize(file, size)); }
static int logControl(sqlite3_file *self, int code, void *value) { PASS_ON(xFileControl(file, code, value)); }
static int logLock(sqlite3_file *self, int level) { PASS_ON(xLock(file, level)); }
static int logUnlock(sqlite3_file *self, int level) { PASS_ON(xUnlock(file, level)); }
static int logIsReserved(sqlite3_file *self, int *result) { PASS_ON(xCheckReservedLock(file, result)); }
static int logSector(sqlite3_file *self) { PASS_ON(xSectorSize(file)); }
static int logCharacteristics(sqlite3_file *self) { PASS_ON(xDeviceCharacteristics(file)); }

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = logClose,
    .xRead = logRead,
    .xWrite = logWrite,
    .xTruncate = logTruncate,
    .xSync = logSync,
    .xFileSize = logSize,
    .xLock = logLock,
    .xUnlock = logUnlock,
    .xCheckReservedLock = logIsReserved,
    .xFileControl = logControl,
    .xSectorSize = logSector,
    .xDeviceCharacteristics = logCharacteristics,
};

static int openFile(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags, int *outFlags) {
    (void)self;
    if (!(flags & SQLITE_OPEN_WAL)) return original->xOpen(original, name, file, flags, outFlags);
    LogFile *log = (LogFile *)file;
    memset(log, 0, sizeof *log);
    log->next = log->headerEnd = -1;
    log->file = (sqlite3_file *)(log + 1);
    int status = original->xOpen(original, name, log->file, flags, outFlags);
    if (log->file->pMethods != NULL) log->base.pMethods = &methods;
    return status;
}

/* As a hook of SQLite's, called when a transaction was undone. */
static void drop(void *database) {
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK) return;
    if (file != NULL && file->pMethods == &methods) ((LogFile *)file)->used = 0;
}

void buffered_log_attach(struct sqlite3 *database) { sqlite3_rollback_hook(database, drop, database); }

const char *buffered_log_register(void) {
    static sqlite3_vfs vfs;
    original = sqlite3_vfs_find("unix");
    if (original == NULL) return NULL;
    vfs = *original;
    vfs.zName = "buffered-log";
    vfs.szOsFile = original->szOsFile + (int)sizeof(LogFile);
    vfs.pNext = NULL;
    vfs.xOpen = openFile;
    return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK ? vfs.zName : NULL;
}

void buffered_log_keep(struct sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
}

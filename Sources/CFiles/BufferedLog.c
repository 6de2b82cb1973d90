#include "CFiles.h"
#include "KeptPages.h"

#include <stdlib.h>
#include <string.h>

/* A frame of the write-ahead log is a header of 24 bytes and a page; SQLite writes each of them on its own. Those of one
   transaction follow each other, and nobody may look at them before the last one, whose header says how many pages the
   database has then (https://www.sqlite.org/fileformat2.html#walformat). So they are kept until that one comes, and
   written as one. A kill before leaves nothing of a transaction that had not committed anyway.

   So what is kept is always of a transaction that has not committed. It is dropped when that is undone: later, another
   process may have written its own there. */

enum {
    /* Less than what SQLite's own file layer writes at once. */
    capacity = 120 * 1024,
};

/* A file as SQLite has it, in front of its own, which lies in the memory that follows. */
typedef struct {
    sqlite3_file base;
    sqlite3_file *file;
} Wrapped;

/* The database itself. */
typedef struct {
    Wrapped wrapped;
    KeptPages *pages;
    /* Whether pages are kept now. */
    int keeps;
} DatabaseFile;

typedef struct {
    Wrapped wrapped;
    DatabaseFile *database;
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

static int readPage(DatabaseFile *database, int log, sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    if (database != NULL && database->keeps && database->pages != NULL)
        return kept_pages_read(database->pages, log, file, bytes, count, offset);
    return file->pMethods->xRead(file, bytes, count, offset);
}

static int flush(LogFile *log) {
    int used = log->used;
    log->used = 0;
    sqlite3_file *file = log->wrapped.file;
    return used == 0 ? SQLITE_OK : file->pMethods->xWrite(file, log->buffer, used, log->start);
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
        return status != SQLITE_OK ? status : log->wrapped.file->pMethods->xWrite(log->wrapped.file, bytes, count, offset);
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
    } else if (offset == 0 && count == logHeader) {
        log->next = logHeader;
    }
    int status = flush(log);
    return status != SQLITE_OK ? status : log->wrapped.file->pMethods->xWrite(log->wrapped.file, bytes, count, offset);
}

static int logClose(sqlite3_file *self) {
    LogFile *log = (LogFile *)self;
    free(log->buffer);
    log->buffer = NULL;
    log->used = 0;
    return log->wrapped.file->pMethods->xClose(log->wrapped.file);
}

/* A long transaction reads back what it has written. */
static int logRead(sqlite3_file *self, void *bytes, int count, sqlite3_int64 offset) {
    LogFile *log = (LogFile *)self;
    if (log->used > 0 && offset < log->start + log->used && log->start < offset + count) {
        int status = flush(log);
        if (status != SQLITE_OK) return status;
    }
    return readPage(log->database, 1, log->wrapped.file, bytes, count, offset);
}

#define PASS_ON(call)                                                          \
    sqlite3_file *file = ((Wrapped *)self)->file;                              \
    return file->pMethods->call

static int passTruncate(sqlite3_file *self, sqlite3_int64 size) { PASS_ON(xTruncate(file, size)); }
static int passSync(sqlite3_file *self, int flags) { PASS_ON(xSync(file, flags)); }
static int passSize(sqlite3_file *self, sqlite3_int64 *size) { PASS_ON(xFileSize(file, size)); }
static int passControl(sqlite3_file *self, int code, void *value) { PASS_ON(xFileControl(file, code, value)); }
static int passLock(sqlite3_file *self, int level) { PASS_ON(xLock(file, level)); }
static int passUnlock(sqlite3_file *self, int level) { PASS_ON(xUnlock(file, level)); }
static int passIsReserved(sqlite3_file *self, int *result) { PASS_ON(xCheckReservedLock(file, result)); }
static int passSector(sqlite3_file *self) { PASS_ON(xSectorSize(file)); }
static int passCharacteristics(sqlite3_file *self) { PASS_ON(xDeviceCharacteristics(file)); }
static int passShmLock(sqlite3_file *self, int from, int count, int flags) {
    PASS_ON(xShmLock(file, from, count, flags));
}
static void passShmBarrier(sqlite3_file *self) { PASS_ON(xShmBarrier(file)); }

/* What both kinds of files leave to SQLite's own. */
#define PASSED_ON                                                              \
    .xTruncate = passTruncate,                                                 \
    .xSync = passSync,                                                         \
    .xFileSize = passSize,                                                     \
    .xLock = passLock,                                                         \
    .xUnlock = passUnlock,                                                     \
    .xCheckReservedLock = passIsReserved,                                      \
    .xFileControl = passControl,                                               \
    .xSectorSize = passSector,                                                 \
    .xDeviceCharacteristics = passCharacteristics

static const sqlite3_io_methods logMethods = {
    .iVersion = 1,
    .xClose = logClose,
    .xRead = logRead,
    .xWrite = logWrite,
    PASSED_ON,
};

static int databaseRead(sqlite3_file *self, void *bytes, int count, sqlite3_int64 offset) {
    DatabaseFile *database = (DatabaseFile *)self;
    return readPage(database, 0, database->wrapped.file, bytes, count, offset);
}

static int databaseWrite(sqlite3_file *self, const void *bytes, int count, sqlite3_int64 offset) {
    DatabaseFile *database = (DatabaseFile *)self;
    kept_pages_forget(database->pages);
    sqlite3_file *file = database->wrapped.file;
    return file->pMethods->xWrite(file, bytes, count, offset);
}

static int databaseShmMap(sqlite3_file *self, int part, int size, int extends, void volatile **memory) {
    DatabaseFile *database = (DatabaseFile *)self;
    sqlite3_file *file = database->wrapped.file;
    int status = file->pMethods->xShmMap(file, part, size, extends, memory);
    if (part == 0) kept_pages_share(&database->pages, status == SQLITE_OK ? *memory : NULL);
    return status;
}

static int databaseShmUnmap(sqlite3_file *self, int deletes) {
    DatabaseFile *database = (DatabaseFile *)self;
    kept_pages_share(&database->pages, NULL);
    PASS_ON(xShmUnmap(file, deletes));
}

static int databaseClose(sqlite3_file *self) {
    kept_pages_free(&((DatabaseFile *)self)->pages);
    PASS_ON(xClose(file));
}

/* Without those that map the file itself: what is mapped ends the process where the file has been cut off. */
static const sqlite3_io_methods databaseMethods = {
    .iVersion = 2,
    .xClose = databaseClose,
    .xRead = databaseRead,
    .xWrite = databaseWrite,
    PASSED_ON,
    .xShmMap = databaseShmMap,
    .xShmLock = passShmLock,
    .xShmBarrier = passShmBarrier,
    .xShmUnmap = databaseShmUnmap,
};

enum { wrapperBytes = ((sizeof(LogFile) > sizeof(DatabaseFile) ? sizeof(LogFile) : sizeof(DatabaseFile)) + 7) & ~7 };

static DatabaseFile *databaseOf(sqlite3_file *file) {
    return file != NULL && file->pMethods == &databaseMethods ? (DatabaseFile *)file : NULL;
}

static int openFile(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags, int *outFlags) {
    (void)self;
    if (!(flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)))
        return original->xOpen(original, name, file, flags, outFlags);
    int isLog = flags & SQLITE_OPEN_WAL;
    Wrapped *wrapped = (Wrapped *)file;
    memset(wrapped, 0, wrapperBytes);
    if (isLog) {
        LogFile *log = (LogFile *)file;
        log->next = log->headerEnd = -1;
        log->database = databaseOf(sqlite3_database_file_object(name));
    }
    wrapped->file = (sqlite3_file *)((char *)file + wrapperBytes);
    int status = original->xOpen(original, name, wrapped->file, flags, outFlags);
    if (wrapped->file->pMethods != NULL) wrapped->base.pMethods = isLog ? &logMethods : &databaseMethods;
    return status;
}

/* As a hook of SQLite's, called when a transaction was undone. */
static void drop(void *database) {
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK) return;
    if (file != NULL && file->pMethods == &logMethods) ((LogFile *)file)->used = 0;
}

void buffered_log_attach(struct sqlite3 *database) { sqlite3_rollback_hook(database, drop, database); }

const char *buffered_log_register(void) {
    static sqlite3_vfs vfs;
    original = sqlite3_vfs_find("unix");
    if (original == NULL) return NULL;
    vfs = *original;
    vfs.zName = "buffered-log";
    vfs.szOsFile = original->szOsFile + wrapperBytes;
    vfs.pNext = NULL;
    vfs.xOpen = openFile;
    return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK ? vfs.zName : NULL;
}

void buffered_log_keep(struct sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
}

void kept_pages_keep(struct sqlite3 *database, int keeps) {
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK) return;
    DatabaseFile *found = databaseOf(file);
    if (found != NULL) found->keeps = keeps;
}

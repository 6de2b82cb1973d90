#pragma once
#include <stdint.h>

/// What the system and the processor do with files and memory, and Glibc's module does not name.

/// Gives the blocks within a range back to the file system, which reads as zeros then; the file keeps its length.
/// 0, or -1 with errno.
int file_punch_hole(int file, int64_t offset, int64_t length);

/// Gives a file the blocks of a range beyond its end without making it longer. 0, or -1 with errno.
int file_keep_room(int file, int64_t offset, int64_t length);

struct sqlite3;

/// Makes files known to SQLite whose write-ahead log is written a transaction at a time; called once.
/// Returns the name to open them by; NULL where SQLite has no files of this system.
const char *buffered_log_register(void);

/// To be called once for each database that is opened by that name: makes what a transaction has written and not committed
/// go with it when it is undone. Takes the database's rollback hook.
void buffered_log_attach(struct sqlite3 *database);

/// Whether pages that are read from now on are kept, and what has been kept is read from memory as far as it still holds: only
/// inside a transaction that reads. For a database that is opened by that name.
void kept_pages_keep(struct sqlite3 *database, int keeps);

/// From now on closing a database leaves its log as it is, even when nobody else has it open.
void buffered_log_keep(struct sqlite3 *database);

/// Has the line of memory at an address fetched, without waiting for it; any address will do.
static inline void prefetch_line(const void *address) { __builtin_prefetch(address); }

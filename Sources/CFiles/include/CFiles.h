#pragma once
#include <stdint.h>

/// What the system and the processor do with files and memory, and Glibc's module does not name.

/// Gives the blocks within a range back to the file system, which reads as zeros then; the file keeps its length.
/// 0, or -1 with errno.
int file_punch_hole(int file, int64_t offset, int64_t length);

/// Gives a file the blocks of a range beyond its end without making it longer. 0, or -1 with errno.
int file_keep_room(int file, int64_t offset, int64_t length);

struct sqlite3;

/// Disables the checkpoint that closing a database's last connection makes (SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE).
void database_keep_log(struct sqlite3 *database);

/// Has the line of memory at an address fetched, without waiting for it; any address will do.
static inline void prefetch_line(const void *address) { __builtin_prefetch(address); }

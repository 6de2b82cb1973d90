#define _GNU_SOURCE
#include "CFiles.h"

#include <fcntl.h>
#include <sqlite3.h>

int file_punch_hole(int file, int64_t offset, int64_t length) {
    return fallocate(file, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, offset, length);
}

int file_keep_room(int file, int64_t offset, int64_t length) {
    return fallocate(file, FALLOC_FL_KEEP_SIZE, offset, length);
}

void database_keep_log(struct sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

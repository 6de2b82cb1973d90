#pragma once
#include <sqlite3.h>

/// Disables the checkpoint when the last connection to a database is closed. Swift cannot call the variadic
/// sqlite3_db_config.
static inline void database_keep_log(sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

#pragma once
#include <sqlite3.h>

/// Disables the checkpoint that closing a database's last connection makes; sqlite3_db_config is variadic, which Swift cannot call.
static inline void database_keep_log(sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

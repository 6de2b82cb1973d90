/// System calls that fail, block or kill the process on request. They replace the C library's in a program that links
/// this, also for the libraries it uses (SQLite). Until a function below is called, they behave as usual.
#ifndef FAULTY_CALLS_H
#define FAULTY_CALLS_H

enum {
    faulty_opens = 1,
    faulty_reads = 2,
    faulty_writes = 4,   // also ftruncate, rename, mkdir
    faulty_syncs = 8,
    faulty_unlinks = 16,
};

/// Makes every `interval`th call of these kinds on files below `folder` fail with `error`; an interval of 0 stops it.
void faulty_fail(const char *folder, int kinds, int error, int interval);

/// How many calls were made to fail.
long faulty_failures(void);

/// Blocks every call of these kinds on files with `part` in their path, until `faulty_release`.
void faulty_hold(const char *part, int kinds);
void faulty_release(void);

/// How many calls are blocked now.
int faulty_held(void);

// Returns once so many calls are held.
void faulty_wait_held(int count);

/// Counts writes to a write-ahead log (`cache.sqlite-wal`) that overlap with writes to a database (`cache.sqlite`),
/// across all processes that watch with the same counters file; slows each of these writes by some microseconds.
void faulty_watch(const char *counters);

/// The numbers of overlaps and of writes to the database since the counters were created.
void faulty_watched(long *overlaps, long *copies);

/// Kills the process (SIGKILL) right after its `count`th rename of a file into a folder `bodies`, having appended one
/// byte to the file `log`.
void faulty_die_after_renames(int count, const char *log);

#endif

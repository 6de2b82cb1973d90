/// System calls that fail, or end the process, on request: a program that links this has them in place of the C
/// library's, for itself and for the libraries it uses (SQLite). Until something is asked for they do what they always do.
#ifndef FAULTY_CALLS_H
#define FAULTY_CALLS_H

enum {
    faulty_opens = 1,
    faulty_reads = 2,
    faulty_writes = 4,   // also ftruncate, rename, mkdir
    faulty_syncs = 8,
    faulty_unlinks = 16,
};

/// Makes every `interval`th call of these kinds on files below `folder` fail with `error`; 0 ends it.
void faulty_fail(const char *folder, int kinds, int error, int interval);

/// How many calls were made to fail.
long faulty_failures(void);

/// Holds every call of these kinds on files whose path contains `part` until `faulty_release`.
void faulty_hold(const char *part, int kinds);
void faulty_release(void);

/// How many calls are held now.
int faulty_held(void);

/// Counts writes to a write-ahead log (`cache.sqlite-wal`) that overlap with writes to a database (`cache.sqlite`) of other
/// processes that watch with the same file; each of these writes takes some microseconds longer.
void faulty_watch(const char *counters);

/// Overlaps and writes to the database since the counters were made.
void faulty_watched(long *overlaps, long *copies);

/// Kills the process (SIGKILL) right after it has given the `count`th file a name below a folder `bodies`, and appends
/// one byte to the file `log` before.
void faulty_die_after_renames(int count, const char *log);

#endif

#define _GNU_SOURCE
#include "FaultyCalls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096];
static char log_path[4096];
static atomic_int kinds, error_number, interval, renames_left;
static atomic_long calls, failures;

// The C library's own function. It is looked up on each call: performance does not matter in these programs.
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void faulty_fail(const char *path, int which, int error, int every) {
    snprintf(folder, sizeof folder, "%s", path);
    atomic_store(&error_number, error);
    atomic_store(&kinds, every > 0 ? which : 0);
    atomic_store(&interval, every);
}

long faulty_failures(void) { return atomic_load(&failures); }

void faulty_die_after_renames(int count, const char *log) {
    snprintf(log_path, sizeof log_path, "%s", log);
    atomic_store(&renames_left, count);
}

static char held_part[256];
static atomic_int held_kinds, held;
static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hold_began = PTHREAD_COND_INITIALIZER;
static pthread_cond_t hold_ended = PTHREAD_COND_INITIALIZER;

void faulty_hold(const char *part, int which) {
    snprintf(held_part, sizeof held_part, "%s", part);
    atomic_store(&held_kinds, which);
}

void faulty_release(void) {
    pthread_mutex_lock(&hold_lock);
    atomic_store(&held_kinds, 0);
    pthread_cond_broadcast(&hold_ended);
    pthread_mutex_unlock(&hold_lock);
}

int faulty_held(void) { return atomic_load(&held); }

void faulty_wait_held(int count) {
    pthread_mutex_lock(&hold_lock);
    while (atomic_load(&held) < count) pthread_cond_wait(&hold_began, &hold_lock);
    pthread_mutex_unlock(&hold_lock);
}

static void hold(int kind, const char *path) {
    if (!(atomic_load(&held_kinds) & kind) || !strstr(path, held_part)) return;
    pthread_mutex_lock(&hold_lock);
    atomic_fetch_add(&held, 1);
    pthread_cond_broadcast(&hold_began);
    while (atomic_load(&held_kinds) & kind) pthread_cond_wait(&hold_ended, &hold_lock);
    atomic_fetch_sub(&held, 1);
    pthread_mutex_unlock(&hold_lock);
}

static struct counters { atomic_long logging, copying, overlaps, copies; } *watched;

void faulty_watch(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof *watched) != 0) _exit(9);
    watched = mmap(NULL, sizeof *watched, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (watched == MAP_FAILED) _exit(9);
}

void faulty_watched(long *overlaps, long *copies) {
    *overlaps = atomic_load(&watched->overlaps);
    *copies = atomic_load(&watched->copies);
}

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

// A write transaction writes to the WAL, a checkpoint to the database; this counts writes of one kind that overlap with
// the other.
static atomic_long *begin_watched(int file) {
    if (!watched) return NULL;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return NULL;
    path[length] = 0;
    int copies = ends_with(path, "/cache.sqlite");
    if (!copies && !ends_with(path, "/cache.sqlite-wal")) return NULL;
    atomic_long *mine = copies ? &watched->copying : &watched->logging;
    atomic_long *theirs = copies ? &watched->logging : &watched->copying;
    atomic_fetch_add(mine, 1);
    if (copies) atomic_fetch_add(&watched->copies, 1);
    // Keeps the call open while others run, so that an overlap is seen if the lock permits one.
    for (int turn = 0; turn < 64; turn++) sched_yield();
    if (atomic_load(theirs) > 0) atomic_fetch_add(&watched->overlaps, 1);
    return mine;
}

static int fails(int kind, const char *path) {
    hold(kind, path);
    if (!(atomic_load(&kinds) & kind) || strncmp(path, folder, strlen(folder)) != 0) return 0;
    if (atomic_fetch_add(&calls, 1) % atomic_load(&interval) != 0) return 0;
    atomic_fetch_add(&failures, 1);
    errno = atomic_load(&error_number);
    return 1;
}

static int fails_at(int kind, int file) {
    if (!((atomic_load(&kinds) | atomic_load(&held_kinds)) & kind)) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(kind, path);
}

#define OPEN(name)                                                   \
    int name(const char *path, int flags, ...) {                     \
        va_list rest;                                                \
        va_start(rest, flags);                                       \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                \
        return fails(faulty_opens, path) ? -1 : REAL(name)(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define AT(kind, result, name, parameters, arguments, file) \
    result name parameters { return fails_at(kind, file) ? -1 : REAL(name) arguments; }
AT(faulty_reads, ssize_t, read, (int f, void *b, size_t n), (f, b, n), f)
AT(faulty_reads, ssize_t, pread, (int f, void *b, size_t n, off_t at), (f, b, n, at), f)
AT(faulty_reads, ssize_t, pread64, (int f, void *b, size_t n, off64_t at), (f, b, n, at), f)
AT(faulty_writes, ssize_t, write, (int f, const void *b, size_t n), (f, b, n), f)
#define PWRITE(name, offset)                                          \
    ssize_t name(int f, const void *b, size_t n, offset at) {          \
        if (fails_at(faulty_writes, f)) return -1;                    \
        atomic_long *mine = begin_watched(f);                         \
        ssize_t written = REAL(name)(f, b, n, at);                    \
        if (mine) atomic_fetch_sub(mine, 1);                          \
        return written;                                               \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)
AT(faulty_writes, int, ftruncate, (int f, off_t n), (f, n), f)
AT(faulty_writes, int, ftruncate64, (int f, off64_t n), (f, n), f)
AT(faulty_syncs, int, fsync, (int f), (f), f)
AT(faulty_syncs, int, fdatasync, (int f), (f), f)

int unlink(const char *path) { return fails(faulty_unlinks, path) ? -1 : REAL(unlink)(path); }

int mkdir(const char *path, mode_t mode) { return fails(faulty_writes, path) ? -1 : REAL(mkdir)(path, mode); }

int rename(const char *from, const char *to) {
    if (fails(faulty_writes, to)) return -1;
    int status = REAL(rename)(from, to);
    if (status == 0 && strstr(to, "/bodies/") && atomic_load(&renames_left) > 0
        && atomic_fetch_sub(&renames_left, 1) == 1) {
        int log = REAL(open)(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (log >= 0) (void)!REAL(write)(log, "x", 1);
        kill(getpid(), SIGKILL);
    }
    return status;
}

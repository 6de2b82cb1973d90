#define _GNU_SOURCE
#include "FaultyCalls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096];
static char log_path[4096];
static atomic_int kinds, error_number, interval, renames_left;
static atomic_long calls, failures;

// What the C library would have run. The lookup is repeated rather than kept: nobody measures these programs.
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

static int fails(int kind, const char *path) {
    if (!(atomic_load(&kinds) & kind) || strncmp(path, folder, strlen(folder)) != 0) return 0;
    if (atomic_fetch_add(&calls, 1) % atomic_load(&interval) != 0) return 0;
    atomic_fetch_add(&failures, 1);
    errno = atomic_load(&error_number);
    return 1;
}

static int fails_at(int kind, int file) {
    if (!(atomic_load(&kinds) & kind)) return 0;
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
AT(faulty_writes, ssize_t, pwrite, (int f, const void *b, size_t n, off_t at), (f, b, n, at), f)
AT(faulty_writes, ssize_t, pwrite64, (int f, const void *b, size_t n, off64_t at), (f, b, n, at), f)
AT(faulty_writes, int, ftruncate, (int f, off_t n), (f, n), f)
AT(faulty_writes, int, ftruncate64, (int f, off64_t n), (f, n), f)
AT(faulty_syncs, int, fsync, (int f), (f), f)
AT(faulty_syncs, int, fdatasync, (int f), (f), f)

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

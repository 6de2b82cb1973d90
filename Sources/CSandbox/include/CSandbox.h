#pragma once
// What render workers need of Linux and Swift cannot call or spell: sockets that carry descriptors, memory files, spawning
// with everything else closed, and the locks a worker puts on itself (Landlock, seccomp, resource limits).
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma clang assume_nonnull begin

/// Numbers of the descriptors a worker is started with: its stderr, and its ends of the two sockets.
enum { CSANDBOX_ERRORS = 2, CSANDBOX_REQUESTS = 3, CSANDBOX_STOPS = 4 };

/// Two connected sockets that keep message boundaries (SOCK_SEQPACKET), closed on exec. 0 or -errno.
int csandbox_socket_pair(int *ends);
/// Sends one message with descriptors. 0 or -errno; never a signal.
int csandbox_send(
    int socket, const void *bytes, size_t count, const int *_Nullable descriptors, size_t descriptor_count);
/// Receives one message: its length, 0 where the other end is closed, or -errno. A message that is longer than the buffer,
/// or carries more descriptors than there is room for, is -EMSGSIZE, and its descriptors are closed.
ssize_t csandbox_receive(
    int socket, void *buffer, size_t capacity, int *_Nullable descriptors, size_t descriptor_capacity,
    size_t *_Nullable descriptor_count);
/// Who made the socket pair. 0 or -errno.
int csandbox_peer(int socket, pid_t *process, uid_t *user);

/// A file in memory without a name, closed on exec. A descriptor or -errno.
int csandbox_memory_file(const char *name);
/// Fixes a memory file's length and content for good. 0 or -errno.
int csandbox_seal(int file);
/// Fixes a memory file's length for good. 0 or -errno.
int csandbox_fix_length(int file);
/// A counter to wake a poll with. A descriptor or -errno.
int csandbox_wakeup(void);

/// Starts a program with three descriptors (`CSANDBOX_…`), /dev/null as stdin and stdout, every other one closed, no
/// signal blocked or ignored, and no environment but the given one. 0 or an error number.
int csandbox_spawn(
    const char *path, char *_Nullable const *_Nonnull arguments, char *_Nullable const *_Nonnull environment,
    int requests, int stops, int errors, pid_t *child);
/// Sets a child's soft limits: CPU seconds of its whole life, and bytes of any file it writes. 0 or -errno.
int csandbox_limit_child(pid_t child, uint64_t cpu_seconds, uint64_t file_bytes);
/// CPU seconds a process has used, all threads; negative where there is no such process.
double csandbox_cpu_seconds(pid_t process);

/// What a worker locks itself down with.
typedef struct CSandboxLocks {
    /// Bytes the address space may still grow.
    uint64_t memory;
    /// Bytes of any file it writes.
    uint64_t file_bytes;
} CSandboxLocks;

/// What is in force after `csandbox_lock`.
typedef struct CSandboxReport {
    int resource_limits;
    int no_new_privileges;
    int no_capabilities;
    int not_dumpable;
    int dies_with_parent;
    /// Landlock's version; 0 without it.
    int landlock;
    int seccomp;
    /// Threads there were; Landlock holds for one only.
    int threads;
} CSandboxReport;

/// Locks the calling process down, for good. What the kernel lacks is left out, and the report says so.
void csandbox_lock(const CSandboxLocks *locks, CSandboxReport *report);

/// Attempts of what a locked worker must not do, for the self-check: each gives 0 where it succeeded, else an error number.
int csandbox_attempt_open(const char *path);
int csandbox_attempt_socket(void);
int csandbox_attempt_fork(void);
int csandbox_attempt_signal(pid_t process);
int csandbox_attempt_limits(void);
int csandbox_attempt_execute(const char *path);

#pragma clang assume_nonnull end

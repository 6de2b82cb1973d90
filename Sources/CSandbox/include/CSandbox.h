#pragma once
// Functions that confine files and render workers and that cannot be written in Swift: sockets that pass descriptors,
// memory files, spawning with all other descriptors closed, the restrictions that a worker applies to itself (Landlock,
// seccomp, resource limits), and opening files below a folder.
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma clang assume_nonnull begin

/// The numbers of the descriptors that a worker is started with: its stderr, and its ends of the two sockets.
enum { CSANDBOX_ERRORS = 2, CSANDBOX_REQUESTS = 3, CSANDBOX_STOPS = 4 };

/// Creates two connected sockets that preserve message boundaries (SOCK_SEQPACKET) and are close-on-exec. Returns 0 or
/// -errno.
int csandbox_socket_pair(int *ends);
/// Sends one message with descriptors. Never blocks or raises SIGPIPE. Returns 0 or -errno.
int csandbox_send(
    int socket, const void *bytes, size_t count, const int *_Nullable descriptors, size_t descriptor_count);
/// Receives one message. Returns its length, 0 if the other end is closed, or -errno. If the message is longer than the
/// buffer or has too many descriptors, returns -EMSGSIZE and closes the descriptors.
ssize_t csandbox_receive(
    int socket, void *buffer, size_t capacity, int *_Nullable descriptors, size_t descriptor_capacity,
    size_t *_Nullable descriptor_count);
/// Gets the process and user that created the socket pair. Returns 0 or -errno.
int csandbox_peer(int socket, pid_t *process, uid_t *user);

/// Creates an anonymous file in memory that is close-on-exec. Returns a descriptor or -errno.
int csandbox_memory_file(const char *name);
/// Seals a memory file's length and content permanently. Returns 0 or -errno.
int csandbox_seal(int file);
/// Seals a memory file's length permanently. Returns 0 or -errno.
int csandbox_fix_length(int file);
/// Creates an eventfd that wakes a poll. Returns a descriptor or -errno.
int csandbox_wakeup(void);

/// Starts a program with three descriptors (`CSANDBOX_…`), and with `null` as stdin and stdout. All other descriptors
/// are closed, no signal is blocked or ignored, and the environment contains only the given variables. Returns 0 or an
/// error number.
int csandbox_spawn(
    const char *path, char *_Nullable const *_Nonnull arguments, char *_Nullable const *_Nonnull environment,
    int null, int requests, int stops, int errors, pid_t *child);
/// Sets a child's soft limits: CPU seconds over its complete life, and the maximum size in bytes of files that it
/// writes. Returns 0 or -errno.
int csandbox_limit_child(pid_t child, uint64_t cpu_seconds, uint64_t file_bytes);
/// Returns the CPU seconds that all threads of a process have used, or a negative number if the process does not exist.
double csandbox_cpu_seconds(pid_t process);

/// The limits for the sandbox of a worker.
typedef struct CSandboxLocks {
    /// The number of bytes by which the address space may still grow.
    uint64_t memory;
    /// The maximum size in bytes of any file that the worker writes.
    uint64_t file_bytes;
    /// The result of `csandbox_open_fonts`, or 0 if no file may be opened.
    uint64_t fonts;
} CSandboxLocks;

/// The restrictions in force after `csandbox_lock`.
typedef struct CSandboxReport {
    int resource_limits;
    int no_new_privileges;
    int no_capabilities;
    int not_dumpable;
    int dies_with_parent;
    /// The Landlock version, or 0 if Landlock is not in force.
    int landlock;
    int seccomp;
    /// The number of threads at the time of the call. Landlock covers only one of them.
    int threads;
} CSandboxReport;

/// Applies the sandbox to the calling process permanently. Skips restrictions that the kernel does not support. The
/// report contains the restrictions in force.
void csandbox_lock(const CSandboxLocks *locks, CSandboxReport *report);

/// Opens the machine's fonts, which a sandboxed worker can then open again by name. Returns the number of fonts.
size_t csandbox_open_fonts(void);
/// Installs the signal handler that returns descriptors of fonts. Returns 0 on failure.
int csandbox_answer_opening(void);

/// Opens `path` for reading, relative to a folder and without leaving the folder (openat2, Linux 5.6). Does not wait
/// for the writer of a FIFO. Symbolic links are refused unless `links` is set. In that case, they may lead only to
/// files below the folder. Returns a descriptor or -errno: -EXDEV if the path leaves the folder, and -ELOOP for a link.
int csandbox_open_below(int folder, const char *path, int flags, int links);

/// Attempts operations that a sandboxed worker must not perform, for the self-check. Each function returns 0 on
/// success, and an error number otherwise.
int csandbox_attempt_open(const char *path);
int csandbox_attempt_socket(void);
int csandbox_attempt_fork(void);
int csandbox_attempt_signal(pid_t process);
int csandbox_attempt_limits(void);
int csandbox_attempt_execute(const char *path);

#pragma clang assume_nonnull end

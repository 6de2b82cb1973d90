#pragma once
// What confines files and render workers, and Swift cannot call or express: sockets that pass descriptors, memory files,
// spawning with everything else closed, the locks a worker puts on itself (Landlock, seccomp, resource limits), and opening
// files below a folder.
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma clang assume_nonnull begin

/// Numbers of the descriptors a worker is started with: its stderr, and its ends of the two sockets.
enum { CSANDBOX_ERRORS = 2, CSANDBOX_REQUESTS = 3, CSANDBOX_STOPS = 4 };

/// Makes two connected sockets that preserve message boundaries (SOCK_SEQPACKET), close-on-exec. Returns 0 or -errno.
int csandbox_socket_pair(int *ends);
/// Sends one message with descriptors, without blocking or SIGPIPE. Returns 0 or -errno.
int csandbox_send(
    int socket, const void *bytes, size_t count, const int *_Nullable descriptors, size_t descriptor_count);
/// Receives one message. Returns its length, 0 if the other end is closed, or -errno. If the message is longer than the
/// buffer or carries more descriptors than there is room for, returns -EMSGSIZE and closes its descriptors.
ssize_t csandbox_receive(
    int socket, void *buffer, size_t capacity, int *_Nullable descriptors, size_t descriptor_capacity,
    size_t *_Nullable descriptor_count);
/// The process and user that made the socket pair. Returns 0 or -errno.
int csandbox_peer(int socket, pid_t *process, uid_t *user);

/// Makes an anonymous file in memory, close-on-exec. Returns a descriptor or -errno.
int csandbox_memory_file(const char *name);
/// Seals a memory file's length and content permanently. Returns 0 or -errno.
int csandbox_seal(int file);
/// Seals a memory file's length permanently. Returns 0 or -errno.
int csandbox_fix_length(int file);
/// Makes an eventfd that wakes a poll. Returns a descriptor or -errno.
int csandbox_wakeup(void);

/// Starts a program with three descriptors (`CSANDBOX_…`), `null` as stdin and stdout, every other descriptor
/// closed, no signal blocked or ignored, and no environment but the given one. Returns 0 or an error number.
int csandbox_spawn(
    const char *path, char *_Nullable const *_Nonnull arguments, char *_Nullable const *_Nonnull environment,
    int null, int requests, int stops, int errors, pid_t *child);
/// Sets a child's soft limits: CPU seconds over its whole life, and bytes of any file it writes. Returns 0 or -errno.
int csandbox_limit_child(pid_t child, uint64_t cpu_seconds, uint64_t file_bytes);
/// CPU seconds that all threads of a process have used; negative if there is no such process.
double csandbox_cpu_seconds(pid_t process);

/// The limits that a worker locks itself down with.
typedef struct CSandboxLocks {
    /// Bytes by which the address space may still grow.
    uint64_t memory;
    /// The largest size in bytes of any file it writes.
    uint64_t file_bytes;
    /// What `csandbox_open_fonts` returned; 0 if no file may be opened.
    uint64_t fonts;
} CSandboxLocks;

/// What is in force after `csandbox_lock`.
typedef struct CSandboxReport {
    int resource_limits;
    int no_new_privileges;
    int no_capabilities;
    int not_dumpable;
    int dies_with_parent;
    /// The Landlock version; 0 if Landlock is not in force.
    int landlock;
    int seccomp;
    /// Threads that existed at the time; Landlock covers only one of them.
    int threads;
} CSandboxReport;

/// Locks the calling process down permanently. Locks that the kernel lacks are skipped, and the report says so.
void csandbox_lock(const CSandboxLocks *locks, CSandboxReport *report);

/// Opens the machine's fonts, which a locked worker can then open again by their names. Returns their number.
size_t csandbox_open_fonts(void);
/// Installs what hands them out. Returns 0 if that fails.
int csandbox_answer_opening(void);

/// Opens `path`, relative to a folder and without leaving it, for reading and without waiting for a FIFO's writer (openat2,
/// Linux 5.6). Symbolic links are refused unless `links` is set: then they may lead to what is below the folder, too.
/// Returns a descriptor or -errno: -EXDEV for what leads out, -ELOOP for a link.
int csandbox_open_below(int folder, const char *path, int flags, int links);

/// Attempts at what a locked worker must not do, for the self-check. Each returns 0 on success, else an error number.
int csandbox_attempt_open(const char *path);
int csandbox_attempt_socket(void);
int csandbox_attempt_fork(void);
int csandbox_attempt_signal(pid_t process);
int csandbox_attempt_limits(void);
int csandbox_attempt_execute(const char *path);

#pragma clang assume_nonnull end

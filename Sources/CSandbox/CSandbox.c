// Descriptors, sockets and spawning, for the front process and its workers. The sandbox restrictions are in Locks.c.
#include "CSandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MOST_DESCRIPTORS = 64 };

/// Moves a descriptor to a number that `csandbox_spawn` never assigns, so that no dup2 there overwrites another source.
static int moved_up(int descriptor) {
    if (descriptor < 0) return -errno;
    int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 10);
    int result = moved < 0 ? -errno : moved;
    close(descriptor);
    return result;
}

int csandbox_socket_pair(int *ends) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return -errno;
    ends[0] = moved_up(pair[0]);
    ends[1] = moved_up(pair[1]);
    if (ends[0] >= 0 && ends[1] >= 0) return 0;
    int failure = ends[0] < 0 ? ends[0] : ends[1];
    if (ends[0] >= 0) close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
    return failure;
}

int csandbox_send(int socket, const void *bytes, size_t count, const int *descriptors, size_t descriptor_count) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * MOST_DESCRIPTORS)];
    } control;
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor_count > MOST_DESCRIPTORS) return -EMSGSIZE;
    if (descriptor_count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptor_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * descriptor_count);
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * descriptor_count);
    }
    // Never block, because a worker that does not read must not delay the thread that monitors its deadline.
    ssize_t sent;
    do sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) return -errno;
    return (size_t)sent == count ? 0 : -EIO;
}

ssize_t csandbox_receive(
    int socket, void *buffer, size_t capacity, int *descriptors, size_t descriptor_capacity, size_t *descriptor_count) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * MOST_DESCRIPTORS)];
    } control;
    struct iovec part = {.iov_base = buffer, .iov_len = capacity};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    // If there is no room for descriptors, the kernel discards any descriptors that were sent.
    if (descriptor_capacity == 0) {
        message.msg_control = NULL;
        message.msg_controllen = 0;
    }
    ssize_t received;
    do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    if (received < 0) return -errno;
    size_t count = 0;
    int is_cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t held = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < held; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
            if (count < descriptor_capacity) {
                descriptors[count++] = descriptor;
            } else {
                close(descriptor);
                is_cut = 1;
            }
        }
    }
    if (is_cut) {
        while (count > 0) close(descriptors[--count]);
        received = -EMSGSIZE;
    }
    if (descriptor_count) *descriptor_count = count;
    return received;
}

int csandbox_peer(int socket, pid_t *process, uid_t *user) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    int type = 0;
    socklen_t type_length = sizeof type;
    if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &type_length) != 0) return -errno;
    if (type != SOCK_SEQPACKET) return -EPROTOTYPE;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -errno;
    *process = peer.pid;
    *user = peer.uid;
    return 0;
}

int csandbox_memory_file(const char *name) {
    // The file is not executable if the kernel supports that (0x8 is MFD_NOEXEC_SEAL, Linux 6.3).
    int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | 0x8U);
    if (file < 0 && errno == EINVAL) file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return moved_up(file);
}

int csandbox_seal(int file) {
    return fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0 ? 0 : -errno;
}

int csandbox_fix_length(int file) {
    return fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0 ? 0 : -errno;
}

int csandbox_wakeup(void) {
    int counter = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return counter < 0 ? -errno : counter;
}

int csandbox_spawn(
    const char *path, char *const *arguments, char *const *environment, int null, int requests, int stops, int errors,
    pid_t *child) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure) return failure;
    failure = posix_spawnattr_init(&attributes);
    if (failure) {
        posix_spawn_file_actions_destroy(&actions);
        return failure;
    }
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    // This comes first, because the number of `null` may be one that is assigned below.
    if (!failure) failure = posix_spawn_file_actions_adddup2(&actions, null, 0);
    if (!failure) failure = posix_spawn_file_actions_adddup2(&actions, 0, 1);
    if (!failure) failure = posix_spawn_file_actions_adddup2(&actions, errors, CSANDBOX_ERRORS);
    if (!failure) failure = posix_spawn_file_actions_adddup2(&actions, requests, CSANDBOX_REQUESTS);
    if (!failure) failure = posix_spawn_file_actions_adddup2(&actions, stops, CSANDBOX_STOPS);
    if (!failure) failure = posix_spawn_file_actions_addclosefrom_np(&actions, CSANDBOX_STOPS + 1);
    if (!failure) failure = posix_spawn(child, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

/// Leaves the hard limit unchanged, so that an unprivileged front process can raise the soft limit again.
static int limit_soft(pid_t child, int resource, uint64_t value) {
    struct rlimit limit;
    if (prlimit(child, resource, NULL, &limit) != 0) return -errno;
    limit.rlim_cur = value < limit.rlim_max ? value : limit.rlim_max;
    return prlimit(child, resource, &limit, NULL) == 0 ? 0 : -errno;
}

int csandbox_limit_child(pid_t child, uint64_t cpu_seconds, uint64_t file_bytes) {
    int failure = limit_soft(child, RLIMIT_CPU, cpu_seconds);
    return failure ? failure : limit_soft(child, RLIMIT_FSIZE, file_bytes);
}

double csandbox_cpu_seconds(pid_t process) {
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return -1;
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

int csandbox_open_below(int folder, const char *path, int flags, int links) {
    struct open_how how = {
        .flags = (uint64_t)(flags | O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (links ? 0 : RESOLVE_NO_SYMLINKS),
    };
    long opened;
    // If a file is renamed at the same time, the kernel reports an error, because the path might then lead out of the
    // folder.
    int attempts = 0;
    do opened = syscall(SYS_openat2, folder, path, &how, sizeof how);
    while (opened < 0 && (errno == EINTR || (errno == EAGAIN && ++attempts < 64)));
    return opened < 0 ? -errno : (int)opened;
}

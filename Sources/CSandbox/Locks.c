// The restrictions that a render worker applies to itself before it receives the first byte of a picture.
//
// Landlock: https://docs.kernel.org/userspace-api/landlock.html. The calls are made by number, because Debian 12's
// glibc has no wrappers. seccomp: https://docs.kernel.org/userspace-api/seccomp_filter.html.
#include "CSandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

// MARK: Resource limits

static int set_limit(int resource, uint64_t soft, int lowers_hard) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) return 0;
    if (soft < limit.rlim_max) limit.rlim_cur = soft; else limit.rlim_cur = limit.rlim_max;
    if (lowers_hard) limit.rlim_max = limit.rlim_cur;
    return setrlimit(resource, &limit) == 0;
}

/// Returns the size of the used address space in bytes.
static uint64_t address_space(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return 0;
    if (fscanf(file, "%lu", &pages) != 1) pages = 0;
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int set_limits(const CSandboxLocks *locks) {
    uint64_t used = address_space();
    int is_set = used > 0 && set_limit(RLIMIT_AS, used + locks->memory, 1);
    // Set only the soft limit, because the front process adjusts the limits of a running worker for each render.
    is_set &= set_limit(RLIMIT_FSIZE, locks->file_bytes, 0);
    is_set &= set_limit(RLIMIT_NOFILE, 96 + locks->fonts, 1);
    is_set &= set_limit(RLIMIT_CORE, 0, 1);
    return is_set;
}

// MARK: Privileges

struct capability_header {
    uint32_t version;
    int process;
};
struct capability_data {
    uint32_t effective, permitted, inheritable;
};

static int drop_capabilities(void) {
    struct capability_header header = {0x20080522U, 0};
    struct capability_data none[2];
    memset(none, 0, sizeof none);
    return syscall(SYS_capset, &header, none) == 0;
}

/// Makes the kernel kill this worker instead of the front process when memory runs out.
static void volunteer_for_oom(void) {
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t ignored = write(file, "1000", 4);
    (void)ignored;
    close(file);
}

static int count_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return 0;
    int count = 0;
    struct dirent *entry;
    while ((entry = readdir(tasks))) count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

// MARK: Landlock

struct landlock_rules {
    uint64_t files, network, scopes;
};

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

/// Forbids opening, creating or changing files by name, binding or connecting TCP ports, and sending signals to other
/// processes, as far as the kernel's version supports it. Returns the Landlock version in force, or 0 if Landlock is
/// not available.
static int lock_files(void) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
    if (version < 1) return 0;
    // Handle all rights and grant none. Version 1 has 13 rights, and later versions add refer (2), truncate (3), ports
    // (4) and device ioctls (5).
    struct landlock_rules rules = {0, 0, 0};
    rules.files = version >= 5 ? 0xFFFF : version >= 3 ? 0x7FFF : version == 2 ? 0x3FFF : 0x1FFF;
    size_t size = sizeof(uint64_t);
    if (version >= 4) {
        rules.network = 3;
        size = 2 * sizeof(uint64_t);
    }
    if (version >= 6) {
        rules.scopes = 3;
        size = sizeof rules;
    }
    long set = syscall(SYS_landlock_create_ruleset, &rules, size, 0);
    if (set < 0) return 0;
    long status = syscall(SYS_landlock_restrict_self, (int)set, 0);
    close((int)set);
    return status == 0 ? (int)version : 0;
}

// MARK: seccomp

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
// Arguments have 64 bits. Both architectures are little-endian, so the low half comes first.
#define LOAD_ARGUMENT(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (n)))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)

/// System calls that are allowed with any arguments: memory, threads, clocks, and reading and writing open descriptors.
static const int allowed[] = {
    SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_lseek, SYS_close, SYS_fstat,
    SYS_ftruncate,
    SYS_recvmsg, SYS_sendmsg, SYS_ppoll,
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk, SYS_membarrier,
    SYS_futex, SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address, SYS_rseq,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall,
    SYS_gettid, SYS_getpid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
    SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_getattr, SYS_getcpu,
    SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_getrandom,
    SYS_getrusage, SYS_sysinfo, SYS_uname, SYS_exit, SYS_exit_group,
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_time
    SYS_time,
#endif
};

/// System calls that decoding never needs. A worker that makes one of these calls has been compromised.
static const int fatal[] = {
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_bpf, SYS_mount, SYS_setns,
    SYS_unshare, SYS_keyctl, SYS_init_module, SYS_finit_module, SYS_kexec_load,
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
#endif
#ifdef SYS_userfaultfd
    SYS_userfaultfd,
#endif
#ifdef SYS_fork
    SYS_fork, SYS_vfork,
#endif
};

enum { MOST_INSTRUCTIONS = 256 };

struct program {
    struct sock_filter code[MOST_INSTRUCTIONS];
    unsigned short length;
};

static void add(struct program *program, struct sock_filter instruction) {
    if (program->length < MOST_INSTRUCTIONS) program->code[program->length++] = instruction;
}

/// Starts the rule for one system call. The next `count` instructions decide about this call, and other calls skip
/// them.
static void begin(struct program *program, int call, unsigned char count) {
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, count));
}

static int lock_calls(int opens_fonts) {
#ifndef OWN_ARCHITECTURE
    return 0;
#else
    struct program program = {.length = 0};
    add(&program, (struct sock_filter)LOAD(arch));
    add(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0));
    add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS));
    add(&program, (struct sock_filter)LOAD(nr));
#ifdef __x86_64__
    // System calls of the x32 interface have the same architecture value and are marked by bit 30.
    add(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000U, 0, 1));
    add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS));
#endif
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        begin(&program, allowed[i], 1);
        add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
    }
    if (opens_fonts) {
        static const int named[] = {
            SYS_openat, SYS_faccessat,
#ifdef SYS_access
            SYS_access,
#endif
        };
        for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
            begin(&program, named[i], 1);
            add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_TRAP));
        }
        begin(&program, SYS_dup, 1);
        add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
    }
    // fstatat is allowed for a descriptor (AT_EMPTY_PATH), but not for a name.
    begin(&program, SYS_newfstatat, 4);
    add(&program, (struct sock_filter)LOAD_ARGUMENT(3));
    add(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH, 0, 1));
    add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
    add(&program, (struct sock_filter)ANSWER(REFUSED));
    // clone may create threads but not processes. clone3 stores its flags in memory, where a filter cannot see them. It
    // therefore fails with ENOSYS, and glibc falls back to clone.
    begin(&program, SYS_clone, 5);
    add(&program, (struct sock_filter)LOAD_ARGUMENT(0));
    add(&program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, CLONE_VM | CLONE_THREAD | CLONE_NEWUSER));
    add(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLONE_VM | CLONE_THREAD, 0, 1));
    add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
    add(&program, (struct sock_filter)ANSWER(REFUSED));
#ifdef SYS_clone3
    begin(&program, SYS_clone3, 1);
    add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | ENOSYS));
#endif
    // Threads of libraries may set their own names.
    begin(&program, SYS_prctl, 4);
    add(&program, (struct sock_filter)LOAD_ARGUMENT(0));
    add(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_NAME, 0, 1));
    add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
    add(&program, (struct sock_filter)ANSWER(REFUSED));
    // abort() sends a signal to its own process.
    begin(&program, SYS_tgkill, 4);
    add(&program, (struct sock_filter)LOAD_ARGUMENT(0));
    add(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 0, 1));
    add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
    add(&program, (struct sock_filter)ANSWER(REFUSED));
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        begin(&program, fatal[i], 1);
        add(&program, (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS));
    }
    if (program.length == MOST_INSTRUCTIONS) return 0;
    add(&program, (struct sock_filter)ANSWER(REFUSED));
    struct sock_fprog filter = {.len = program.length, .filter = program.code};
    // SECCOMP_FILTER_FLAG_SPEC_ALLOW is not set. On kernels that restrict branch speculation across processes under
    // seccomp, this prevents a compromised worker from influencing the speculation of the front process.
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
#endif
}

void csandbox_lock(const CSandboxLocks *locks, CSandboxReport *report) {
    memset(report, 0, sizeof *report);
    report->threads = count_threads();
    // This name is shown by `top` and `ps -C`, and is the only name that remains after the process has exited.
    prctl(PR_SET_NAME, "render-worker", 0, 0, 0);
    volunteer_for_oom();
    report->resource_limits = set_limits(locks);
    report->dies_with_parent = prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0;
    report->no_capabilities = drop_capabilities();
    report->not_dumpable = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
    report->no_new_privileges = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    // If no_new_privs is not set, the kernel denies both of these to an unprivileged process.
    report->landlock = lock_files();
    report->seccomp = lock_calls(locks->fonts > 0 && csandbox_answer_opening());
}

// MARK: Attempts

int csandbox_attempt_open(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno;
    close(file);
    return 0;
}

int csandbox_attempt_socket(void) {
    int end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (end < 0) return errno;
    close(end);
    return 0;
}

int csandbox_attempt_fork(void) {
    // fork() in glibc is clone without CLONE_VM, that is, the same system call that creates threads.
    pid_t child = fork();
    if (child < 0) return errno;
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}

int csandbox_attempt_signal(pid_t process) { return kill(process, 0) == 0 ? 0 : errno; }

int csandbox_attempt_limits(void) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0 ? 0 : errno;
}

int csandbox_attempt_execute(const char *path) {
    char *const arguments[] = {(char *)path, NULL};
    char *const environment[] = {NULL};
    execve(path, arguments, environment);
    return errno;
}

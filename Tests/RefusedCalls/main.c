// Runs a program for which some system calls fail with EPERM, as under an old container runtime:
// `refused-calls CALL[,CALL] PROGRAM [ARGUMENT ...]`, with `clone3` and `memfd_create` for calls.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail(const char *what) {
    fprintf(stderr, "refused-calls: %s: %s\n", what, strerror(errno));
    return 125;
}

int main(int count, char **words) {
    if (count < 3) return fail("usage: refused-calls CALL[,CALL] PROGRAM [ARGUMENT ...]");
    struct sock_filter code[8] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short length = 1;
    for (char *name = strtok(words[1], ","); name; name = strtok(NULL, ",")) {
        int call = strcmp(name, "clone3") == 0 ? SYS_clone3 : strcmp(name, "memfd_create") == 0 ? SYS_memfd_create : -1;
        if (call < 0 || length > 5) return fail("no such call");
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {.len = length, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail("no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return fail("seccomp");
    execv(words[2], words + 2);
    return fail(words[2]);
}

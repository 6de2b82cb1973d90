// The machine's fonts, for a worker that draws text. The files are opened before the sandbox is applied, and can be
// opened again by name afterwards.
//
// Libraries open a font's file when they draw with the font. seccomp denies that system call and sends a signal instead
// (SECCOMP_RET_TRAP). If the path names a font, the signal handler returns a descriptor of its file.
#include "CSandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/// The maximum number of fonts. It leaves room for the worker's other descriptors within the usual limit of 1,024.
enum { MOST_FONTS = 800 };

static struct font {
    char *path;
    int file;
} fonts[MOST_FONTS];
static size_t font_count;

/// Fontconfig's list of fonts (fontconfig.h).
struct font_set {
    int count, capacity;
    void **patterns;
};

size_t csandbox_open_fonts(void) {
    // librsvg has already loaded this library. The handle is never closed.
    void *library = dlopen("libfontconfig.so.1", RTLD_NOW);
    if (!library) return 0;
    int (*init)(void) = (int (*)(void))dlsym(library, "FcInit");
    struct font_set *(*list)(void *, int) = (struct font_set *(*)(void *, int))dlsym(library, "FcConfigGetFonts");
    int (*get)(void *, const char *, int, unsigned char **) =
        (int (*)(void *, const char *, int, unsigned char **))dlsym(library, "FcPatternGetString");
    if (!init || !list || !get || !init()) return 0;
    struct font_set *set = list(NULL, 0);
    for (int i = 0; set && i < set->count && font_count < MOST_FONTS; i++) {
        unsigned char *path;
        if (get(set->patterns[i], "file", 0, &path) != 0) continue;
        // The faces of a font collection are in one file.
        size_t known = 0;
        while (known < font_count && strcmp(fonts[known].path, (char *)path) != 0) known++;
        if (known < font_count) continue;
        int file = open((char *)path, O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        char *copy = strdup((char *)path);
        if (!copy) break;
        fonts[font_count++] = (struct font){copy, file};
    }
    return font_count;
}

/// Handles a denied call that opens a file by name or checks access to it. Returns a font's descriptor, or EPERM for
/// other files.
static void answer(int signal, siginfo_t *info, void *context) {
    (void)signal;
    ucontext_t *state = context;
#if defined(__x86_64__)
    const char *path = (const char *)state->uc_mcontext.gregs[REG_RSI];
    long long *result = &state->uc_mcontext.gregs[REG_RAX];
    long flags = (long)state->uc_mcontext.gregs[REG_RDX];
    int is_look = info->si_syscall == SYS_access || info->si_syscall == SYS_faccessat;
    if (info->si_syscall == SYS_access) path = (const char *)state->uc_mcontext.gregs[REG_RDI];
#elif defined(__aarch64__)
    const char *path = (const char *)state->uc_mcontext.regs[1];
    unsigned long long *result = &state->uc_mcontext.regs[0];
    long flags = (long)state->uc_mcontext.regs[2];
    int is_look = info->si_syscall == SYS_faccessat;
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    int kept = errno;
    int file = -EPERM;
    int may = is_look ? 1 : info->si_syscall == SYS_openat && (flags & O_ACCMODE) == O_RDONLY;
    for (size_t i = 0; may && i < font_count; i++) {
        if (strcmp(fonts[i].path, path) != 0) continue;
        file = is_look ? 0 : dup(fonts[i].file);
        if (file < 0) file = -errno;
        break;
    }
    errno = kept;
    *result = file;
#else
    (void)info;
    (void)state;
#endif
}

int csandbox_answer_opening(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    return sigaction(SIGSYS, &action, NULL) == 0;
}

#define _GNU_SOURCE  // dladdr
#include "CVips.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CVipsTable cvips;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char failure[512];
static atomic_int loaded;

/// Discards warnings of decoders ("error in tile", "invalid SOS parameters"). Failures are reported as errors.
static void ignore_warning(const char *domain, int level, const char *message, void *user) {
    (void)domain;
    (void)level;
    (void)message;
    (void)user;
}

/// The library file, or NULL to use the file that the loader finds.
static _Atomic(const char *) chosen;

void cvips_choose(const char *path) { atomic_store(&chosen, strdup(path)); }

static void load(void) {
    const char *sonames[] = {"libvips.so.42", "libgobject-2.0.so.0", "libglib-2.0.so.0"};
    const char *path = atomic_load(&chosen);
    if (!path) path = getenv("IMAGE_PIPELINE_LIBVIPS");
    // The chosen file must contain all three libraries, or depend on the other two, because a symbol lookup also
    // searches dependencies.
    if (path) sonames[0] = sonames[1] = sonames[2] = path;
    void *libraries[3];
    for (int i = 0; i < 3; i++) {
        // Lazy binding resolves functions that libraries call in each other on the first call, which saves a tenth of a
        // worker's start time. Resolving opens no files, so it also works in a sandboxed worker.
        libraries[i] = dlopen(sonames[i], RTLD_LAZY | RTLD_LOCAL);
        if (!libraries[i]) {
            const char *reason = dlerror();
            if (path)
                snprintf(failure, sizeof failure, "libvips cannot be loaded (%s); the setting `libvips` names its file",
                         reason ? reason : path);
            else snprintf(failure, sizeof failure, "libvips cannot be loaded (%s); install the package libvips42 (Debian 12) or libvips42t64 (Debian 13)",
                     reason ? reason : sonames[i]);
            return;
        }
    }
    const char *missing = NULL;
#define CVIPS_FIND(result, name, parameters) \
    { \
        void *symbol = dlsym(libraries[0], #name); \
        if (!symbol) symbol = dlsym(libraries[1], #name); \
        if (!symbol) symbol = dlsym(libraries[2], #name); \
        if (!symbol && !missing) missing = #name; \
        *(void **)&cvips.name = symbol; \
    }
    CVIPS_FUNCTIONS(CVIPS_FIND)
#undef CVIPS_FIND
    if (missing) {
        snprintf(failure, sizeof failure, "libvips lacks %s because it is too old; install libvips42 (Debian 12) or libvips42t64 (Debian 13)", missing);
        return;
    }
    if (cvips.vips_init("image-pipeline") != 0) {
        snprintf(failure, sizeof failure, "libvips failed to initialise; reinstall the package libvips42");
        return;
    }
    cvips.g_log_set_handler("VIPS", CVIPS_LOG_WARNING, ignore_warning, NULL);
    // Use one thread per render, because renders run in parallel, and no operation cache, because every picture is new.
    cvips.vips_concurrency_set(1);
    cvips.vips_cache_set_max(0);
    atomic_store(&loaded, 1);
}

const char *cvips_load(void) {
    pthread_once(&once, load);
    return atomic_load(&loaded) ? NULL : failure;
}

int cvips_load_module(const char *name) {
    // libvips stores its modules next to itself, in a folder that is named after its version.
    Dl_info library;
    if (!atomic_load(&loaded) || !dladdr(*(void **)&cvips.vips_init, &library) || !library.dli_fname) return 0;
    // The name that the library was loaded by may be a link in a different folder.
    char *file = realpath(library.dli_fname, NULL);
    if (!file) return 0;
    char path[1024];
    int length = snprintf(path, sizeof path, "%.*s/vips-modules-%d.%d/vips-%s.so", (int)(strrchr(file, '/') - file), file,
                          cvips.vips_version(0), cvips.vips_version(1), name);
    free(file);
    if (length < 0 || (size_t)length >= sizeof path) return 0;
    void *loader = dlopen("libgmodule-2.0.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!loader) return 0;
    void *(*open_module)(const char *, int) = NULL;
    *(void **)&open_module = dlsym(loader, "g_module_open");
    // Bind immediately, because a module that lacks a symbol must not be loaded, and lazy binding saves no time here.
    return open_module && open_module(path, 0) != NULL;
}

int cvips_heif(CVipsHEIF *heif) {
    // From heif.h: the structure in which functions return their errors, and the numbers of two compression formats.
    typedef struct {
        int code, subcode;
        const char *message;
    } Error;
    enum { HEVC = 1, AV1 = 4 };
    void *library = dlopen("libheif.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library) return 0;
    Error (*init)(void *) = NULL;
    const char *(*version)(void) = NULL;
    int (*encodes)(int) = NULL, (*decodes)(int) = NULL;
    *(void **)&init = dlsym(library, "heif_init");
    *(void **)&version = dlsym(library, "heif_get_version");
    *(void **)&encodes = dlsym(library, "heif_have_encoder_for_format");
    *(void **)&decodes = dlsym(library, "heif_have_decoder_for_format");
    // The handle stays open because the library is used until the process ends.
    if (init) init(NULL);
    heif->version = version ? version() : NULL;
    heif->writes_av1 = encodes && encodes(AV1);
    heif->reads_av1 = decodes && decodes(AV1);
    heif->reads_hevc = decodes && decodes(HEVC);
    return 1;
}

struct visit {
    void (*function)(const char *, void *);
    void *user;
};

static int visit_library(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    const struct visit *visit = data;
    visit->function(info->dlpi_name, visit->user);
    return 0;
}

void cvips_each_library(void (*function)(const char *path, void *user), void *user) {
    struct visit visit = {function, user};
    dl_iterate_phdr(visit_library, &visit);
}

const void *cvips_region_fetched(
    VipsRegion *region, int left, int top, int width, int height, size_t pixel_bytes, size_t *line_bytes) {
    const CVipsRect part = {left, top, width, height};
    if (cvips.vips_region_prepare(region, &part) != 0) return NULL;
    const CVipsRegion *now = (const CVipsRegion *)region;
    *line_bytes = (size_t)now->line_bytes;
    return now->data + (size_t)(top - now->valid.top) * *line_bytes + (size_t)(left - now->valid.left) * pixel_bytes;
}

VipsTargetCustom *cvips_target(CVipsWriter write, void *user) {
    VipsTargetCustom *target = cvips.vips_target_custom_new();
    if (target) cvips.g_signal_connect_data(target, "write", (CVipsCallback)write, user, NULL, 0);
    return target;
}

void cvips_leave_thread(void) {
    if (atomic_load(&loaded)) cvips.vips_thread_shutdown();
}

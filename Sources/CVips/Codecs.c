#include "CVips.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/// Returns the handle of a library that is already loaded. Opening it reads no file, so this works in a sandboxed
/// process. The handle stays open because the library is used until the process ends.
static void *library(const char *name) { return dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD); }

int cvips_inflate(const void *data, size_t count, size_t limit, CVipsInflated *result) {
    // From zlib.h. The interface has not changed since version 1.2.
    typedef struct {
        const unsigned char *next_in;
        unsigned avail_in;
        unsigned long total_in;
        unsigned char *next_out;
        unsigned avail_out;
        unsigned long total_out;
        const char *msg;
        void *state, *zalloc, *zfree, *opaque;
        int data_type;
        unsigned long adler, reserved;
    } Stream;
    void *zlib = library("libz.so.1");
    int (*init)(Stream *, int, const char *, int) = NULL;
    int (*inflate)(Stream *, int) = NULL, (*end)(Stream *) = NULL;
    unsigned long (*adler)(unsigned long, const unsigned char *, unsigned) = NULL;
    if (zlib) {
        *(void **)&init = dlsym(zlib, "inflateInit2_");
        *(void **)&inflate = dlsym(zlib, "inflate");
        *(void **)&end = dlsym(zlib, "inflateEnd");
        *(void **)&adler = dlsym(zlib, "adler32");
    }
    Stream stream;
    memset(&stream, 0, sizeof stream);
    // A negative number of bits means deflate data without zlib's header and checksum, with a window of 32 KiB.
    if (!init || !inflate || !end || !adler || init(&stream, -15, "1", sizeof stream) != 0) return 0;
    unsigned char buffer[32768];
    int status = 0;
    stream.next_in = data;
    stream.avail_in = (unsigned)count;
    result->adler = 1;
    result->made = 0;
    while (status == 0 && result->made <= limit) {
        stream.next_out = buffer;
        stream.avail_out = sizeof buffer;
        status = inflate(&stream, 0);
        unsigned made = sizeof buffer - stream.avail_out;
        result->adler = (unsigned)adler(result->adler, buffer, made);
        result->made += made;
    }
    result->used = count - stream.avail_in;
    result->is_complete = status == 1;
    end(&stream);
    return 1;
}

int cvips_jxl_first_frame(const char *path, const void *data, size_t count, void *pixels, size_t bytes) {
    // From decode.h and types.h of libjxl: an event that is also a status, further statuses, and a pixel format.
    enum { SUCCESS = 0, NEED_BUFFER = 5, FULL_IMAGE = 0x1000, UINT8 = 2 };
    const struct {
        unsigned channels;
        int type, endianness;
        size_t align;
    } rgba = {4, UINT8, 0, 0};
    void *jxl = library(path);
    if (!jxl) return 0;
    void *(*create)(const void *) = NULL;
    void (*destroy)(void *) = NULL;
    int (*subscribe)(void *, int) = NULL, (*input)(void *, const void *, size_t) = NULL, (*process)(void *) = NULL;
    int (*output)(void *, const void *, void *, size_t) = NULL;
    *(void **)&create = dlsym(jxl, "JxlDecoderCreate");
    *(void **)&destroy = dlsym(jxl, "JxlDecoderDestroy");
    *(void **)&subscribe = dlsym(jxl, "JxlDecoderSubscribeEvents");
    *(void **)&input = dlsym(jxl, "JxlDecoderSetInput");
    *(void **)&process = dlsym(jxl, "JxlDecoderProcessInput");
    *(void **)&output = dlsym(jxl, "JxlDecoderSetImageOutBuffer");
    if (!create || !destroy || !subscribe || !input || !process || !output) return 0;
    void *decoder = create(NULL);
    if (!decoder) return 0;
    int status = SUCCESS;
    if (subscribe(decoder, FULL_IMAGE) == SUCCESS && input(decoder, data, count) == SUCCESS) {
        while ((status = process(decoder)) == NEED_BUFFER && output(decoder, &rgba, pixels, bytes) == SUCCESS) {}
    }
    destroy(decoder);
    return status == FULL_IMAGE;
}

size_t cvips_jxl_transcode(const char *path, const void *jpeg, size_t count, void *file, size_t limit) {
    void *jxl = library(path);
    if (!jxl) return 0;
    void *(*create)(const void *) = NULL, *(*settings)(void *, const void *) = NULL;
    void (*destroy)(void *) = NULL, (*close)(void *) = NULL;
    int (*contain)(void *, int) = NULL, (*restore)(void *, int) = NULL, (*add)(void *, const void *, size_t) = NULL;
    int (*process)(void *, unsigned char **, size_t *) = NULL;
    *(void **)&create = dlsym(jxl, "JxlEncoderCreate");
    *(void **)&destroy = dlsym(jxl, "JxlEncoderDestroy");
    *(void **)&settings = dlsym(jxl, "JxlEncoderFrameSettingsCreate");
    *(void **)&contain = dlsym(jxl, "JxlEncoderUseContainer");
    *(void **)&restore = dlsym(jxl, "JxlEncoderStoreJPEGMetadata");
    *(void **)&add = dlsym(jxl, "JxlEncoderAddJPEGFrame");
    *(void **)&close = dlsym(jxl, "JxlEncoderCloseInput");
    *(void **)&process = dlsym(jxl, "JxlEncoderProcessOutput");
    if (!create || !destroy || !settings || !contain || !restore || !add || !close || !process) return 0;
    void *encoder = create(NULL);
    if (!encoder) return 0;
    // Zero is success in every status of the encoder (encode.h of libjxl).
    void *frame = settings(encoder, NULL);
    unsigned char *end = file;
    int made = 0;
    if (frame && contain(encoder, 1) == 0 && restore(encoder, 1) == 0 && add(frame, jpeg, count) == 0) {
        close(encoder);
        made = process(encoder, &end, &limit) == 0;
    }
    destroy(encoder);
    return made ? (size_t)(end - (unsigned char *)file) : 0;
}

int cvips_jxl_restores(const char *path, const void *data, size_t count, const void *jpeg, size_t length) {
    // From decode.h and types.h of libjxl: events that are also statuses.
    enum { SUCCESS = 0, FULL_IMAGE = 0x1000, RECONSTRUCTION = 0x2000 };
    void *jxl = library(path);
    if (!jxl) return 0;
    void *(*create)(const void *) = NULL;
    void (*destroy)(void *) = NULL, (*close)(void *) = NULL;
    int (*subscribe)(void *, int) = NULL, (*input)(void *, const void *, size_t) = NULL, (*process)(void *) = NULL;
    int (*output)(void *, void *, size_t) = NULL;
    size_t (*unused)(void *) = NULL;
    *(void **)&create = dlsym(jxl, "JxlDecoderCreate");
    *(void **)&destroy = dlsym(jxl, "JxlDecoderDestroy");
    *(void **)&subscribe = dlsym(jxl, "JxlDecoderSubscribeEvents");
    *(void **)&input = dlsym(jxl, "JxlDecoderSetInput");
    *(void **)&close = dlsym(jxl, "JxlDecoderCloseInput");
    *(void **)&process = dlsym(jxl, "JxlDecoderProcessInput");
    *(void **)&output = dlsym(jxl, "JxlDecoderSetJPEGBuffer");
    *(void **)&unused = dlsym(jxl, "JxlDecoderReleaseJPEGBuffer");
    if (!create || !destroy || !subscribe || !input || !close || !process || !output || !unused) return 0;
    // One byte more than the JPEG, so that the decoder does not ask for a larger buffer when it has written the JPEG.
    unsigned char *restored = malloc(length + 1);
    void *decoder = restored ? create(NULL) : NULL;
    int is_equal = 0;
    if (decoder && subscribe(decoder, RECONSTRUCTION | FULL_IMAGE) == SUCCESS && input(decoder, data, count) == SUCCESS) {
        close(decoder);
        is_equal = process(decoder) == RECONSTRUCTION && output(decoder, restored, length + 1) == SUCCESS
            && process(decoder) == FULL_IMAGE && unused(decoder) == 1 && memcmp(restored, jpeg, length) == 0;
    }
    if (decoder) destroy(decoder);
    free(restored);
    return is_equal;
}

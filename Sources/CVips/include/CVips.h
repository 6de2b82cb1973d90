#pragma once
// Declares the functions of libvips, GObject and GLib that Variants calls. They are found with dlopen at first use, so
// that the program is not linked with libvips. A cache hit then never pays for loading its hundred libraries.
//
// The list CVIPS_FUNCTIONS generates the table, the loader and the checks in Tests/CVipsTests, which compare each
// declaration with the real headers. The opaque structs have their real names. GValue is declared here because callers
// allocate it.
#include <stddef.h>
#include <stdint.h>

#ifdef CVIPS_CHECK
#define CVipsValue GValue
#define CVipsRect VipsRect
#else
typedef struct _VipsImage VipsImage;
typedef struct _VipsObject VipsObject;
typedef struct _VipsOperation VipsOperation;
typedef struct _VipsRegion VipsRegion;
typedef struct _VipsArea VipsArea;
typedef struct _GObject GObject;
typedef struct _VipsBlob VipsBlob;
typedef struct _VipsTarget VipsTarget;
typedef struct _VipsTargetCustom VipsTargetCustom;
typedef int (*VipsCallbackFn)(void *_Nullable a, void *_Nullable b);
/// GValue, which consists of a type and 16 bytes of data.
typedef struct CVipsValue {
    size_t type;
    uint64_t data[2];
} CVipsValue;
/// VipsRect, a part of an image in pixels.
typedef struct CVipsRect {
    int left, top, width, height;
} CVipsRect;
#endif

/// The part of VipsRegion's layout that the macros VIPS_REGION_ADDR and VIPS_REGION_LSKIP depend on.
typedef struct CVipsRegion {
    uint64_t object[10];
    void *_Nullable image;
    CVipsRect valid;
    int type;
    unsigned char *_Nullable data;
    int line_bytes;
} CVipsRegion;

/// Fundamental GTypes (`G_TYPE_MAKE_FUNDAMENTAL`), and the log level that is silenced.
enum { CVIPS_TYPE_BOOLEAN = 20, CVIPS_TYPE_INT = 24, CVIPS_TYPE_DOUBLE = 60, CVIPS_LOG_WARNING = 16 };
/// The values of `VipsBandFormat` and `VipsInterpretation` that are used in comparisons.
enum {
    CVIPS_FORMAT_UCHAR = 0,
    CVIPS_FORMAT_CHAR = 1,
    CVIPS_FORMAT_USHORT = 2,
    CVIPS_FORMAT_SHORT = 3,
    CVIPS_FORMAT_UINT = 4,
    CVIPS_FORMAT_INT = 5,
    CVIPS_FORMAT_FLOAT = 6,
    CVIPS_FORMAT_DOUBLE = 8
};
enum {
    CVIPS_INTERPRETATION_MULTIBAND = 0,
    CVIPS_INTERPRETATION_BW = 1,
    CVIPS_INTERPRETATION_CMYK = 15,
    CVIPS_INTERPRETATION_RGB = 17,
    CVIPS_INTERPRETATION_SRGB = 22,
    CVIPS_INTERPRETATION_RGB16 = 25,
    CVIPS_INTERPRETATION_GREY16 = 26,
    CVIPS_INTERPRETATION_SCRGB = 28
};

#pragma clang assume_nonnull begin

// F(result, name, parameters)
#define CVIPS_FUNCTIONS(F) \
    F(int, vips_init, (const char *argv0)) \
    F(int, vips_version, (int flag)) \
    F(void, vips_concurrency_set, (int concurrency)) \
    F(void, vips_cache_set_max, (int max)) \
    F(void, vips_thread_shutdown, (void)) \
    F(char *_Nullable, vips_error_buffer_copy, (void)) \
    F(size_t, vips_type_find, (const char *basename, const char *nickname)) \
    F(VipsOperation *_Nullable, vips_operation_new, (const char *name)) \
    F(int, vips_object_build, (VipsObject * object)) \
    F(void, vips_object_unref_outputs, (VipsObject * object)) \
    F(int, vips_object_set_argument_from_string, (VipsObject * object, const char *name, const char *value)) \
    F(VipsImage *_Nullable, vips_image_new_from_memory, \
      (const void *data, size_t size, int width, int height, int bands, int format)) \
    F(int, vips_image_get_width, (const VipsImage *image)) \
    F(int, vips_image_get_height, (const VipsImage *image)) \
    F(int, vips_image_get_bands, (const VipsImage *image)) \
    F(int, vips_image_get_format, (const VipsImage *image)) \
    F(int, vips_image_get_interpretation, (const VipsImage *image)) \
    F(int, vips_image_hasalpha, (VipsImage * image)) \
    F(size_t, vips_image_get_typeof, (const VipsImage *image, const char *name)) \
    F(int, vips_image_get_blob, \
      (const VipsImage *image, const char *name, const void *_Nullable *_Nonnull data, size_t *length)) \
    F(int, vips_image_get_int, (const VipsImage *image, const char *name, int *number)) \
    F(int, vips_image_get_array_int, (VipsImage * image, const char *name, int *_Nullable *_Nonnull out, int *count)) \
    F(int, vips_image_get_xoffset, (const VipsImage *image)) \
    F(int, vips_image_get_yoffset, (const VipsImage *image)) \
    F(void, vips_image_set_int, (VipsImage * image, const char *name, int number)) \
    F(void, vips_image_set_array_int, (VipsImage * image, const char *name, const int *array, int count)) \
    F(void, vips_image_set_blob_copy, (VipsImage * image, const char *name, const void *data, size_t length)) \
    F(int, vips_image_remove, (VipsImage * image, const char *name)) \
    F(void, vips_image_set_kill, (VipsImage * image, int kill)) \
    F(size_t, vips_image_get_type, (void)) \
    F(size_t, vips_blob_get_type, (void)) \
    F(size_t, vips_array_double_get_type, (void)) \
    F(size_t, vips_array_image_get_type, (void)) \
    F(VipsBlob *_Nullable, vips_blob_new, (VipsCallbackFn _Nullable free, const void *data, size_t length)) \
    F(const void *_Nullable, vips_blob_get, (VipsBlob * blob, size_t *length)) \
    F(void, vips_area_unref, (VipsArea * area)) \
    F(void, vips_value_set_array_double, (CVipsValue * value, const double *_Nullable array, int count)) \
    F(void, vips_value_set_array_image, (CVipsValue * value, int count)) \
    F(VipsImage *_Nonnull *_Nullable, vips_value_get_array_image, (const CVipsValue *value, int *count)) \
    F(VipsRegion *_Nullable, vips_region_new, (VipsImage * image)) \
    F(int, vips_region_prepare, (VipsRegion * region, const CVipsRect *part)) \
    F(CVipsValue *_Nonnull, g_value_init, (CVipsValue * value, size_t type)) \
    F(void, g_value_unset, (CVipsValue * value)) \
    F(void, g_value_set_int, (CVipsValue * value, int number)) \
    F(void, g_value_set_double, (CVipsValue * value, double number)) \
    F(void, g_value_set_boolean, (CVipsValue * value, int flag)) \
    F(void, g_value_set_object, (CVipsValue * value, void *_Nullable object)) \
    F(void, g_value_set_boxed, (CVipsValue * value, const void *_Nullable boxed)) \
    F(void *_Nullable, g_value_dup_object, (const CVipsValue *value)) \
    F(void *_Nullable, g_value_get_boxed, (const CVipsValue *value)) \
    F(void, g_object_set_property, (GObject * object, const char *name, const CVipsValue *value)) \
    F(void, g_object_get_property, (GObject * object, const char *name, CVipsValue *value)) \
    F(void *_Nonnull, g_object_ref, (void *object)) \
    F(void, g_object_unref, (void *object)) \
    F(void, g_free, (void *_Nullable memory)) \
    F(VipsTargetCustom *_Nullable, vips_target_custom_new, (void)) \
    F(size_t, vips_target_custom_get_type, (void)) \
    F(unsigned long, g_signal_connect_data, \
      (void *instance, const char *signal, CVipsCallback handler, void *_Nullable user, \
       CVipsClosureNotify _Nullable destroy, unsigned int flags)) \
    F(unsigned int, g_log_set_handler, \
      (const char *domain, int levels, CVipsLogHandler handler, void *_Nullable user))

#ifdef CVIPS_CHECK
#define CVipsLogHandler GLogFunc
#define CVipsCallback GCallback
#define CVipsClosureNotify GClosureNotify
#else
typedef void (*CVipsCallback)(void);
typedef void (*CVipsClosureNotify)(void *_Nullable user, void *_Nullable closure);
typedef void (*CVipsLogHandler)(const char *_Nullable domain, int level, const char *message, void *_Nullable user);
#endif

/// A table with one function pointer for each function in `CVIPS_FUNCTIONS`.
typedef struct CVipsTable {
#define CVIPS_FIELD(result, name, parameters) result(*_Nonnull name) parameters;
    CVIPS_FUNCTIONS(CVIPS_FIELD)
#undef CVIPS_FIELD
} CVipsTable;

/// The table. Its functions may be called only after `cvips_load` has returned NULL. The table is written once, before
/// `cvips_load` first returns, so any thread can read it safely.
extern CVipsTable cvips __attribute__((swift_attr("nonisolated(unsafe)")));

/// Sets the libvips file for `cvips_load`, instead of IMAGE_PIPELINE_LIBVIPS or the file that the loader finds. Has no
/// effect after libvips has been loaded.
void cvips_choose(const char *path);

/// Loads and starts libvips once per process. Can be called from any thread. Returns NULL, or an error message in
/// static memory.
const char *_Nullable cvips_load(void);

/// Loads one of libvips' own modules (`heif`) in a process in which libvips does not load all modules itself. Call this
/// only after `cvips_load`. Returns whether the module is loaded.
int cvips_load_module(const char *name);

/// The version and codecs of libheif.
typedef struct CVipsHEIF {
    const char *_Nullable version;
    int writes_av1, reads_av1, reads_hevc;
} CVipsHEIF;

/// Gets the version and codecs of libheif if it is loaded. libheif then loads its plug-ins, which it could not do in a
/// sandboxed process. Returns whether libheif is loaded.
int cvips_heif(CVipsHEIF *heif);

/// The result of inflating: the numbers of bytes read and written, the Adler-32 checksum of the output, and whether the
/// end of the data was reached.
typedef struct CVipsInflated {
    size_t used, made;
    unsigned adler;
    int is_complete;
} CVipsInflated;

/// Inflates deflate data (RFC 1951) without storing the output. Stops after more than `limit` bytes of output. Returns
/// whether zlib, which libvips loads, could be used.
int cvips_inflate(const void *data, size_t count, size_t limit, CVipsInflated *result);

/// Decodes the first frame of a JPEG XL picture to 8-bit RGBA, using the libjxl at `path`, which must be loaded.
/// Returns whether the frame fills the `bytes` of `pixels`.
int cvips_jxl_first_frame(const char *path, const void *data, size_t count, void *pixels, size_t bytes);

/// Stores the coefficients of a JPEG as JPEG XL, from which the JPEG can be restored. Uses the libjxl at `path`, which
/// must be loaded. Returns the number of bytes written to `file`. Returns 0 if libjxl does not accept the JPEG or needs
/// more than `limit` bytes.
size_t cvips_jxl_transcode(const char *path, const void *jpeg, size_t count, void *file, size_t limit);

/// Returns whether the libjxl at `path`, which must be loaded, restores exactly this JPEG from a JPEG XL file.
int cvips_jxl_restores(const char *path, const void *data, size_t count, const void *jpeg, size_t length);

/// Calls `visit` with the path of each shared library in this process, as the loader resolved it.
void cvips_each_library(void (*visit)(const char *_Nullable path, void *_Nullable user), void *_Nullable user);

/// Computes a part of an image with `pixel_bytes` bytes per pixel. Returns the address of its first pixel, which is
/// valid until the next call, or NULL on failure. `line_bytes` receives the distance between rows. Call this only after
/// `cvips_load`.
const void *_Nullable cvips_region_fetched(
    VipsRegion *region, int left, int top, int width, int height, size_t pixel_bytes, size_t *line_bytes);

/// Receives the output of a saver in pieces. May be called on a thread of libvips. Returns the number of bytes that
/// were consumed. A negative number makes the saver fail.
typedef int64_t (*CVipsWriter)(void *target, const void *bytes, int64_t count, void *_Nullable user);

/// Creates a target that a saver writes to. Returns NULL if out of memory. Call this only after `cvips_load`. Release
/// the target with `g_object_unref`.
VipsTargetCustom *_Nullable cvips_target(CVipsWriter write, void *_Nullable user);

/// The functions of libxml2's text reader that Variants calls. They work in a process that has not loaded libvips.
#define CXML_FUNCTIONS(X) \
    X(CXMLReader *_Nullable, xmlReaderForMemory, (const char *bytes, int count, const char *_Nullable url, \
                                                  const char *_Nullable encoding, int options)) \
    X(void, xmlFreeTextReader, (CXMLReader *reader)) \
    X(int, xmlTextReaderRead, (CXMLReader *reader)) \
    X(int, xmlTextReaderNodeType, (CXMLReader *reader)) \
    X(int, xmlTextReaderIsEmptyElement, (CXMLReader *reader)) \
    X(const unsigned char *_Nullable, xmlTextReaderConstLocalName, (CXMLReader *reader)) \
    X(const unsigned char *_Nullable, xmlTextReaderConstNamespaceUri, (CXMLReader *reader)) \
    X(const unsigned char *_Nullable, xmlTextReaderConstValue, (CXMLReader *reader)) \
    X(int, xmlTextReaderMoveToNextAttribute, (CXMLReader *reader)) \
    X(int, xmlTextReaderMoveToElement, (CXMLReader *reader)) \
    X(int, xmlTextReaderGetParserLineNumber, (CXMLReader *reader))

typedef struct _xmlTextReader CXMLReader;
typedef struct CXMLTable {
#define CXML_FIELD(result, name, parameters) result(*_Nonnull name) parameters;
    CXML_FUNCTIONS(CXML_FIELD)
#undef CXML_FIELD
} CXMLTable;

/// The table. Its functions may be called only after `cxml_load` has returned 1.
extern CXMLTable cxml __attribute__((swift_attr("nonisolated(unsafe)")));

/// Loads libxml2. Call this once per process. Returns 0 if the library is missing or lacks a function.
int cxml_load(void);

/// Frees the memory that libvips keeps for the calling thread. Has no effect before libvips is loaded.
void cvips_leave_thread(void);

#pragma clang assume_nonnull end

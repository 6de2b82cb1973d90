#pragma once
#include <stddef.h>

/// A file that the program contains.
struct embedded_file {
    const char *name;
    const unsigned char *bytes;
    size_t count;
};

struct embedded_files {
    const struct embedded_file *files;
    size_t count;
};

/// The files of the page at `/`, in `Web`.
struct embedded_files page_files_list(void);

/// Pictures to try the page with, of `samples/originals`.
struct embedded_files page_samples_list(void);

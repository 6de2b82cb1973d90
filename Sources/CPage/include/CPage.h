#pragma once
#include <stddef.h>

/// A file that is embedded in the program.
struct embedded_file {
    const char *name;
    const unsigned char *bytes;
    size_t count;
};

struct embedded_files {
    const struct embedded_file *files;
    size_t count;
};

/// Returns the files of the page at `/`, from the folder `Web`.
struct embedded_files page_files_list(void);

/// Returns pictures to try on the page, from `samples/originals`.
struct embedded_files page_samples_list(void);

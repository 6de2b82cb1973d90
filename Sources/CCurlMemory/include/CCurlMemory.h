#pragma once
/*
 * Memory for libcurl (curl_global_init_mem). A transfer takes and gives back some fifty blocks, of the same sizes each time
 * and all on the thread that runs libcurl. malloc locks for many of them, against the threads that free the bodies made
 * there: more than half of a busy transport's futex calls were for that lock. Here freed blocks are kept by size for the
 * next transfer, on threads that ask for it; on others these are malloc and its kin.
 */
#include <stdbool.h>
#include <stddef.h>

void *ccurl_malloc(size_t size);
void ccurl_free(void *memory);
void *ccurl_realloc(void *memory, size_t size);
void *ccurl_calloc(size_t count, size_t size);
char *ccurl_strdup(const char *text);

/* Whether this thread keeps what libcurl frees, 4 MiB at most; false gives back what is kept. */
void ccurl_keep_memory(bool keeps);

#include "CCurlMemory.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* malloc's own sizes: 24 bytes and every 16 from there; and one size for libcurl's receive buffer, 16 KiB and a byte. */
enum { ccurl_smallest = 24, ccurl_step = 16, ccurl_sizes = 130, ccurl_buffer = 16400 };
/* Bytes kept at most, a few times what 64 transfers use. */
enum { ccurl_most_bytes = 4 << 20 };

struct ccurl_block {
    struct ccurl_block *next;
};

static _Thread_local struct {
    bool keeps;
    size_t bytes;
    /* The last list has the buffers. */
    struct ccurl_block *first[ccurl_sizes + 1];
} ccurl_kept;

void *ccurl_malloc(size_t size) {
    if (!ccurl_kept.keeps) return malloc(size);
    size_t list = size <= ccurl_smallest ? 0 : (size - ccurl_smallest + ccurl_step - 1) / ccurl_step;
    size_t whole = ccurl_smallest + list * ccurl_step;
    if (list >= ccurl_sizes) {
        if (size > ccurl_buffer || size < ccurl_buffer - ccurl_step) return malloc(size);
        list = ccurl_sizes;
        whole = ccurl_buffer;
    }
    struct ccurl_block *block = ccurl_kept.first[list];
    if (!block) return malloc(whole);
    ccurl_kept.first[list] = block->next;
    ccurl_kept.bytes -= whole;
    return block;
}

void ccurl_free(void *memory) {
    if (!memory) return;
    size_t usable = ccurl_kept.keeps ? malloc_usable_size(memory) : 0;
    size_t list = ccurl_sizes;
    size_t whole = ccurl_buffer;
    if (usable >= ccurl_smallest && usable < ccurl_smallest + ccurl_sizes * ccurl_step) {
        list = (usable - ccurl_smallest) / ccurl_step;
        whole = ccurl_smallest + list * ccurl_step;
    } else if (usable < ccurl_buffer || usable > ccurl_buffer + ccurl_step) {
        usable = 0;
    }
    if (usable == 0 || ccurl_kept.bytes + whole > ccurl_most_bytes) {
        free(memory);
        return;
    }
    struct ccurl_block *block = memory;
    block->next = ccurl_kept.first[list];
    ccurl_kept.first[list] = block;
    ccurl_kept.bytes += whole;
}

void *ccurl_realloc(void *memory, size_t size) {
    if (!memory) return ccurl_malloc(size);
    size_t usable = malloc_usable_size(memory);
    if (!ccurl_kept.keeps || usable >= ccurl_smallest + ccurl_sizes * ccurl_step) return realloc(memory, size);
    if (size <= usable) return memory;
    void *larger = ccurl_malloc(size);
    if (larger) {
        memcpy(larger, memory, usable);
        ccurl_free(memory);
    }
    return larger;
}

void *ccurl_calloc(size_t count, size_t size) {
    if (!ccurl_kept.keeps) return calloc(count, size);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *memory = ccurl_malloc(bytes);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

char *ccurl_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = ccurl_malloc(bytes);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

void ccurl_keep_memory(bool keeps) {
    ccurl_kept.keeps = keeps;
    if (keeps) return;
    for (size_t list = 0; list <= ccurl_sizes; list++) {
        while (ccurl_kept.first[list]) {
            struct ccurl_block *block = ccurl_kept.first[list];
            ccurl_kept.first[list] = block->next;
            free(block);
        }
    }
    ccurl_kept.bytes = 0;
}

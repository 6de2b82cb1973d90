#include "CCurlMemory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sizes that malloc has no rest of beside a head: 24 bytes and every 16 from there; and one for libcurl's receive buffer,
   16 KiB and a byte. */
enum { ccurl_smallest = 24, ccurl_step = 16, ccurl_sizes = 130, ccurl_buffer = 16400 };
/* Bytes kept at most, a few times what 64 transfers use. */
enum { ccurl_most_bytes = 4 << 20 };

/* Before every block. Asking malloc for a block's size costs more than to remember it. */
struct ccurl_head {
    size_t size;
    /* The list it is kept in; none for sizes that are not kept. */
    size_t list;
};
enum { ccurl_none = ccurl_sizes + 1 };

struct ccurl_block {
    struct ccurl_block *next;
};

static _Thread_local struct {
    bool keeps;
    size_t bytes;
    /* The last list has the buffers. */
    struct ccurl_block *first[ccurl_sizes + 1];
} ccurl_kept;

static struct ccurl_head *ccurl_head(void *memory) { return (struct ccurl_head *)memory - 1; }

void *ccurl_malloc(size_t size) {
    size_t list = size <= ccurl_smallest ? 0 : (size - ccurl_smallest + ccurl_step - 1) / ccurl_step;
    if (list < ccurl_sizes) {
        size = ccurl_smallest + list * ccurl_step;
    } else if (size <= ccurl_buffer && size > ccurl_buffer - ccurl_step) {
        list = ccurl_sizes;
        size = ccurl_buffer;
    } else {
        list = ccurl_none;
    }
    if (ccurl_kept.keeps && list != ccurl_none && ccurl_kept.first[list]) {
        struct ccurl_block *block = ccurl_kept.first[list];
        ccurl_kept.first[list] = block->next;
        ccurl_kept.bytes -= size;
        return block;
    }
    if (size > SIZE_MAX - sizeof(struct ccurl_head)) return NULL;
    struct ccurl_head *head = malloc(sizeof *head + size);
    if (!head) return NULL;
    head->size = size;
    head->list = list;
    return head + 1;
}

void ccurl_free(void *memory) {
    if (!memory) return;
    struct ccurl_head *head = ccurl_head(memory);
    if (!ccurl_kept.keeps || head->list == ccurl_none || ccurl_kept.bytes + head->size > ccurl_most_bytes) {
        free(head);
        return;
    }
    struct ccurl_block *block = memory;
    block->next = ccurl_kept.first[head->list];
    ccurl_kept.first[head->list] = block;
    ccurl_kept.bytes += head->size;
}

void *ccurl_realloc(void *memory, size_t size) {
    if (!memory) return ccurl_malloc(size);
    struct ccurl_head *head = ccurl_head(memory);
    if (size <= head->size) return memory;
    if (head->list == ccurl_none) {
        if (size > SIZE_MAX - sizeof *head) return NULL;
        head = realloc(head, sizeof *head + size);
        if (!head) return NULL;
        head->size = size;
        return head + 1;
    }
    void *larger = ccurl_malloc(size);
    if (larger) {
        memcpy(larger, memory, head->size);
        ccurl_free(memory);
    }
    return larger;
}

void *ccurl_calloc(size_t count, size_t size) {
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
            free(ccurl_head(block));
        }
    }
    ccurl_kept.bytes = 0;
}

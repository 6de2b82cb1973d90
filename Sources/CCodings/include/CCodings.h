#pragma once
// Undoes content codings (RFC 9110 §8.4.1) a piece at a time, by zlib and libbrotlidec.
#include <stddef.h>
#include <stdint.h>

enum { ccodings_gzip = 0, ccodings_deflate = 1, ccodings_br = 2 };
enum { ccodings_more = 0, ccodings_end = 1, ccodings_malformed = -1 };

typedef struct ccodings ccodings;

/// NULL if there is no memory.
ccodings *ccodings_open(int coding);
void ccodings_close(ccodings *state);

/// Writes up to `room` bytes to `out` and returns how many; moves `in` past what it has taken. `result` says whether there is
/// more, this was the end, or the input is malformed or ends early. The first call gets the whole input.
size_t ccodings_step(ccodings *state, const uint8_t **in, size_t *count, uint8_t *out, size_t room, int *result);

#pragma once
// Decodes content codings (RFC 9110 §8.4.1) incrementally, using zlib and libbrotlidec.
#include <stddef.h>
#include <stdint.h>

enum { ccodings_gzip = 0, ccodings_deflate = 1, ccodings_br = 2 };
enum { ccodings_more = 0, ccodings_end = 1, ccodings_malformed = -1 };

typedef struct ccodings ccodings;

/// Creates a decoder. Returns NULL if out of memory.
ccodings *ccodings_open(int coding);
void ccodings_close(ccodings *state);

/// Writes up to `room` bytes to `out`, and returns the number of bytes written. Advances `in` past the consumed input.
/// Sets `result` to report whether there is more output, the end has been reached, or the input is malformed or
/// incomplete. The complete input must be passed to the first call.
size_t ccodings_step(ccodings *state, const uint8_t **in, size_t *count, uint8_t *out, size_t room, int *result);

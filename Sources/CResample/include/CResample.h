#pragma once
#include <stddef.h>
#include <stdint.h>

/// Reduces 8-bit pictures in linear light with a Lanczos-3 filter, row after row as they are decoded.
///
/// Both edges shrink or stay. Pixels are interleaved: grey, grey + alpha, RGB or RGB + alpha, alpha straight. Colours go
/// through the curve of sRGB (IEC 61966-2-1) into floats and back; alpha is premultiplied meanwhile. Beyond the edges
/// the picture repeats its outermost pixels. Not to be used by two threads at once.
typedef struct cresample cresample;

/// A reduction from `width` × `height` to `out_width` × `out_height` pixels of `bands` (1 to 4) bytes.
///
/// `out` takes the result, `out_width * bands` bytes a row without gaps, and must stay valid until `cresample_free`.
/// NULL when a size is not positive, an edge would grow, or memory is short.
cresample *cresample_new(int width, int height, int bands, int out_width, int out_height, uint8_t *out);

/// Takes the next `count` rows, `stride` bytes apart, the first at `rows`. Rows beyond the height are not looked at. The
/// result is complete with the last row.
void cresample_push(cresample *state, const uint8_t *rows, size_t stride, int count);

/// How many rows of the result are complete.
int cresample_finished(const cresample *state);

/// Frees everything but `out`; NULL is fine.
void cresample_free(cresample *state);

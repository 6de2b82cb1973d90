#pragma once
#include <stddef.h>
#include <stdint.h>

/// Reduces pictures to 8 bits with a Lanczos-3 filter, row by row as they are decoded.
///
/// Each edge shrinks or keeps its length. Pixels are interleaved: grey, grey + alpha, RGB or RGB + alpha, with straight
/// alpha. Colours are converted to light as floats and back, and premultiplied by alpha meanwhile. Beyond the edges the
/// outermost pixels are repeated. Must not be used by two threads at once.
typedef struct cresample cresample;

/// A reduction to `out_width` × `out_height` pixels of `bands` (1 to 4) bytes, of the part of a `width` × `height`
/// picture that extends `across` × `down` pixels from the top left: at least `out_width` × `out_height`, at most
/// `width` × `height`, not necessarily whole numbers.
///
/// `steps`: 1 if rows are bytes; if they are `uint16_t`, how many of their steps make one step of a byte, as 257 for
/// samples of 16 bits, or up to 256 for sums of that many bytes without alpha. `linear`, 0 to 1: how much of the light
/// that is added up is that of the sRGB curve (IEC 61966-2-1); the rest is proportional to the stored value.
///
/// `out` receives the result, `out_width * bands` bytes per row without gaps, and must stay valid until
/// `cresample_free`. Returns NULL if an argument is out of range, an edge would grow, or memory is short.
cresample *cresample_new(
    int width, int height, double across, double down, int bands, int steps, double linear, int out_width,
    int out_height, uint8_t *out);

/// Takes the next `count` rows, stored without gaps, and ignores rows beyond the height. The last row completes the
/// result.
void cresample_push(cresample *state, const void *rows, int count);

/// Frees everything but `out`; NULL is fine.
void cresample_free(cresample *state);

/// Adds up squares of pixels of 8-bit pictures row by row, without converting them to linear light. Except for
/// rounding, decoders do the same if asked for a smaller picture. Must not be used by two threads at once.
typedef struct cbox cbox;

/// Sums squares of `factor` (1 to 16) × `factor` pixels of `bands` (1 to 4) samples, all bands alike, of a picture of
/// `width` × `height`. Samples are bytes or, if `of_sums` is not 0, sums from another cbox. A sum overflows if its
/// square covers more than 16 × 16 bytes in all. There are ⌈width ÷ factor⌉ × ⌈height ÷ factor⌉ sums; partial squares
/// at the edges are scaled up to count as much as whole ones. NULL if a number is out of range or memory short.
cbox *cbox_new(int width, int height, int bands, int factor, int of_sums);

/// Takes as many of the next `count` rows, stored without gaps, as make up to eight rows of the result. Returns how
/// many, 0 once it has had all. The `made` rows are at `sums`, without gaps, until the next call.
int cbox_push(cbox *state, const void *rows, int count, const uint16_t **sums, int *made);

/// Frees everything; NULL is fine.
void cbox_free(cbox *state);

/// Counts the squares of 4 × 4 pixels in four rows in which, in at least one of the `bands` (1 to 4), some pixels are
/// 255 and some are not. A partial square at the right is left out. `stride`: bytes from one row to the next.
int cresample_cut_squares(const uint8_t *rows, size_t stride, int width, int bands);

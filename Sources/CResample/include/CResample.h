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

/// The same for the part of a picture that reaches `across` and `down` from the top left, at least `out_width` and
/// `out_height`, at most `width` and `height`; parts of pixels count. With `summed` above 1, at most 256, rows come as
/// `uint16_t` sums of so many bytes; then there must be no alpha.
cresample *cresample_new_part(
    int width, int height, double across, double down, int bands, int summed, int out_width, int out_height,
    uint8_t *out);

/// Takes the next `count` rows, which follow each other without gaps. Rows beyond the height are not looked at. The
/// result is complete with the last row.
void cresample_push(cresample *state, const void *rows, int count);

/// How many rows of the result are complete.
int cresample_finished(const cresample *state);

/// Frees everything but `out`; NULL is fine.
void cresample_free(cresample *state);

/// Adds up squares of pixels of 8-bit pictures as they are, without going to linear light, row after row: what decoders
/// do when they are asked for a smaller picture, but for rounding. Not to be used by two threads at once.
typedef struct cbox cbox;

/// Sums of `factor` (1 to 16) × `factor` pixels of `bands` (1 to 4) samples, all added alike, of a picture that is
/// `width` × `height`: of bytes, or where `of_sums` is not 0 of the sums of another of these. Squares of more than 16 × 16
/// bytes in all do not fit. There are ⌈width ÷ factor⌉ × ⌈height ÷ factor⌉ sums, the last ones of what is left at the edges,
/// multiplied to count as much as the others. NULL when a number is out of range or memory is short.
cbox *cbox_new(int width, int height, int bands, int factor, int of_sums);

/// Takes the next of `count` rows, which follow each other without gaps, and gives how many: as many as make up to eight
/// rows of the result, 0 once all have been. `made` of them follow each other at `sums`, valid until the next call.
int cbox_push(cbox *state, const void *rows, int count, const uint16_t **sums, int *made);

/// Frees everything; NULL is fine.
void cbox_free(cbox *state);

/// How many of the squares of 4 × 4 pixels of four rows have, in one of their `bands` (1 to 4), some pixels that are 255
/// and some that are not. What is less than a square at the right is left out. `stride`: bytes from a row to the next.
int cresample_cut_squares(const uint8_t *rows, size_t stride, int width, int bands);

#pragma once
#include <stddef.h>
#include <stdint.h>

/// Reduces pictures to 8 bits with a Lanczos-3 filter, row by row during decoding.
///
/// Each edge shrinks or keeps its length. Pixels are interleaved: gray, gray + alpha, RGB or RGB + alpha, with straight
/// alpha. Colors are converted to light in floats and back, and are premultiplied by alpha in between. The outermost
/// pixels are repeated beyond the edges. Must not be used by two threads at the same time.
typedef struct cresample cresample;

/// Creates a reduction to `out_width` × `out_height` pixels with `bands` (1 to 4) bytes each. The source is the part of
/// a `width` × `height` picture that extends `across` × `down` pixels from the top left. `across` and `down` may be
/// fractional, and must be at least `out_width` × `out_height` and at most `width` × `height`.
///
/// `steps` is the number of sample steps per byte step. It is 1 for rows of bytes. For rows of `uint16_t`, it is 257
/// for 16-bit samples, or up to 256 for sums of that many bytes without alpha. `linear`, 0 to 1, is the fraction of the
/// light that follows the sRGB curve (IEC 61966-2-1). The rest is proportional to the stored value.
///
/// `out` receives the result, with `out_width * bands` bytes per row without gaps, and must stay valid until
/// `cresample_free`. Returns NULL if an argument is out of range, an edge would grow, or memory is exhausted.
cresample *cresample_new(
    int width, int height, double across, double down, int bands, int steps, double linear, int out_width,
    int out_height, uint8_t *out);

/// Processes the next `count` rows, which must be contiguous. Ignores rows beyond the height. The last row completes
/// the result.
void cresample_push(cresample *state, const void *rows, int count);

/// Frees everything except `out`. `state` may be NULL.
void cresample_free(cresample *state);

/// Sums squares of pixels in 8-bit pictures row by row, without converting them to linear light. Except for rounding,
/// this is equivalent to a decoder that decodes to a smaller size. Must not be used by two threads at the same time.
typedef struct cbox cbox;

/// Sums squares of `factor` (1 to 16) × `factor` pixels with `bands` (1 to 4) samples in a picture of `width` ×
/// `height`. All bands are treated alike. Samples are bytes or, if `of_sums` is not 0, sums from another cbox. A sum
/// overflows if its square covers more than 16 × 16 bytes in total. There are ⌈width ÷ factor⌉ × ⌈height ÷ factor⌉
/// sums. Partial squares at the edges are scaled up to the weight of complete squares. Returns NULL if a number is out
/// of range or memory is exhausted.
cbox *cbox_new(int width, int height, int bands, int factor, int of_sums);

/// Processes as many of the next `count` contiguous rows as are needed for up to eight rows of the result. Returns the
/// number of processed rows, or 0 after the last row of the picture. Stores the number of completed rows in `made`. The
/// completed rows are at `sums`, without gaps, until the next call.
int cbox_push(cbox *state, const void *rows, int count, const uint16_t **sums, int *made);

/// Frees all memory. `state` may be NULL.
void cbox_free(cbox *state);

/// Counts the squares of 4 × 4 pixels in four rows in which at least one of the `bands` (1 to 4) has both samples that
/// are 255 and samples that are not. Ignores a partial square at the right. `stride` is the number of bytes from one
/// row to the next.
int cresample_cut_squares(const uint8_t *rows, size_t stride, int width, int bands);

/// Compares two pictures with SSIMULACRA2 (version 2.1), row by row. The score of equal pictures is 100. At 90, pictures
/// are hard to tell apart. 70 is high quality, 50 is medium quality, and the score of very different pictures is
/// negative.
///
/// Pixels are interleaved sRGB bytes: gray, gray + alpha, RGB or RGB + alpha, with straight alpha. Pictures with alpha
/// are composited onto a background in stored values. An edge below 8 pixels is extended to 8 by repeating the last
/// pixel. Must not be used by two threads at the same time.
typedef struct cscore cscore;

/// Creates a comparison of two pictures of `width` × `height` pixels (each 1 to 2^24) with `bands` (1 to 4) bytes each.
/// `background` is the gray behind transparent pixels, 0 to 255. Takes 0.6 kB of memory per column. Returns NULL if
/// an argument is out of range or memory is exhausted.
cscore *cscore_new(int width, int height, int bands, int background);

/// Processes the next `count` contiguous rows of both pictures. Ignores rows beyond the height.
void cscore_push(cscore *state, const uint8_t *original, const uint8_t *copy, int count);

/// Returns the score, at most 100, after the last row.
double cscore_result(cscore *state);

/// Frees all memory. `state` may be NULL.
void cscore_free(cscore *state);

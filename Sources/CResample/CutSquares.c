#include "CResample.h"
#include "Wide.h"

// The number of samples that are processed at once. It is a multiple of the number of samples in a row of a square, for
// any number of bands.
enum { EDGE = 4, CHUNK = 768 };

WIDE int cresample_cut_squares(const uint8_t *rows, size_t stride, int width, int bands) {
    const size_t square = (size_t)(EDGE * bands), samples = (size_t)(width / EDGE) * square;
    int count = 0;
    for (size_t left = 0; left < samples; left += CHUNK) {
        const size_t length = samples - left < CHUNK ? samples - left : CHUNK;
        const uint8_t *const one = rows + left, *const two = one + stride, *const three = two + stride;
        const uint8_t *const four = three + stride;
        // For each column, the largest sample, and a value that is 255 only if all four samples are 255.
        uint8_t most[CHUNK], all[CHUNK], most_of_all = 0;
        for (size_t i = 0; i < length; i++) {
            most[i] = __builtin_elementwise_max(
                __builtin_elementwise_max(one[i], two[i]), __builtin_elementwise_max(three[i], four[i]));
            all[i] = one[i] & two[i] & three[i] & four[i];
            most_of_all = __builtin_elementwise_max(most_of_all, most[i]);
        }
        if (most_of_all < 255) continue;
        for (size_t at = 0; at < length; at += square) {
            int is_cut = 0;
            for (size_t i = at; i < at + (size_t)bands; i++) {
                const size_t second = i + (size_t)bands, third = second + (size_t)bands, fourth = third + (size_t)bands;
                const int some =
                    (most[i] == 255) | (most[second] == 255) | (most[third] == 255) | (most[fourth] == 255);
                is_cut |= some & ((all[i] & all[second] & all[third] & all[fourth]) != 255);
            }
            count += is_cut;
        }
    }
    return count;
}

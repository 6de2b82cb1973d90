// Functions that have a newer version in Debian 12's glibc than the rest of the program requires.
//
// Swift's module of glibc wraps `hypotf`, so a program that is linked with Swift's static library always refers to it,
// even if the program does not call it. glibc 2.35 introduced a new version of `hypotf`. Without that reference, the
// program runs with glibc 2.34 (RHEL 9, Amazon Linux 2023).
#include "COlderGlibc.h"

__attribute__((visibility("hidden"))) float hypotf(float x, float y);

float hypotf(float x, float y) {
    if (__builtin_isinf(x) || __builtin_isinf(y)) return __builtin_inff();
    // The squares of two floats and their sum fit in the range of a double.
    return (float)__builtin_sqrt((double)x * (double)x + (double)y * (double)y);
}

// Functions of which Debian 12's glibc has a newer version than the rest of the program needs.
//
// Swift's module of glibc wraps `hypotf`, so that a program linked with Swift's static library refers to it whether it
// calls it or not. glibc 2.35 gave it a new version; without that reference the program runs with glibc 2.34 (RHEL 9,
// Amazon Linux 2023).
#include "COlderGlibc.h"

__attribute__((visibility("hidden"))) float hypotf(float x, float y);

float hypotf(float x, float y) {
    if (__builtin_isinf(x) || __builtin_isinf(y)) return __builtin_inff();
    // The squares of two floats, and their sum, are in the range of a double.
    return (float)__builtin_sqrt((double)x * (double)x + (double)y * (double)y);
}

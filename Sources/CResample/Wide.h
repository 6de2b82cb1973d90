#pragma once

// The hot functions are compiled for wider vectors too, and the loader picks a version (x86-64-v3 has AVX2 and fused
// multiply-add, x86-64-v4 has AVX-512).
// The thread sanitizer instruments the function that picks, which runs before the sanitizer is ready.
#if defined(__x86_64__) && defined(__linux__) && !__has_feature(thread_sanitizer)
#define WIDE __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define WIDE
#endif

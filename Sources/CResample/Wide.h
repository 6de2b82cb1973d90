#pragma once

// The hot functions are also compiled for wider vectors, and the loader selects a version (x86-64-v3 has AVX2 and fused
// multiply-add, x86-64-v4 has AVX-512). The thread sanitizer does not support this, because it instruments the
// selecting function, which runs before the sanitizer is initialized.
#if defined(__x86_64__) && defined(__linux__) && !__has_feature(thread_sanitizer)
#define WIDE __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define WIDE
#endif

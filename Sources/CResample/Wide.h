#pragma once

// The functions that all the time goes into are compiled for wider vectors too; the loader picks (x86-64-v3 has AVX2 and
// fused multiply-add, x86-64-v4 has AVX-512).
#if defined(__x86_64__) && defined(__linux__)
#define WIDE __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define WIDE
#endif

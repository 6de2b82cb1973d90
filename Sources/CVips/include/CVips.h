#pragma once
// Declarations of the libvips functions we call, filled by dlopen on first use. See CVips.c.

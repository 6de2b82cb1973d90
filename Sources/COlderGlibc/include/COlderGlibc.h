#pragma once
// Nothing to call: the program is linked with the functions of COlderGlibc.c in place of the C library's.

#pragma once
// This header declares nothing. The program is linked with the functions in COlderGlibc.c instead of the C library's
// functions.

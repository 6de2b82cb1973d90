// Holds every declaration of CVips.h against the headers of libvips: this file compiles only where they agree.
#include <vips/vips.h>
#define CVIPS_CHECK
#include "../../Sources/CVips/include/CVips.h"
#include "CVipsCheck.h"

#define CVIPS_AGREES(result, name, parameters) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), __typeof__(((CVipsTable *)0)->name)), #name);
CVIPS_FUNCTIONS(CVIPS_AGREES)

_Static_assert(sizeof(GValue) == 24, "GValue");
#define CVIPS_PLACE(ours, theirs) \
    _Static_assert(offsetof(CVipsRegion, ours) == offsetof(VipsRegion, theirs), "VipsRegion." #theirs); \
    _Static_assert(sizeof(((CVipsRegion *)0)->ours) == sizeof(((VipsRegion *)0)->theirs), "VipsRegion." #theirs);
CVIPS_PLACE(valid, valid)
CVIPS_PLACE(data, data)
CVIPS_PLACE(line_bytes, bpl)
_Static_assert(
    offsetof(VipsRect, top) == 4 && offsetof(VipsRect, width) == 8 && sizeof(VipsRect) == 16 && !offsetof(VipsRect, left),
    "VipsRect");
_Static_assert(sizeof(GType) == sizeof(size_t), "GType");
_Static_assert(CVIPS_TYPE_INT == G_TYPE_INT && CVIPS_TYPE_DOUBLE == G_TYPE_DOUBLE, "numbers");
_Static_assert(CVIPS_TYPE_BOOLEAN == G_TYPE_BOOLEAN, "booleans");
_Static_assert(CVIPS_LOG_WARNING == G_LOG_LEVEL_WARNING, "log level");
_Static_assert(CVIPS_FORMAT_UCHAR == VIPS_FORMAT_UCHAR && CVIPS_FORMAT_USHORT == VIPS_FORMAT_USHORT, "formats");
_Static_assert(CVIPS_FORMAT_CHAR == VIPS_FORMAT_CHAR && CVIPS_FORMAT_SHORT == VIPS_FORMAT_SHORT, "signed formats");
_Static_assert(CVIPS_FORMAT_UINT == VIPS_FORMAT_UINT && CVIPS_FORMAT_INT == VIPS_FORMAT_INT, "32-bit formats");
_Static_assert(CVIPS_FORMAT_FLOAT == VIPS_FORMAT_FLOAT && CVIPS_FORMAT_DOUBLE == VIPS_FORMAT_DOUBLE, "float formats");
_Static_assert(CVIPS_INTERPRETATION_MULTIBAND == VIPS_INTERPRETATION_MULTIBAND, "multiband");
_Static_assert(CVIPS_INTERPRETATION_BW == VIPS_INTERPRETATION_B_W, "b-w");
_Static_assert(CVIPS_INTERPRETATION_CMYK == VIPS_INTERPRETATION_CMYK, "cmyk");
_Static_assert(CVIPS_INTERPRETATION_SRGB == VIPS_INTERPRETATION_sRGB, "srgb");
_Static_assert(CVIPS_INTERPRETATION_RGB == VIPS_INTERPRETATION_RGB, "rgb");
_Static_assert(CVIPS_INTERPRETATION_SCRGB == VIPS_INTERPRETATION_scRGB, "scrgb");
_Static_assert(CVIPS_INTERPRETATION_RGB16 == VIPS_INTERPRETATION_RGB16, "rgb16");
_Static_assert(CVIPS_INTERPRETATION_GREY16 == VIPS_INTERPRETATION_GREY16, "grey16");

#define CVIPS_COUNT(result, name, parameters) +1
int cvips_checked_declarations(void) { return 0 CVIPS_FUNCTIONS(CVIPS_COUNT); }

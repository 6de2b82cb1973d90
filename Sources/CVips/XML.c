#include "CVips.h"

#include <dlfcn.h>

CXMLTable cxml;

int cxml_load(void) {
    // librsvg, which libvips loads, depends on the same library. The handle stays open until the process ends.
    void *library = dlopen("libxml2.so.2", RTLD_LAZY | RTLD_LOCAL);
    // Version 2.14 changed the name of the library. The functions are unchanged.
    if (!library) library = dlopen("libxml2.so.16", RTLD_LAZY | RTLD_LOCAL);
    if (!library) return 0;
    int is_complete = 1;
#define CXML_FIND(result, name, parameters) \
    { \
        void *symbol = dlsym(library, #name); \
        *(void **)&cxml.name = symbol; \
        if (!symbol) is_complete = 0; \
    }
    CXML_FUNCTIONS(CXML_FIND)
#undef CXML_FIND
    return is_complete;
}

/* LAPACK functions with their Fortran interface, looked up in the library that NumPy has loaded for itself. */

#ifndef CYGRAD_LAPACK_H
#define CYGRAD_LAPACK_H

#include <stdio.h>
#include "platform/loaded_library.h"

/* Returns the function, or NULL; names that end in 64_ belong to libraries with 64-bit integers. */
static void *cygrad_find_lapack(const char *library, const char *name, int *is_wide)
{
    static const char *const forms[] = {"scipy_%s_64_", "%s_64_", "scipy_%s_", "%s_"};
    const cygrad_library loaded = cygrad_loaded(library);
    void *found = NULL;
    for (int i = 0; loaded && i < 4 && !found; i++) {
        char symbol[64];
        snprintf(symbol, sizeof symbol, forms[i], name);
        found = cygrad_function_of(loaded, symbol);
        *is_wide = i < 2;
    }
    return found;
}

#endif

/* LAPACK functions with their Fortran interface, looked up in the library that NumPy has loaded for itself. */

#ifndef CYGRAD_LAPACK_H
#define CYGRAD_LAPACK_H

#include "platform/lock.h"

#ifndef CYGRAD_FORKS

static void *cygrad_find_lapack(const char *library, const char *name, int *is_wide)
{
    return (void)library, (void)name, (void)is_wide, NULL;
}

#else

#include <dlfcn.h>
#include <stdio.h>

/* Returns the function, or NULL; names that end in 64_ belong to libraries with 64-bit integers. */
static void *cygrad_find_lapack(const char *library, const char *name, int *is_wide)
{
    static const char *const forms[] = {"scipy_%s_64_", "%s_64_", "scipy_%s_", "%s_"};
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD), *found = NULL;
    for (int i = 0; handle && i < 4 && !found; i++) {
        char symbol[64];
        snprintf(symbol, sizeof symbol, forms[i], name);
        found = dlsym(handle, symbol);
        *is_wide = i < 2;
    }
    return found;
}

#endif
#endif

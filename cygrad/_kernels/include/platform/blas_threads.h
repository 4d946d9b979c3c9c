/* The number of threads of NumPy's BLAS, and the processors its kernels are made for, if it is an OpenBLAS.

   Its threads spin for a while before they sleep, as ours do, and both would compete for the same processors. While our
   threads share an operation, BLAS therefore runs single-threaded within each of them; products are split by us
   (matmul.pyx). */

#ifndef CYGRAD_BLAS_THREADS_H
#define CYGRAD_BLAS_THREADS_H

#include <stdio.h>
#include <string.h>
#include "platform/loaded_library.h"

static struct {
    int (*get)(void);
    void (*set)(int);
    char *(*core)(void);
} blas_threads;

/* Search `library`, which is already loaded, and the libraries it links to; return whether there is an OpenBLAS. */
static int cygrad_find_blas(const char *library)
{
    static const char *const prefixes[] = {"scipy_openblas", "openblas"}, *const suffixes[] = {"64_", "", "_64"};
    const cygrad_library loaded = cygrad_loaded(library);
    for (int i = 0; loaded && i < 6 && !blas_threads.set; i++) {
        char get[64], set[64], core[64];
        snprintf(get, sizeof get, "%s_get_num_threads%s", prefixes[i / 3], suffixes[i % 3]);
        snprintf(set, sizeof set, "%s_set_num_threads%s", prefixes[i / 3], suffixes[i % 3]);
        snprintf(core, sizeof core, "%s_get_corename%s", prefixes[i / 3], suffixes[i % 3]);
        blas_threads.core = (char *(*)(void))cygrad_function_of(loaded, core);
        blas_threads.get = (int (*)(void))cygrad_function_of(loaded, get);
        if (blas_threads.get) blas_threads.set = (void (*)(int))cygrad_function_of(loaded, set);
    }
    return blas_threads.set != NULL;
}

/* Whether its kernels are known not to use 512-bit vectors. */
static int cygrad_blas_has_short_vectors(void)
{
    static const char *const long_ones[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    const char *core = blas_threads.set && blas_threads.core ? blas_threads.core() : NULL;
    for (int i = 0; core && i < 3; i++)
        if (!strcmp(core, long_ones[i])) return 0;
    return core != NULL;
}

/* Make BLAS single-threaded; return the value for `end_blas_alone` to restore. */
static int begin_blas_alone(void)
{
    const int former = blas_threads.set ? blas_threads.get() : 1;
    if (former > 1) blas_threads.set(1);
    return former;
}

static void end_blas_alone(int former)
{
    if (former > 1) blas_threads.set(former);
}

#endif

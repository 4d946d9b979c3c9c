/* How many threads NumPy's BLAS takes, and for which processors its loops were made, if that is an OpenBLAS.

   Its threads look for work for a while before they sleep, as ours do, and both want the same processors. So while ours
   share a piece of work, BLAS does alone what each of them asks of it; products are shared by ours (blas.pyx). */

#ifndef CYGRAD_BLAS_THREADS_H
#define CYGRAD_BLAS_THREADS_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct {
    int (*get)(void);
    void (*set)(int);
    char *(*core)(void);
} blas_threads;

/* Look among the libraries that one is linked to, which is loaded already; tells whether there is an OpenBLAS. */
static int cygrad_find_blas(const char *library)
{
    static const char *const prefixes[] = {"scipy_openblas", "openblas"}, *const suffixes[] = {"64_", "", "_64"};
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    for (int i = 0; handle && i < 6 && !blas_threads.set; i++) {
        char get[64], set[64], core[64];
        snprintf(get, sizeof get, "%s_get_num_threads%s", prefixes[i / 3], suffixes[i % 3]);
        snprintf(set, sizeof set, "%s_set_num_threads%s", prefixes[i / 3], suffixes[i % 3]);
        snprintf(core, sizeof core, "%s_get_corename%s", prefixes[i / 3], suffixes[i % 3]);
        blas_threads.core = (char *(*)(void))dlsym(handle, core);
        blas_threads.get = (int (*)(void))dlsym(handle, get);
        if (blas_threads.get) blas_threads.set = (void (*)(int))dlsym(handle, set);
    }
    return blas_threads.set != NULL;
}

/* Whether its loops are known not to use vectors of 512 bits. */
static int cygrad_blas_has_short_vectors(void)
{
    static const char *const long_ones[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    const char *core = blas_threads.set && blas_threads.core ? blas_threads.core() : NULL;
    for (int i = 0; core && i < 3; i++)
        if (!strcmp(core, long_ones[i])) return 0;
    return core != NULL;
}

/* Let BLAS work alone; gives what `end_blas_alone` sets again. */
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

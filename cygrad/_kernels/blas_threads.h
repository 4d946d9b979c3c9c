/* How many threads NumPy's BLAS takes, if that is an OpenBLAS.

   Its threads look for work for a while before they sleep, as ours do, and both want the same processors. So while ours
   share a piece of work, BLAS does alone what each of them asks of it; products are shared by ours (blas.pyx). */

#ifndef CYGRAD_BLAS_THREADS_H
#define CYGRAD_BLAS_THREADS_H

#include <dlfcn.h>
#include <stdio.h>

static struct {
    int (*get)(void);
    void (*set)(int);
} blas_threads;

/* Look among the libraries that one is linked to, which is loaded already; tells whether there is an OpenBLAS. */
static int cygrad_find_blas(const char *library)
{
    static const char *const prefixes[] = {"scipy_openblas", "openblas"}, *const suffixes[] = {"64_", "", "_64"};
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    for (int i = 0; handle && i < 6 && !blas_threads.set; i++) {
        char get[64], set[64];
        snprintf(get, sizeof get, "%s_get_num_threads%s", prefixes[i / 3], suffixes[i % 3]);
        snprintf(set, sizeof set, "%s_set_num_threads%s", prefixes[i / 3], suffixes[i % 3]);
        blas_threads.get = (int (*)(void))dlsym(handle, get);
        if (blas_threads.get) blas_threads.set = (void (*)(int))dlsym(handle, set);
    }
    return blas_threads.set != NULL;
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

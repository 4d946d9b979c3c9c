/* Note [Sanitized builds]

   A build with CYGRAD_SANITIZE=1 is to notice each access outside of an array. Memory that is kept for the next array
   hides such accesses, and so do blocks that are larger than what was asked for. So in these builds nothing is kept:
   neither by the pool, nor as spare arrays, nor by NumPy, whose own small cache makes room for the C library. Ends of
   arrays are ends of blocks then, and what is freed stays forbidden for a while.

   Loops of NumPy and of BLAS have no checks in them. So the ends of each operand are touched before they are called. */

#ifndef CYGRAD_SANITIZED_H
#define CYGRAD_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define CYGRAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CYGRAD_SANITIZED 1
#endif
#endif

#ifdef CYGRAD_SANITIZED
#include <sanitizer/asan_interface.h>

static void *plain_malloc(void *context, size_t size) { return (void)context, malloc(size); }

static void *plain_calloc(void *context, size_t n, size_t itemsize) { return (void)context, calloc(n, itemsize); }

static void *plain_realloc(void *context, void *memory, size_t size) { return (void)context, realloc(memory, size); }

static void plain_free(void *context, void *memory, size_t size) { (void)context, (void)size, free(memory); }

/* NumPy's memory comes from malloc, too, which is what is behind its cache: so both can free what the other has made. */
static void let_numpy_keep_nothing(void)
{
    PyDataMem_Handler *handler = PyCapsule_GetPointer(PyDataMem_DefaultHandler, "mem_handler");
    PyDataMemAllocator plain = {NULL, plain_malloc, plain_calloc, plain_realloc, plain_free};
    handler->allocator = plain;
}

/* What a loop of NumPy is called with: `count` operands, and for a product the dimensions of matrices after dims[0]. */
static void touch_ends(char *const *data, const Py_ssize_t *dims, const Py_ssize_t *steps, int count, int is_product)
{
    static const int matrix[3][2] = {{1, 2}, {2, 3}, {1, 3}};
    for (int k = 0; k < count; k++) {
        const Py_ssize_t along[3] = {dims[0], is_product ? dims[matrix[k][0]] : 1, is_product ? dims[matrix[k][1]] : 1};
        const Py_ssize_t apart[3] = {steps[k], is_product ? steps[3 + 2 * k] : 0, is_product ? steps[4 + 2 * k] : 0};
        const volatile char *low = data[k], *high = low;
        for (int i = 0; i < 3; i++) {
            if (apart[i] < 0) low += (along[i] - 1) * apart[i];
            else high += (along[i] - 1) * apart[i];
        }
        if (along[0] && along[1] && along[2]) (void)*low, (void)*high;
    }
}

#else
#define CYGRAD_SANITIZED 0
#define ASAN_POISON_MEMORY_REGION(start, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(start, size) ((void)0)
#define let_numpy_keep_nothing() ((void)0)
#define touch_ends(data, dims, steps, count, is_product) ((void)0)
#endif

#endif

/* Note [Sanitized builds]

   A build with CYGRAD_SANITIZE=1 must detect each out-of-bounds access to an array. Memory that is kept for reuse hides
   such accesses, and so do blocks larger than requested. These builds therefore keep nothing: neither in the pool, nor
   as spare arrays, nor in NumPy, whose own small cache is replaced by the C library. Ends of arrays are then ends of
   blocks, and freed memory stays poisoned for a while.

   Loops of NumPy and BLAS are not instrumented, so we touch the ends of each operand before we call them. */

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

/* NumPy's cache is backed by malloc, too, so either can free memory that the other has allocated. */
static void let_numpy_keep_nothing(void)
{
    PyDataMem_Handler *handler = PyCapsule_GetPointer(PyDataMem_DefaultHandler, "mem_handler");
    PyDataMemAllocator plain = {NULL, plain_malloc, plain_calloc, plain_realloc, plain_free};
    handler->allocator = plain;
}

/* Arguments of a NumPy loop: `count` operands, and for a matrix product the matrix dimensions after dims[0]. */
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

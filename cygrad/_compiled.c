/* The module after which the shared library is named that holds all compiled modules (_library.py): their names.
 *
 * CYGRAD_MODULES: the full names, joined by spaces; set in setup.py, which knows the sources.
 * CYGRAD_CHOICES: CHOICE(function) for the function that initializes each module compiled twice, if there are any.
 */
#include <Python.h>
#define CYGRAD_DEFINES_PROCESSOR
#include "platform/processor.h"

static int add_names(PyObject *module)
{
    return PyModule_AddStringConstant(module, "names", CYGRAD_MODULES);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_names},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},  /* as NumPy's modules */
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "cygrad._compiled", .m_slots = slots};

PyMODINIT_FUNC PyInit__compiled(void)
{
#ifdef CYGRAD_X86
    cygrad_vector_bits = widest_vectors();
#endif
    return PyModuleDef_Init(&definition);
}

#ifdef CYGRAD_CHOICES
#define CHOICE(FUNCTION) \
    PyMODINIT_FUNC FUNCTION##_plain(void); \
    PyMODINIT_FUNC FUNCTION##_avx2(void); \
    PyMODINIT_FUNC FUNCTION(void) { return cygrad_vector_bits >= 256 ? FUNCTION##_avx2() : FUNCTION##_plain(); }
CYGRAD_CHOICES
#endif

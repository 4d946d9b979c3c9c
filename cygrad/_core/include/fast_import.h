/* How a compiled module finds the modules it takes functions and types from, some 600 times during `import cygrad`.
 *
 * Included before the C code that Cython writes (setup.py). PyImport_ImportModule("cygrad._core.tensor") looks for
 * `cygrad` as well, and takes and gives back its import lock each time for as long as `import cygrad` is under way:
 * a third of the import. Whoever imports a submodule holds that lock already; looking up the module itself, which
 * waits until it is complete, is all that is left to do.
 */
#ifndef CYGRAD_FOUND_MODULE_H
#define CYGRAD_FOUND_MODULE_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

static PyObject *cygrad_found_module(const char *name)
{
    PyObject *key = PyUnicode_FromString(name);
    PyObject *module = key == NULL ? NULL : PyImport_GetModule(key);
    Py_XDECREF(key);
    return module != NULL || PyErr_Occurred() ? module : PyImport_ImportModule(name);
}
#define PyImport_ImportModule cygrad_found_module

#endif

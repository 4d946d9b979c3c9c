/* Faster lookup of the modules from which compiled modules import functions and types, some 600 times during
 * `import cygrad`.
 *
 * Included before the C code that Cython generates (setup.py). PyImport_ImportModule("cygrad._core.tensor") also looks
 * up `cygrad`, and acquires and releases its import lock each time while `import cygrad` is in progress: a third of the
 * import time. Whoever imports a submodule already holds that lock, so it suffices to look up the module itself and to
 * wait until it is initialized.
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

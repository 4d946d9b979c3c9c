/* Compiled functions that C code calls with `out` in its place, but Python code by keyword alone: see `publish`.
 *
 * Cython has no keyword-only arguments for such functions. So each call from Python first comes here, which costs a
 * nanosecond, and the number of arguments that may be given by position stands in the upper half of the function's flags.
 */
#ifndef CYGRAD_BY_KEYWORD_H
#define CYGRAD_BY_KEYWORD_H
#include <Python.h>
#include <string.h>

typedef PyObject *(*cygrad_with_keywords)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

static PyObject *cygrad_call_checked(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names) {
    PyMethodDef *def = ((PyCFunctionObject *)function)->m_ml;
    Py_ssize_t given = PyVectorcall_NARGS(nargsf), most = def->ml_flags >> 16;
    if (given > most) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd positional argument%s but %zd were given",
                     def->ml_name, most, most == 1 ? "" : "s", given);
        return NULL;
    }
    return ((cygrad_with_keywords)(void (*)(void))def->ml_meth)(
        ((PyCFunctionObject *)function)->m_self, args, given, names);
}

/* Let a compiled function take at most so many arguments by position; whether it could be done. */
static int cygrad_limit_positional(PyObject *function, int most) {
    PyCFunctionObject *f = (PyCFunctionObject *)function;
    const char *name = strrchr(Py_TYPE(function)->tp_name, '.');
    const int wanted = METH_FASTCALL | METH_KEYWORDS;
    if (strcmp(name ? name + 1 : Py_TYPE(function)->tp_name, "cython_function_or_method") != 0) return 0;
    if (f->vectorcall == NULL || (f->m_ml->ml_flags & 0xffff) != wanted) return 0;
    f->m_ml->ml_flags |= most << 16;
    f->vectorcall = cygrad_call_checked;
    return 1;
}
#endif

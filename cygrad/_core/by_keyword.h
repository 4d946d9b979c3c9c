/* Compiled functions whose calls from Python are checked first: see `publish`.
 *
 * C code gives `out` in its place, Python code by keyword alone, and Cython has no keyword-only arguments for such
 * functions; nor does it name an argument that is missing, as PyTorch does. So each call from Python first comes here,
 * which costs a nanosecond. How many arguments may be given by position stands in the third byte of the function's
 * flags, how many must be given in the fourth.
 */
#ifndef CYGRAD_BY_KEYWORD_H
#define CYGRAD_BY_KEYWORD_H
#include <Python.h>
#include <string.h>

typedef PyObject *(*cygrad_with_keywords)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* The quoted names of the required arguments that are given neither by position nor by keyword. */
static PyObject *cygrad_missing(PyObject *function, Py_ssize_t given, Py_ssize_t least, PyObject *names) {
    PyObject *code = PyObject_GetAttrString(function, "__code__"), *missing = PyList_New(0);
    PyObject *arguments = code == NULL ? NULL : PyObject_GetAttrString(code, "co_varnames");
    int failed = missing == NULL || arguments == NULL;
    for (Py_ssize_t i = given; !failed && i < least; i++) {
        PyObject *name = PyTuple_GET_ITEM(arguments, i), *quoted;
        int found = names == NULL ? 0 : PySequence_Contains(names, name);
        if (found > 0) continue;
        quoted = found < 0 ? NULL : PyUnicode_FromFormat("\"%U\"", name);
        failed = quoted == NULL || PyList_Append(missing, quoted) < 0;
        Py_XDECREF(quoted);
    }
    Py_XDECREF(code);
    Py_XDECREF(arguments);
    if (failed) Py_CLEAR(missing);
    return missing;
}

/* Raise PyTorch's error (its plural, too) if a required argument is missing. */
static int cygrad_check_missing(PyObject *function, const char *title, Py_ssize_t given, Py_ssize_t least,
                                PyObject *names) {
    PyObject *missing = cygrad_missing(function, given, least, names), *comma, *joined;
    Py_ssize_t n = missing == NULL ? -1 : PyList_GET_SIZE(missing);
    if (n > 0 && (comma = PyUnicode_FromString(", ")) != NULL) {
        if ((joined = PyUnicode_Join(comma, missing)) != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() missing %zd required positional argument%s: %U",
                         title, n, n == 1 ? "s" : "", joined);
            Py_DECREF(joined);
        }
        Py_DECREF(comma);
    }
    Py_XDECREF(missing);
    return n == 0 ? 0 : -1;
}

/* Cython's error for an argument that must be a tensor, in PyTorch's words; other errors stay as they are. */
static void cygrad_reword(const char *title) {
    const char *before = "Argument '", *between = "' has incorrect type (expected ", *after = "Tensor, got ";
    PyObject *kind, *value, *trace, *text, *name = NULL, *got = NULL;
    const char *given, *middle = NULL, *end = NULL;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return;
    PyErr_Fetch(&kind, &value, &trace);
    text = value == NULL ? NULL : PyObject_Str(value);
    given = text == NULL ? NULL : PyUnicode_AsUTF8(text);
    if (given != NULL && strncmp(given, before, strlen(before)) == 0) middle = strstr(given, between);
    if (middle != NULL) end = strstr(middle, after);
    if (end != NULL) {
        given += strlen(before);
        end += strlen(after);
        name = PyUnicode_FromStringAndSize(given, middle - given);
        got = PyUnicode_FromStringAndSize(end, strlen(end) - 1);    /* without the bracket */
    }
    PyErr_Restore(kind, value, trace);
    if (name != NULL && got != NULL)
        PyErr_Format(PyExc_TypeError, "%s(): argument '%U' must be Tensor, not %U", title, name, got);
    Py_XDECREF(name);
    Py_XDECREF(got);
    Py_XDECREF(text);
}

static PyObject *cygrad_call_checked(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names) {
    PyMethodDef *def = ((PyCFunctionObject *)function)->m_ml;
    PyObject *result;
    Py_ssize_t given = PyVectorcall_NARGS(nargsf), most = def->ml_flags >> 16 & 0xff, least = def->ml_flags >> 24;
    if (given > most) {
        if (least < most)
            PyErr_Format(PyExc_TypeError, "%s() takes from %zd to %zd positional arguments but %zd were given",
                         def->ml_name, least, most, given);
        else
            PyErr_Format(PyExc_TypeError, "%s() takes %zd positional argument%s but %zd were given",
                         def->ml_name, most, most == 1 ? "" : "s", given);
        return NULL;
    }
    if (given < least && cygrad_check_missing(function, def->ml_name, given, least, names) < 0) return NULL;
    result = ((cygrad_with_keywords)(void (*)(void))def->ml_meth)(
        ((PyCFunctionObject *)function)->m_self, args, given, names);
    if (result == NULL) cygrad_reword(def->ml_name);
    return result;
}

/* Have the calls of a compiled function checked, which takes so many arguments by position; whether it could be done. */
static int cygrad_check_calls(PyObject *function, int least, int most) {
    PyCFunctionObject *f = (PyCFunctionObject *)function;
    const char *name = strrchr(Py_TYPE(function)->tp_name, '.');
    const int wanted = METH_FASTCALL | METH_KEYWORDS;
    if (strcmp(name ? name + 1 : Py_TYPE(function)->tp_name, "cython_function_or_method") != 0) return 0;
    if (f->vectorcall == NULL || (f->m_ml->ml_flags & 0xffff) != wanted || most > 127) return 0;
    f->m_ml->ml_flags |= least << 24 | most << 16;
    f->vectorcall = cygrad_call_checked;
    return 1;
}
#endif

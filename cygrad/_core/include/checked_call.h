/* Checked calls of functions from Python: see `publish.py`.
 *
 * C code passes `out` by position, Python code by keyword only, and Cython does not support keyword-only arguments for
 * such functions. Therefore each call of a compiled function from Python first passes through here, at a cost of about
 * a nanosecond. `look_again` in `refused_calls.py` decides what a failing call raises, or whether it is repeated.
 */
#ifndef CYGRAD_CHECKED_CALL_H
#define CYGRAD_CHECKED_CALL_H
#include <Python.h>
#include <string.h>

typedef PyObject *(*cygrad_with_keywords)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

static PyObject *cygrad_look_again, *cygrad_ask_objects;

/* The method definition of a checked function, followed by how many positional arguments it takes. It replaces the
   definition that Cython gave to the function, and lives as long as the process, like that one. */
typedef struct {
    PyMethodDef def;
    Py_ssize_t least, most;
} cygrad_counted_def;

/* The set of classes that override calls with their objects, and the function of `torch_function.py` that dispatches
   such calls; the former is NULL while there is neither such a class nor a mode in any thread. `cygrad_taken` is set
   while this thread is inside such a call, `cygrad_modes` while one of its modes sees calls. */
static PyObject *cygrad_overriding, *cygrad_hand_over;
#ifdef _MSC_VER
static __declspec(thread) int cygrad_taken, cygrad_modes;
#else
static __thread int cygrad_taken, cygrad_modes;
#endif

static int cygrad_any_overrides(PyObject *const *args, Py_ssize_t n, int deep) {
    for (Py_ssize_t i = 0; i < n; i++) {
        int found = PySet_Contains(cygrad_overriding, (PyObject *)Py_TYPE(args[i]));
        if (!found && deep && (PyTuple_CheckExact(args[i]) || PyList_CheckExact(args[i])))
            found = cygrad_any_overrides(PySequence_Fast_ITEMS(args[i]), PySequence_Fast_GET_SIZE(args[i]), 0);
        if (found) return found;
    }
    return 0;
}

/* Return 1 if a mode or a class overrides the call, and set `result`, which is NULL after an error; else return 0. */
static int cygrad_take_over(PyObject *function, PyObject *const *args, Py_ssize_t given, PyObject *names,
                            PyObject **result) {
    Py_ssize_t n = given + (names ? PyTuple_GET_SIZE(names) : 0);
    PyObject *values;
    if (!cygrad_modes && (cygrad_taken || !cygrad_any_overrides(args, n, 1))) return 0;
    *result = NULL;
    if ((values = PyTuple_New(n)) == NULL) return 1;
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(values, i, Py_NewRef(args[i]));
    *result = PyObject_CallFunction(cygrad_hand_over, "ONO", function, values, names ? names : Py_None);
    return 1;
}

/* Both stay alive: another thread may be using them. `classes` is None if nothing overrides calls any more. */
static void cygrad_let_override(PyObject *classes, PyObject *hand_over) {
    if (cygrad_hand_over == NULL) cygrad_hand_over = Py_NewRef(hand_over);
    cygrad_overriding = classes == Py_None ? NULL : cygrad_overriding ? cygrad_overriding : Py_NewRef(classes);
}

/* After a failure: raise PyTorch's TypeError, return the result of the call with other arguments, or re-raise. */
static PyObject *cygrad_again(PyObject *look_again, PyObject *function, PyObject *const *args, Py_ssize_t given,
                              PyObject *names) {
    PyObject *kind, *value, *trace, *found = NULL, *result = NULL, *values;
    Py_ssize_t n = given + (names ? PyTuple_GET_SIZE(names) : 0);
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyErr_Fetch(&kind, &value, &trace);
    if ((values = PyTuple_New(n)) != NULL) {
        for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(values, i, Py_NewRef(args[i]));
        found = PyObject_CallFunction(look_again, "ONOOO", function, values, names ? names : Py_None,
                                      kind, value ? value : Py_None);
    }
    if (found == Py_None) {
        Py_DECREF(found);
        PyErr_Restore(kind, value, trace);
        return NULL;
    }
    Py_XDECREF(kind);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (found == NULL) return NULL;
    if (PyTuple_Check(found)) result = Py_NewRef(PyTuple_GET_ITEM(found, 0));
    else PyErr_SetObject(PyExc_TypeError, found);
    Py_DECREF(found);
    return result;
}

static PyObject *cygrad_do_checked(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names) {
    PyMethodDef *def = ((PyCFunctionObject *)function)->m_ml;
    PyObject *result;
    Py_ssize_t given = PyVectorcall_NARGS(nargsf), most = ((cygrad_counted_def *)def)->most;
    if (cygrad_overriding && cygrad_take_over(function, args, given, names, &result)) return result;
    if (given > most) {
        Py_ssize_t least = ((cygrad_counted_def *)def)->least;
        if (least < most)
            PyErr_Format(PyExc_TypeError, "%s() takes from %zd to %zd positional arguments but %zd were given",
                         def->ml_name, least, most, given);
        else
            PyErr_Format(PyExc_TypeError, "%s() takes %zd positional argument%s but %zd were given",
                         def->ml_name, most, most == 1 ? "" : "s", given);
        result = NULL;
    } else
        result = ((cygrad_with_keywords)(void (*)(void))def->ml_meth)(
            ((PyCFunctionObject *)function)->m_self, args, given, names);
    return result ? result : cygrad_again(cygrad_look_again, function, args, given, names);
}

static int cygrad_asking;       /* whether autocast checks must run first: see `autocast.guard` */

/* Calls of a Python function through the compiled function in front of it. The latter's `m_self` is the Python
   function, or the pair (it, its guarded form); or, if it only calls `apply1` with a row, (it, `apply1`, the row). */
static PyObject *cygrad_do_python(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names) {
    PyObject *python = ((PyCFunctionObject *)function)->m_self, *result;
    Py_ssize_t given = PyVectorcall_NARGS(nargsf), n = PyTuple_CheckExact(python) ? PyTuple_GET_SIZE(python) : 0;
    if (cygrad_overriding && cygrad_take_over(function, args, given, names, &result)) return result;
    if (n == 3 && given == 1 && names == NULL) {
        PyObject *values[] = {PyTuple_GET_ITEM(python, 2), args[0], Py_None};
        result = PyObject_Vectorcall(PyTuple_GET_ITEM(python, 1), values, 3, NULL);
    } else {
        if (n) python = PyTuple_GET_ITEM(python, n == 2 ? cygrad_asking : 0);
        result = PyObject_Vectorcall(python, args, nargsf, names);
    }
    return result ? result : cygrad_again(cygrad_look_again, function, args, given, names);
}

/* Calls of an in-place form, which forwards to another function and passes the first argument as `out`, too. Its
   `m_self` is (that function, ("out",), Tensor, a Python function for unusual or wrong calls and for errors). */
static PyObject *cygrad_do_in_place(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names) {
    PyObject *all[12], **parts = ((PyTupleObject *)((PyCFunctionObject *)function)->m_self)->ob_item, *result;
    PyObject *kind, *error, *trace;
    Py_ssize_t given = PyVectorcall_NARGS(nargsf), n = given + (names ? PyTuple_GET_SIZE(names) : 0);
    if (cygrad_overriding && cygrad_take_over(function, args, given, names, &result)) return result;
    if (!given || n > 11 || !PyObject_TypeCheck(args[0], (PyTypeObject *)parts[2]) ||
        (names && PySequence_Contains(names, PyTuple_GET_ITEM(parts[1], 0))))
        return PyObject_Vectorcall(parts[3], args, nargsf, names);
    memcpy(all, args, n * sizeof(PyObject *));
    all[n] = args[0];
    names = names ? PySequence_Concat(names, parts[1]) : Py_NewRef(parts[1]);
    if (names == NULL) return NULL;
    result = PyObject_Vectorcall(parts[0], all, given, names);
    Py_DECREF(names);
    if (result == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Fetch(&kind, &error, &trace);
        PyErr_NormalizeException(&kind, &error, &trace);
        result = PyObject_CallOneArg(parts[3], error);      /* re-raises it in terms of this form */
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    }
    return result;
}

/* Calls of a Python function that modes and classes may override, and that nothing else needs to be known of. After a
   failure, `ask_objects` asks the arguments that are no tensors. */
static PyObject *cygrad_do_shown(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names) {
    PyObject *result;
    Py_ssize_t given = PyVectorcall_NARGS(nargsf);
    if (cygrad_overriding && cygrad_take_over(function, args, given, names, &result)) return result;
    result = PyObject_Vectorcall(((PyCFunctionObject *)function)->m_self, args, nargsf, names);
    return result ? result : cygrad_again(cygrad_ask_objects, function, args, given, names);
}

/* The same for a compiled function that takes a tuple and a dictionary. */
static PyObject *cygrad_do_variadic(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names) {
    PyCFunctionObject *f = (PyCFunctionObject *)function;
    PyObject *values, *named = NULL, *result = NULL;
    Py_ssize_t given = PyVectorcall_NARGS(nargsf), n = names ? PyTuple_GET_SIZE(names) : 0;
    if (cygrad_overriding && cygrad_take_over(function, args, given, names, &result)) return result;
    if ((values = PyTuple_New(given)) == NULL) return NULL;
    for (Py_ssize_t i = 0; i < given; i++) PyTuple_SET_ITEM(values, i, Py_NewRef(args[i]));
    if (n && (named = PyDict_New()) == NULL) goto done;
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(names, i), args[given + i]) < 0) goto done;
    result = ((PyCFunctionWithKeywords)(void (*)(void))f->m_ml->ml_meth)(f->m_self, values, named);
done:
    Py_DECREF(values);
    Py_XDECREF(named);
    return result;
}

/* With several GPUs, a call runs on the GPU of its tensors: Note [Several GPUs] in `several_gpus.pyx`. The first function
   switches to that GPU, and returns the one that was current before, or -1 if nothing has changed, or -2 after an error;
   the second one switches back. Both are NULL while there is no second GPU. */
static int (*cygrad_enter_gpu)(PyObject *const *, Py_ssize_t);
static int (*cygrad_leave_gpu)(int);

static PyObject *cygrad_on_its_gpu(vectorcallfunc call, PyObject *function, PyObject *const *args, size_t nargsf,
                                   PyObject *names) {
    PyObject *result, *kind, *value, *trace;
    int before = cygrad_enter_gpu(args, PyVectorcall_NARGS(nargsf) + (names ? PyTuple_GET_SIZE(names) : 0));
    if (before == -2) return NULL;
    result = call(function, args, nargsf, names);
    if (before >= 0) {
        PyErr_Fetch(&kind, &value, &trace);
        if (cygrad_leave_gpu(before) < 0) PyErr_Clear();        /* the driver has failed, as the next call will say */
        PyErr_Restore(kind, value, trace);
    }
    return result;
}

#define CYGRAD_FRONT(KIND)                                                                                          \
    static PyObject *cygrad_call_##KIND(PyObject *function, PyObject *const *args, size_t nargsf, PyObject *names) { \
        if (cygrad_enter_gpu) return cygrad_on_its_gpu(cygrad_do_##KIND, function, args, nargsf, names);             \
        return cygrad_do_##KIND(function, args, nargsf, names);                                                      \
    }

CYGRAD_FRONT(checked)
CYGRAD_FRONT(python)
CYGRAD_FRONT(in_place)
CYGRAD_FRONT(shown)
CYGRAD_FRONT(variadic)

static void cygrad_attend_gpus(int (*enter)(PyObject *const *, Py_ssize_t), int (*leave)(int)) {
    cygrad_leave_gpu = leave;
    cygrad_enter_gpu = enter;
}

static void cygrad_show(PyObject *function, PyObject *behind, PyObject *ask_objects) {
    cygrad_ask_objects = ask_objects;
    ((PyCFunctionObject *)function)->m_self = Py_NewRef(behind);
    ((PyCFunctionObject *)function)->vectorcall = cygrad_call_shown;
}

static void cygrad_stand_before(PyObject *function, PyObject *behind, int in_place, PyObject *look_again) {
    cygrad_look_again = look_again;
    ((PyCFunctionObject *)function)->m_self = Py_NewRef(behind);
    ((PyCFunctionObject *)function)->vectorcall = in_place ? cygrad_call_in_place : cygrad_call_python;
}

/* Have `twin` do what `function` does: a method is another object than the function of the same name. */
static void cygrad_become_twin(PyObject *twin, PyObject *function) {
    PyCFunctionObject *to = (PyCFunctionObject *)twin, *from = (PyCFunctionObject *)function;
    to->m_ml = from->m_ml;
    to->m_self = Py_XNewRef(from->m_self);
    to->vectorcall = from->vectorcall;
}

/* Whether modes and classes that override calls see those of a function. */
static int cygrad_is_seen(PyObject *function) {
    const char *name = strrchr(Py_TYPE(function)->tp_name, '.');
    vectorcallfunc call;
    if (strcmp(name ? name + 1 : "", "cython_function_or_method") != 0) return 0;
    call = ((PyCFunctionObject *)function)->vectorcall;
    return call == cygrad_call_checked || call == cygrad_call_python || call == cygrad_call_in_place ||
           call == cygrad_call_shown || call == cygrad_call_variadic;
}

/* Enable checks for the calls of a compiled function; it takes `least` to `most` positional arguments. Failures of a
   function that takes a tuple are not looked at again. Returns 1 if the checks are enabled, 0 if the function cannot be
   checked, and -1 with an error if there is no memory. */
static int cygrad_check_calls(PyObject *function, int least, int most, PyObject *look_again) {
    PyCFunctionObject *f = (PyCFunctionObject *)function;
    const char *name = strrchr(Py_TYPE(function)->tp_name, '.');
    cygrad_counted_def *counted;
    cygrad_look_again = look_again;
    if (strcmp(name ? name + 1 : Py_TYPE(function)->tp_name, "cython_function_or_method") != 0) return 0;
    if (f->vectorcall == cygrad_call_checked) return 1;
    if (f->vectorcall == NULL && f->m_ml->ml_flags == (METH_VARARGS | METH_KEYWORDS)) {
        f->vectorcall = cygrad_call_variadic;
        return 1;
    }
    if (f->vectorcall == NULL || f->m_ml->ml_flags != (METH_FASTCALL | METH_KEYWORDS)) return 0;
    if ((counted = PyMem_Malloc(sizeof(*counted))) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *counted = (cygrad_counted_def){*f->m_ml, least, most};
    f->m_ml = &counted->def;
    f->vectorcall = cygrad_call_checked;
    return 1;
}
#endif

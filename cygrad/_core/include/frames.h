/* The Python frames of this thread, innermost first; all references are borrowed and valid while the frame runs.
 *
 * Python's own functions create a frame object for each frame they visit, which takes longer than adding two numbers.
 * Up to CPython 3.13 we read the interpreter's frames directly, through its internal headers; other versions use those
 * functions (as do builds with CYGRAD_PUBLIC_FRAMES, for tests).
 */
#ifndef CYGRAD_FRAMES_H
#define CYGRAD_FRAMES_H

#include <Python.h>

#if PY_VERSION_HEX < 0x030E0000 && !defined(PYPY_VERSION) && !defined(CYGRAD_PUBLIC_FRAMES)

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "internal/pycore_frame.h"

typedef struct _PyInterpreterFrame cygrad_frame;

/* Skips frames that have not started and those that represent C code: they belong to no Python line. */
static inline cygrad_frame *cygrad_begun(cygrad_frame *frame)
{
    while (frame != NULL && _PyFrame_IsIncomplete(frame))
        frame = frame->previous;
    return frame;
}

static inline cygrad_frame *cygrad_current_frame(void)
{
    PyThreadState *thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030D0000
    return cygrad_begun(thread->current_frame);
#else
    return cygrad_begun(thread->cframe->current_frame);
#endif
}

static inline cygrad_frame *cygrad_outer_frame(cygrad_frame *frame) { return cygrad_begun(frame->previous); }

static inline PyObject *cygrad_frame_code(cygrad_frame *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (PyObject *)_PyFrame_GetCode(frame);
#else
    return (PyObject *)frame->f_code;
#endif
}

static inline int cygrad_frame_lasti(cygrad_frame *frame)
{
    return _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
}

#else

#include <frameobject.h>

typedef PyFrameObject cygrad_frame;

static inline cygrad_frame *cygrad_current_frame(void) { return PyEval_GetFrame(); }

static inline cygrad_frame *cygrad_outer_frame(cygrad_frame *frame)
{
    PyFrameObject *outer = PyFrame_GetBack(frame);
    Py_XDECREF(outer); /* kept alive by the running frame */
    return outer;
}

static inline PyObject *cygrad_frame_code(cygrad_frame *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code);
    return (PyObject *)code;
}

static inline int cygrad_frame_lasti(cygrad_frame *frame) { return PyFrame_GetLasti(frame); }

#endif
#endif

/* The variables of functions that run: what one of them calls a value, and whose method it is. A part of reads.c. */
#include <Python.h>
#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE /* for a frame's variables, which 3.11 has no function for */
#include <internal/pycore_frame.h>
#endif

static PyObject *self_word; /* "self", as Python keeps names: one object */

/* The value of a frame's variable, new; NULL where it has none. Asking for `f_locals` instead has Python keep what all of them
 * are now alive until it is asked again, or the frame ends. */
static PyObject *variable(PyFrameObject *frame, PyCodeObject *code, Py_ssize_t at) {
#if PY_VERSION_HEX < 0x030C0000
  PyObject *value = frame->f_frame->localsplus[at]; /* a cell where an inner function takes it, too */
  if (value && PyCell_Check(value)) value = PyCell_GET(value);
  Py_XINCREF(value);
#else
  PyObject *value = PyFrame_GetVar(frame, PyTuple_GET_ITEM(code->co_localsplusnames, at));
  if (!value) PyErr_Clear(); /* it was deleted, or is yet to be made */
#endif
  return value;
}

/* name_in(frame, value): the name of a function's variable that is this value, not one that begins with _; or None. */
static PyObject *name_in(PyObject *module, PyObject *const *given, Py_ssize_t count) {
  if (count != 2 || !PyFrame_Check(given[0])) return PyErr_Format(PyExc_TypeError, "name_in takes a frame and a value");
  PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)given[0]);
  PyObject *found = NULL;
  Py_ssize_t n = code->co_flags & CO_OPTIMIZED ? PyTuple_GET_SIZE(code->co_localsplusnames) : 0;
  for (Py_ssize_t i = 0; !found && i < n; i++) {
    PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
    PyObject *value = PyUnicode_READ_CHAR(name, 0) == '_' ? NULL : variable((PyFrameObject *)given[0], code, i);
    if (value && value == given[1]) found = name;
    Py_XDECREF(value);
  }
  found = Py_NewRef(found ? found : Py_None);
  Py_DECREF(code);
  return found;
}

/* The innermost frame, of so many, whose `self` is of this type or one that inherits from it, and that `self`, both new. */
enum { DEEP = 60 };
static PyFrameObject *method_of(PyFrameObject *frame, PyObject *type, PyObject **found) {
  Py_INCREF(frame);
  for (int deep = 0; frame && deep < DEEP; deep++) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    int has = code->co_argcount && PyTuple_GET_ITEM(code->co_localsplusnames, 0) == self_word;
    PyObject *self = has ? variable(frame, code, 0) : NULL;
    Py_DECREF(code);
    if (self && PyType_IsSubtype(Py_TYPE(self), (PyTypeObject *)type)) { *found = self; return frame; }
    Py_XDECREF(self);
    Py_SETREF(frame, PyFrame_GetBack(frame));
  }
  Py_XDECREF(frame);
  return NULL;
}

/* running(frame, type): the same as a tuple, or None. */
static PyObject *running(PyObject *module, PyObject *const *given, Py_ssize_t count) {
  if (count != 2 || !PyFrame_Check(given[0]) || !PyType_Check(given[1]))
    return PyErr_Format(PyExc_TypeError, "running takes a frame and a type");
  PyObject *self;
  PyFrameObject *frame = method_of((PyFrameObject *)given[0], given[1], &self);
  return frame ? Py_BuildValue("NN", frame, self) : Py_NewRef(Py_None);
}

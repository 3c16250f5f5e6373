/* The frames of this thread as the interpreter has them: a part of lines.c.
 *
 * They are read with or without the GIL: a thread that is inside of a call does not change its own. Layouts differ between minor
 * versions, so each has a build of its own, by its own headers.
 */
#define Py_BUILD_CORE
#include <Python.h>
#if defined(Py_GIL_DISABLED) || PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030F0000
#error "it is not known how this interpreter keeps its frames"
#elif PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#else
#include <internal/pycore_frame.h>
#endif
typedef struct _PyInterpreterFrame Frame;

static inline Frame *innermost(void) {
  PyThreadState *thread = PyGILState_GetThisThreadState(); /* none on a thread that Python does not know */
#if PY_VERSION_HEX < 0x030D0000
  return thread && thread->cframe ? thread->cframe->current_frame : NULL;
#else
  return thread ? thread->current_frame : NULL;
#endif
}

/* Its code, or NULL where it has not begun, or is the interpreter's own. */
static inline PyCodeObject *code_of(Frame *frame) {
#if PY_VERSION_HEX >= 0x030C0000
  if (frame->owner >= 3) return NULL; /* FRAME_OWNED_BY_CSTACK, later FRAME_OWNED_BY_INTERPRETER */
#endif
  if (_PyFrame_IsIncomplete(frame)) return NULL;
#if PY_VERSION_HEX >= 0x030D0000
  return _PyFrame_GetCode(frame);
#else
  return frame->f_code;
#endif
}

/* The instruction at which it is, in code units. */
static inline int instruction_of(Frame *frame) { return _PyInterpreterFrame_LASTI(frame); }

/* The line of an instruction, by the code's own table; 0 where it has none. The table does not change as long as the code lives.
 *
 * An entry's first byte alone has the highest bit. It holds how the entry is written, and how many code units it is for; a line
 * that is further away follows in groups of six bits, sign last (CPython, InternalDocs/code_objects.md).
 */
static int line_of(PyCodeObject *code, int at) {
  enum { NONE = 15, LONG = 14, NO_COLUMN = 13, ONE_LINE = 10 };
  const unsigned char *table = (unsigned char *)PyBytes_AS_STRING(code->co_linetable);
  const unsigned char *end = table + PyBytes_GET_SIZE(code->co_linetable);
  int line = code->co_firstlineno;
  while (table < end) {
    int how = *table >> 3 & 15, units = (*table & 7) + 1;
    const unsigned char *after = table + 1;
    if (how == LONG || how == NO_COLUMN) {
      unsigned value = 0;
      for (int shift = 0; after < end && shift < 32; shift += 6) {
        value |= (*after & 63u) << shift;
        if (!(*after++ & 64)) break;
      }
      line += value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
    } else if (how >= ONE_LINE && how < NO_COLUMN) {
      line += how - ONE_LINE;
    }
    if ((at -= units) < 0) return how == NONE || line < 0 ? 0 : line;
    while (after < end && !(*after & 128)) after++;
    table = after;
  }
  return 0;
}

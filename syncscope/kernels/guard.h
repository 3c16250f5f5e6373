/* What PyTorch asks the guard of our device, several times in every operator; a part of plans.c.
 *
 * The guard that PyTorch has for devices written in Python looks its answer up by pybind11, which there raises what a signal's
 * handler raised: Ctrl-C's KeyboardInterrupt. `getStream` may not raise, so the process was aborted. All these functions only say
 * which device there is, so they are C's. Their table is copied: its own lies where nothing may be written.
 */
typedef struct { int8_t type, index; } Device;               /* c10/core/Device.h */
typedef struct { Device device; int64_t id; } Stream;        /* c10/core/Stream.h */
enum { BEFORE = 2 }; /* words of such a table before its first function */
static Device the_device;

static int8_t type_of(const void *self) { return the_device.type; }
static Device device_of(const void *self) { return the_device; }
static Device device_before(const void *self, Device wanted) { return the_device; }
static Stream stream_of(const void *self, Device of) { return (Stream){the_device, 0}; }
static Stream stream_before(const void *self, Stream wanted) { return (Stream){the_device, 0}; }

/* guard(entry, type, names): `entry` is where PyTorch keeps the guard's address, `names` are its virtual functions in order. */
static PyObject *guard(PyObject *module, PyObject *arguments) {
  static const struct { const char *name; void *function; } ours[] = {{"type", type_of}, {"getDevice", device_of},
    {"exchangeDevice", device_before}, {"getStream", stream_of}, {"exchangeStream", stream_before}};
  unsigned long long entry;
  PyObject *names;
  if (!PyArg_ParseTuple(arguments, "KbO!", &entry, &the_device.type, &PyTuple_Type, &names)) return NULL;
  Py_ssize_t count = PyTuple_GET_SIZE(names);
  void ***self = *(void ****)entry, **table = malloc((BEFORE + count) * sizeof *table);
  if (!table) return PyErr_NoMemory();
  memcpy(table, *self - BEFORE, (BEFORE + count) * sizeof *table);
  for (Py_ssize_t i = 0; i < count; i++)
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
      if (!PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), ours[k].name)) table[BEFORE + i] = ours[k].function;
  *self = table + BEFORE;
  Py_RETURN_NONE;
}

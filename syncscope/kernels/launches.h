/* Launches, and a thread that gives them to the driver; a part of plans.c.
 *
 * A GPU's driver takes 5 to 10 us for each, a third of a small step, while whoever launches could go on. So what is launched is
 * noted down in a ring, in order, by whoever holds the GIL, and the thread, which knows nothing of Python, enqueues it. Everybody
 * else who gives the driver something calls `drain` first. What the driver refuses is raised by the next launch or `settle`.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

typedef struct { int at, slot; void *holds; } Hole; /* of a kernel that nobody else gives arguments to */
typedef struct { uint64_t seed, offset; } Random; /* where a generator stands: what a kernel that draws is given */
typedef struct {
  PyObject *kernel;
  void *handle;
  uint32_t rank;
  size_t size[3], group[3];
  int holes;
  Hole *hole;
  uint64_t given; /* when holes were filled: a buffer that is gone since may have given its address to another */
  int draws_at; /* the argument that is a Random; -1 of a kernel that draws nothing */
  uint64_t drawn; /* how far the generator is then */
} Launch;
static struct { int (*set)(void *, uint32_t, size_t, const void *), (*flush)(void *);
  int (*enqueue)(void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const void *, void *); } cl;
static void *queue;
static Random *generator;        /* the device's own; Python reads and writes it, too */
static long kept, flushes;       /* launches since the last flush, and how many make one due */

enum { ROOM = 1 << 16, PATIENCE = 200000 /* ns for which the thread looks for more before it sleeps */ };
static uint64_t ring[ROOM];      /* of each launch: its address, a buffer for each hole, and a Random of one that draws */
static _Alignas(64) _Atomic uint64_t noted; /* words since the beginning; on lines of the cache of their own */
static _Alignas(64) _Atomic uint64_t enqueued;
static _Atomic int sleeping, broken;     /* whether the thread does, and whether the driver has refused something */
static struct { Launch *launch; PyObject *kernel; int error; } refused; /* the kernel is owned once somebody has drained */
static int aside, runs;          /* whether launches go to the thread, and whether there is one */
static pthread_mutex_t bed = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t called = PTHREAD_COND_INITIALIZER;

/* Gives a launch to the driver, with a buffer for each hole; OpenCL's error, or 0. */
static int give(Launch *launch, void **buffer, const Random *random) {
  int error = 0, anew = launch->given != dropped;
  launch->given = 0;
  for (int i = 0; i < launch->holes && !error; i++) {
    Hole *hole = &launch->hole[i];
    if (anew || hole->holds != buffer[i]) error = cl.set(launch->handle, hole->at, sizeof(void *), &buffer[i]), hole->holds = buffer[i];
  }
  if (!error) launch->given = dropped;
  if (!error && launch->draws_at >= 0) error = cl.set(launch->handle, launch->draws_at, sizeof *random, random);
  if (!error) error = cl.enqueue(queue, launch->handle, launch->rank, NULL, launch->size, launch->group, 0, NULL, NULL);
  if (!error && ++kept >= flushes) kept = 0, cl.flush(queue);
  return error;
}

static uint64_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ull + at.tv_nsec;
}

/* Until there are more than `end` words. */
static void await(uint64_t end) {
  for (uint64_t since = now(); now() - since < PATIENCE;)
    for (int i = 0; i < 100; i++)
      if (atomic_load_explicit(&noted, memory_order_acquire) != end) return;
  pthread_mutex_lock(&bed);
  atomic_store(&sleeping, 1);
  while (atomic_load(&noted) == end) pthread_cond_wait(&called, &bed);
  atomic_store(&sleeping, 0);
  pthread_mutex_unlock(&bed);
}

static void *work(void *nothing) {
  for (uint64_t at = 0;;) {
    if (atomic_load_explicit(&noted, memory_order_acquire) == at) await(at);
    Launch *launch = (Launch *)ring[at++ % ROOM];
    void *buffer[launch->holes + 1];
    Random random = {0};
    for (int i = 0; i < launch->holes; i++) buffer[i] = (void *)ring[at++ % ROOM];
    if (launch->draws_at >= 0) random.seed = ring[at++ % ROOM], random.offset = ring[at++ % ROOM];
    int error = give(launch, buffer, &random);
    if (error && !atomic_load(&broken)) {
      refused.launch = launch, refused.error = error;
      atomic_store(&broken, 1);
    }
    atomic_store_explicit(&enqueued, at, memory_order_release);
  }
  return NULL;
}

static void note(Launch *launch, void **buffer) {
  uint64_t at = atomic_load_explicit(&noted, memory_order_relaxed), words = 3 + launch->holes;
  while (at + words - atomic_load_explicit(&enqueued, memory_order_acquire) > ROOM) sched_yield();
  ring[at++ % ROOM] = (uintptr_t)launch;
  for (int i = 0; i < launch->holes; i++) ring[at++ % ROOM] = (uintptr_t)buffer[i];
  if (launch->draws_at >= 0) ring[at++ % ROOM] = generator->seed, ring[at++ % ROOM] = generator->offset;
  atomic_store(&noted, at);
  if (!atomic_load(&sleeping)) return;
  pthread_mutex_lock(&bed);
  pthread_cond_signal(&called);
  pthread_mutex_unlock(&bed);
}

/* Until the driver has all that was launched. It may itself wait for a thread that wants to run Python: a hook of its calls. */
static void drain(void) {
  uint64_t all;
  while (runs && (all = atomic_load(&noted)) != atomic_load_explicit(&enqueued, memory_order_acquire)) {
    Py_BEGIN_ALLOW_THREADS
    while (atomic_load_explicit(&enqueued, memory_order_acquire) < all) sched_yield();
    Py_END_ALLOW_THREADS
  }
  if (atomic_load(&broken) && !refused.kernel) refused.kernel = Py_NewRef(refused.launch->kernel);
}

static int raised(PyObject *kernel, int error) {
  PyObject *never = PyObject_CallFunction(PyDict_GetItem(py.queue, word.refused), "Oi", kernel, error);
  Py_XDECREF(never); /* it raises */
  return -1;
}

/* Raises what the driver has refused, if it has. */
static int raise_refused(void) {
  if (!atomic_load(&broken)) return 0;
  drain();
  PyObject *kernel = refused.kernel;
  if (!kernel) return 0; /* another thread has raised it meanwhile */
  refused.kernel = NULL;
  atomic_store(&broken, 0);
  raised(kernel, refused.error);
  Py_DECREF(kernel);
  return -1;
}

static int enqueue(Launch *launches, int count, void **slots) {
  int later = aside && !PyList_GET_SIZE(py.observers); /* who observes wants to see who launched it */
  if (raise_refused()) return -1;
  if (!later) drain();
  for (Launch *launch = launches; launch < launches + count; launch++) {
    void *buffer[launch->holes + 1];
    for (int i = 0; i < launch->holes; i++) buffer[i] = slots[launch->hole[i].slot];
    int error = 0;
    if (later) note(launch, buffer); else error = give(launch, buffer, generator);
    if (launch->draws_at >= 0) generator->offset += launch->drawn;
    if (error) return raised(launch->kernel, error);
  }
  return add_to(py.queue, word.launches, count) < 0 ? -1 : 0;
}

static void alone(void) { /* in a child made by fork the thread is not there, and OpenCL is not */
  runs = aside = 0;
  atomic_store(&noted, 0);
  atomic_store(&enqueued, 0);
}

static PyObject *settle(PyObject *module, PyObject *none) {
  drain();
  if (raise_refused()) return NULL;
  Py_RETURN_NONE;
}

static PyObject *submit(PyObject *module, PyObject *on) {
  int wanted = PyObject_IsTrue(on);
  drain();
  if (wanted > 0 && !runs) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are Python's */
    runs = !pthread_create(&thread, NULL, work, NULL) && !pthread_detach(thread) && !pthread_atfork(NULL, NULL, alone);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  aside = wanted > 0 && runs;
  Py_RETURN_NONE;
}

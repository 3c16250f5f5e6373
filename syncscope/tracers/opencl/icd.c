/* Hooks for the vendors' ICD dispatch tables, and the record file that they write to.
 *
 * No Python, no OpenCL headers: cc -O2 -shared -fPIC -pthread.  Python stores the addresses of hooks[] into the tables
 * (dispatch.py), gives us the originals, and reads the file back (records.py).
 *
 * A record is 64 bytes of the file: what was recorded survives any death of the process, and memory stays flat. The type is
 * stored last, so a record is there or it is not. A call and the device's stamps of what it launched are two records joined
 * by `corr`; so nothing waits, nothing is rewritten, and the number of live events is bounded by PENDING.
 *
 * Locks: `leaf` guards the record file, the maps, the tail of the pending ring and the changes of `era`, and no vendor
 * function is called under it. `harvester` guards the head of the ring and the events in it: one thread at a time reads
 * stamps, the others go on without waiting.
 *
 * Four parts, in the order in which they lean on one another, and one translation unit: a call is to take 50 ns, so all that it
 * passes through is inlined.
 */
#include "records.h"
#include "handles.h"
#include "calls.h"
#include "operators.h"

/* ---- what Python calls ---- */
#define HOOK(name, slot) {#name, slot, (P)h_##name},
#define ABI 4 /* abi.py knows it: raise both when a record or a function changes */
int abi(void) { return ABI; }
typedef struct { const char *name; int64_t slot; P hook; } Hook;
const Hook hooks[] = {FUNCTIONS(HOOK)};
int number_of_hooks(void) { return NFN; }
const Hook *hook_list(void) { return hooks; }
#define KNOWN(name, slot) {#name, slot, 0},
/* Every slot that we believe to know, up to an empty name: a loader can tell whether we are right. */
const Hook *slot_list(void) {
  static const Hook slots[] = {FUNCTIONS(KNOWN) ASKED(KNOWN){0, 0, 0}};
  return slots;
}

/* Gives us a table and the vendor's functions; again after a restore is harmless. Returns 0 where there is no room. */
int add_table(P at, P *vendor) {
  pthread_mutex_lock(&leaf);
  int n = ntables, i;
  for (i = 0; i < n && tables[i].at != at; i++) {}
  if (i < TABLES) {
    if (i == n) tables[i].at = at;
    for (int k = 0; k < SLOTS; k++) /* others may be calling through it */
      if (tables[i].vendor[k] != vendor[k]) tables[i].vendor[k] = vendor[k];
    if (i == n) atomic_store_explicit(&ntables, n + 1, memory_order_release);
  }
  pthread_mutex_unlock(&leaf);
  return i < TABLES;
}
static void in_child(void) { /* the mapping is shared with the parent: a child records nothing */
  era += era & 1;
  armed = 0;
  fd = -1;
  hot = 0;
  head = tail;
  my.tid = 0;
  my.deep = 0;
  leaf = harvester = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
/* Records into `file` from `offset` on; `cycles` says that CLOCK_MONOTONIC counts the processor's cycles. Queues, kernels and
 * devices are described anew in every record file. Returns 0, or the errno of a disk without room. */
int start(int file, uint64_t offset, int cycles) {
  int failed = posix_fallocate(file, offset, HOT); /* a hole on a full disk would be SIGBUS */
  if (failed) return failed;
  P window = mmap(0, HOT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, offset);
  if (window == MAP_FAILED) return errno;
#ifdef __x86_64__
  cycles_are_time = cycles;
#else
  (void)cycles;
#endif
  static int once;
  if (!once++) pthread_atfork(0, 0, in_child);
  pthread_mutex_lock(&leaf);
  if (hot) munmap(hot, HOT);
  hot = window;
  ((Rec *)hot)->type = WINDOW;
  fd = file;
  file_end = offset + HOT;
  used = sizeof(Rec);
  appended = written = busy = full = 0;
  memset(lost, 0, sizeof lost);
  map_clear(kernel_names);
  map_clear(queue_numbers);
  map_clear(device_numbers);
  map_clear(operator_names);
  names = queues = devices = nclocks = 0;
  era += 1 + (era & 1);
  pthread_mutex_unlock(&leaf);
  return 0;
}
/* Waits until the stamps of all commands are there, at most `patience` ns; others may go on enqueuing. */
void settle(uint64_t patience) {
  uint64_t until = now() + patience;
  my.deep = 1;
  pthread_mutex_lock(&harvester); /* else an event could be given back, and its queue with it, while we look at it */
  P flushed = 0;
  for (uint32_t i = head, end = tail; i != end; i++) { /* some drivers begin only when flushed */
    Pending *p = &pending[i & (PENDING - 1)];
    if (p->event && p->queue != flushed && running(p)) V(p->t, Flush, One)(flushed = p->queue);
  }
  pthread_mutex_unlock(&harvester);
  for (uint32_t last = tail; (int32_t)(last - head) > 0 && now() < until;)
    if (!harvest(1 << 30, 64)) {
      struct timespec nap = {0, 200000};
      nanosleep(&nap, 0);
    }
  my.deep = 0;
}
/* Stops recording after `settle`; returns events given up. */
uint64_t stop(uint64_t patience) {
  uint64_t left = 0;
  pthread_mutex_lock(&leaf);
  era += era & 1;
  pthread_mutex_unlock(&leaf);
  settle(patience);
  my.deep = 1;
  pthread_mutex_lock(&harvester);
  for (; head != tail; head++) {
    Pending *p = &pending[head & (PENDING - 1)];
    if (p->event) { V(p->t, ReleaseEvent, One)(p->event); p->event = 0; left++; }
  }
  pthread_mutex_unlock(&harvester);
  my.deep = 0;
  for (int i = 0; i < nclocks; i++) read_clock(table(clocks[i]), clocks[i], map_get(device_numbers, clocks[i]));
  pthread_mutex_lock(&leaf);
  if (hot) munmap(hot, HOT);
  hot = 0;
  fd = -1;
  pthread_mutex_unlock(&leaf);
  return left;
}
void counts(uint64_t *out) { /* records, live events, what was lost (4), ns of work */
  pthread_mutex_lock(&leaf);
  out[0] = written;
  out[1] = tail - head;
  memcpy(out + 2, lost, sizeof lost);
  out[6] = busy;
  pthread_mutex_unlock(&leaf);
}
static int count_loads(struct dl_phdr_info *i, Z size, void *out) {
  (void)size;
  *(uint64_t *)out = i->dlpi_adds;
  return 1;
}
/* Where this thread's numbers stand: of blocking calls, and of those that were told of as reads. */
uint64_t *waits_of_this_thread(void) { return &my.waits; }
/* How many libraries were ever loaded: changes when a driver or a loader may have come. */
uint64_t loads(void) {
  uint64_t n = 0;
  dl_iterate_phdr(count_loads, &n);
  return n;
}
/* Has this asked with each call which line of Python makes it; NULL for nobody. */
void ask_line(P function) { asked = (uint64_t(*)(void))function; }
/* New queues get profiling although nothing is recorded yet. */
void arm(int yes) { armed = yes; }

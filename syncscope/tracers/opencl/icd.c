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
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef void *P;
typedef int32_t I;
typedef uint32_t U;
typedef uint64_t L;
typedef size_t Z;

/* ---- the functions: id, slot in struct _cl_icd_dispatch (CL/cl_icd.h, append-only) ---- */
#define FUNCTIONS(X) \
  X(CreateCommandQueue, 9) X(ReleaseCommandQueue, 11) X(BuildProgram, 30) X(ReleaseKernel, 37) X(WaitForEvents, 41) \
  X(Flush, 46) X(Finish, 47) X(EnqueueReadBuffer, 48) X(EnqueueWriteBuffer, 49) X(EnqueueCopyBuffer, 50) \
  X(EnqueueReadImage, 51) X(EnqueueWriteImage, 52) X(EnqueueCopyImage, 53) X(EnqueueCopyImageToBuffer, 54) \
  X(EnqueueCopyBufferToImage, 55) X(EnqueueMapBuffer, 56) X(EnqueueMapImage, 57) X(EnqueueUnmapMemObject, 58) \
  X(EnqueueNDRangeKernel, 59) X(EnqueueTask, 60) X(EnqueueNativeKernel, 61) X(EnqueueMarker, 62) \
  X(EnqueueWaitForEvents, 63) X(EnqueueBarrier, 64) X(SetUserEventStatus, 85) X(EnqueueReadBufferRect, 86) \
  X(EnqueueWriteBufferRect, 87) X(EnqueueCopyBufferRect, 88) X(CompileProgram, 98) X(LinkProgram, 99) \
  X(EnqueueFillBuffer, 102) X(EnqueueFillImage, 103) X(EnqueueMigrateMemObjects, 104) \
  X(EnqueueMarkerWithWaitList, 105) X(EnqueueBarrierWithWaitList, 106) X(CreateCommandQueueWithProperties, 123) \
  X(EnqueueSVMFree, 128) X(EnqueueSVMMemcpy, 129) X(EnqueueSVMMemFill, 130) X(EnqueueSVMMap, 131) \
  X(EnqueueSVMUnmap, 132) X(EnqueueSVMMigrateMem, 139) X(CreateProgramWithSource, 26)
#define ASKED(X) /* what we call and do not replace */ \
  X(GetDeviceInfo, 3) X(GetCommandQueueInfo, 12) X(GetImageInfo, 21) X(GetKernelInfo, 39) X(GetEventInfo, 42) \
  X(RetainEvent, 43) X(ReleaseEvent, 44) X(GetEventProfilingInfo, 45) X(GetDeviceAndHostTimer, 140)
#define ID(name, slot) F_##name,
#define SLOT(name, slot) name = slot,
enum { FUNCTIONS(ID) NFN };
enum { FUNCTIONS(SLOT) ASKED(SLOT) SLOTS = 149 };
enum { CALL = 1, STAMP, QUEUE, NAME, CLOCK, DEVICE, OPERATOR = 8 /* python_events.py's */, SOURCE = 11, WINDOW = 255 };
enum { BLOCKING = 1, FAILED = 2, PROFILED = 4, FORCED = 8, OUT_OF_ORDER = 16 };
enum { FELL_BACK = 2 }; /* of an OPERATOR, as in model/trace.py */

typedef struct {
  uint8_t type, fn, flags, pad;
  uint32_t tid, queue, name;
  uint64_t corr, size, t0, t1, a, b;
} Rec;
_Static_assert(sizeof(Rec) == 64, "record_file.py reads 64 bytes");

/* ---- state ---- */
#define TABLES 16
#define PENDING (1u << 16)
#define HOT (1u << 18) /* record_file.py knows it */
#define MAP (1u << 13)
typedef struct { P at; P vendor[SLOTS]; } Table;
static Table tables[TABLES];
static atomic_int ntables, armed;
/* Odd while recording. A call that began in another era than it ends in is not recorded: its numbers mean nothing any more. */
static atomic_uint era;
static pthread_mutex_t leaf = PTHREAD_MUTEX_INITIALIZER, harvester = PTHREAD_MUTEX_INITIALIZER;
/* What a thread has of its own, in one block: finding it is a call. */
static _Thread_local struct {
  uint64_t waits, told; /* blocking calls so far, and how many of them had been told of as reads: Python has the address */
  uint64_t base_cycle, base_ns, first_cycle, first_ns;
  double ns_per_cycle;
  uint32_t tid, era; /* when it last waited */
  int deep; /* inside of a vendor's function, which may call others through the table */
} my;

static int fd = -1;
static char *hot;
static uint64_t file_end, used, appended, written;
/* what was lost: 0 records without room on the disk, 1 stamps of a full ring, 2 stamps the driver refused, 3 maps full */
static uint64_t lost[4];
static uint64_t busy; /* ns that the devices have worked, for a live display */

typedef struct { P event, queue; Table *t; uint64_t corr; uint32_t number; } Pending;
static Pending pending[PENDING];
static _Atomic uint32_t head, tail;
static uint64_t next_corr;
static uint32_t names, queues, devices;
#define CLOCKS 64
static P clocks[CLOCKS]; /* devices whose timer is read again at the end */
static int nclocks;

static uint64_t monotonic(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}
#ifdef __x86_64__
/* Where CLOCK_MONOTONIC is the counter of cycles, the counter itself is twice as fast to read. A thread takes a new pair of
 * both after 2^21 cycles (under a millisecond), so that a rate known to 50 ppm errs by less than 50 ns. */
static atomic_int cycles_are_time;
static __attribute__((noinline)) uint64_t new_base(void) {
  uint64_t before = __builtin_ia32_rdtsc(), ns = monotonic(), cycle = __builtin_ia32_rdtsc();
  if (cycle - before > 10000) return ns; /* somebody came between the readings */
  uint64_t passed = ns - my.first_ns;
  double rate = (double)passed / (cycle - my.first_cycle);
  double change = my.ns_per_cycle ? rate / my.ns_per_cycle - 1 : 0;
  if (!my.first_ns || cycle < my.first_cycle || change > 1e-4 || change < -1e-4) { /* new, or the machine has slept */
    my.first_ns = ns;
    my.first_cycle = cycle;
    my.ns_per_cycle = my.base_cycle = 0;
  } else if (passed > 10000000) { /* 10 ms tell the rate to some ppm */
    my.base_cycle = cycle;
    my.base_ns = ns;
    my.ns_per_cycle = rate;
  }
  return ns;
}
static inline uint64_t now(void) {
  if (!atomic_load_explicit(&cycles_are_time, memory_order_relaxed)) return monotonic();
  uint64_t since = __builtin_ia32_rdtsc() - my.base_cycle;
  return since < 1u << 21 ? my.base_ns + (uint64_t)(since * my.ns_per_cycle) : new_base();
}
#else
static inline uint64_t now(void) { return monotonic(); }
#endif
static inline uint32_t me(void) { return my.tid ? my.tid : (my.tid = syscall(SYS_gettid)); }
static inline void waited(uint32_t when) {
  if (my.era != when) my.told = my.waits; /* what no read explained in an earlier recording stays so */
  my.era = when;
  my.waits++;
}
static inline int recording(void) { return atomic_load_explicit(&era, memory_order_relaxed) & 1; }

/* ---- the record file (under leaf) ----
 * Records go into a window at the front of the file, a shared mapping, so that they are the file's the moment they are
 * written. A full window is appended to the file with one write: whole pages, which the kernel need not clear first, a fifth
 * of the cost of growing the mapping. The window's first record counts the windows appended; a reader that finds one more
 * than that in the file knows that the window is the last of them.
 */
static void roll(void) {
  for (Z done = 0; done < HOT;) {
    ssize_t n = pwrite(fd, hot + done, HOT - done, file_end + done);
    if (n <= 0) { /* a full disk: what does not fit is counted, and the window used again */
      if (n < 0 && errno == EINTR) continue;
      lost[0] += HOT / sizeof(Rec) - 1;
      if (ftruncate(fd, file_end)) lost[0]++;
      goto empty;
    }
    done += n;
  }
  file_end += HOT;
  appended++;
empty:
  memset(hot + sizeof(Rec), 0, HOT - sizeof(Rec));
  __atomic_store_n(&((Rec *)hot)->t0, appended, __ATOMIC_RELEASE); /* last: until then all of it is in the file already */
  used = sizeof(Rec);
}
static void put(const Rec *r) {
  if (!hot) { lost[0]++; return; }
  if (used == HOT) roll();
  Rec *to = (Rec *)(hot + used);
  Rec c = *r;
  c.type = 0;
  *to = c;
  __atomic_store_n(&to->type, r->type, __ATOMIC_RELEASE);
  used += sizeof(Rec);
  written++;
}
static void put_text(uint8_t type, uint32_t id, const char *text, Z n) {
  do {
    Rec r = {.type = type, .name = id};
    Z part = n < 48 ? n : 48;
    r.flags = part;
    memcpy(&r.corr, text, part);
    put(&r);
    text += part;
    n -= part;
  } while (n);
}
static uint32_t put_name(const char *text, Z n) {
  put_text(NAME, ++names, text, n);
  return names;
}

/* ---- handles -> numbers; readers take no lock ---- */
typedef struct { _Atomic(P) key; _Atomic uint64_t value; } Entry;
typedef Entry Map[MAP];
static Map kernel_names, queue_numbers, device_numbers, operator_names;
#define DEAD ((P)1)
static inline uint32_t hash(P k) { return (uint32_t)(((uint64_t)k * 0x9E3779B97F4A7C15ull) >> 51); }
static inline uint64_t map_get(Entry *m, P k) {
  for (uint32_t i = hash(k), n = 0; n < 256; i = (i + 1) & (MAP - 1), n++) {
    P at = atomic_load_explicit(&m[i].key, memory_order_acquire);
    if (at == k) return atomic_load_explicit(&m[i].value, memory_order_relaxed);
    if (!at) break;
  }
  return 0;
}
static int map_put(Entry *m, P k, uint64_t v) { /* under leaf; whether there was room */
  Entry *free = 0;
  for (uint32_t i = hash(k), n = 0; n < 256; i = (i + 1) & (MAP - 1), n++) {
    P at = m[i].key;
    if (at == k) { m[i].value = v; return 1; }
    if (!free && (!at || at == DEAD)) free = &m[i];
    if (!at) break;
  }
  if (!free) { lost[3]++; return 0; }
  free->value = v;
  atomic_store_explicit(&free->key, k, memory_order_release);
  return 1;
}
static void map_del(Entry *m, P k) {
  for (uint32_t i = hash(k), n = 0; n < 256; i = (i + 1) & (MAP - 1), n++) {
    P at = m[i].key;
    if (at == k) { m[i].value = 0; m[i].key = DEAD; return; }
    if (!at) return;
  }
}
static void map_clear(Entry *m) { /* under leaf; a key without its value is not known */
  for (uint32_t i = 0; i < MAP; i++)
    if (m[i].key) m[i].value = 0, m[i].key = 0;
}

/* ---- vendors ---- */
#define ICD2_TAG 0x4F50454E434C3331ull /* cl_khr_icd 2.0: the loader dispatches through the object's second word */
static inline Table *table(P object) {
  P at = *(P *)object;
  if (*(uint64_t *)at == ICD2_TAG) at = ((P *)object)[1];
  int n = atomic_load_explicit(&ntables, memory_order_acquire);
  for (int i = 0; i < n; i++)
    if (tables[i].at == at) return &tables[i];
  return &tables[0];
}
#define V(t, slot, type) ((type)(t)->vendor[slot])
typedef I (*Info)(P, U, Z, P, Z *);
typedef I (*One)(P);

static uint32_t device_number(Table *t, P device) {
  uint64_t n = map_get(device_numbers, device);
  if (n) return n;
  char text[256] = "";
  uint64_t mem = 0, kind = 0, d = 0, h = 0;
  uint32_t units = 0;
  V(t, GetDeviceInfo, Info)(device, 0x102B, sizeof text, text, 0);
  V(t, GetDeviceInfo, Info)(device, 0x101F, 8, &mem, 0);
  V(t, GetDeviceInfo, Info)(device, 0x1002, 4, &units, 0);
  V(t, GetDeviceInfo, Info)(device, 0x1000, 8, &kind, 0);
  I (*timer)(P, P, P) = V(t, GetDeviceAndHostTimer, I(*)(P, P, P));
  int timed = timer && timer(device, &d, &h) == 0;
  P parent = 0;
  V(t, GetDeviceInfo, Info)(device, 0x1042, sizeof parent, &parent, 0);
  text[255] = 0;
  pthread_mutex_lock(&leaf);
  n = map_get(device_numbers, device);
  if (!n) {
    n = ++devices;
    Rec r = {.type = DEVICE, .queue = n, .size = mem, .flags = timed, .t0 = units, .t1 = kind, .a = (L)device,
             .b = (L)t->at};
    r.name = put_name(text, strlen(text));
    put(&r);
    map_put(device_numbers, device, n);
    if (timed && !parent && nclocks < CLOCKS) clocks[nclocks++] = device; /* a sub-device may be gone by the end */
  }
  pthread_mutex_unlock(&leaf);
  return n;
}
static void read_clock(Table *t, P device, uint32_t number) {
  uint64_t d = 0, h = 0, t0, t1;
  I (*timer)(P, P, P) = V(t, GetDeviceAndHostTimer, I(*)(P, P, P));
  if (!timer) return;
  t0 = now();
  if (timer(device, &d, &h)) return;
  t1 = now();
  Rec r = {.type = CLOCK, .queue = number, .t0 = t0, .t1 = t1, .a = d, .b = h};
  pthread_mutex_lock(&leaf);
  put(&r);
  pthread_mutex_unlock(&leaf);
}
/* number << 1 | profiled */
static uint64_t queue_number(Table *t, P queue, int forced) {
  uint64_t v = map_get(queue_numbers, queue);
  if (v) return v;
  L props = 0;
  P device = 0;
  V(t, GetCommandQueueInfo, Info)(queue, 0x1093, 8, &props, 0);
  V(t, GetCommandQueueInfo, Info)(queue, 0x1091, 8, &device, 0);
  uint32_t d = device_number(t, device);
  read_clock(t, device, d);
  int profiled = (props & 2) != 0;
  pthread_mutex_lock(&leaf);
  v = map_get(queue_numbers, queue);
  if (!v) {
    uint32_t n = ++queues;
    v = (uint64_t)n << 1 | profiled;
    Rec r = {.type = QUEUE, .queue = n, .name = d, .a = (L)queue, .b = (L)t->at,
             .flags = (profiled ? PROFILED : 0) | (forced ? FORCED : 0) | (props & 1 ? OUT_OF_ORDER : 0)};
    put(&r);
    map_put(queue_numbers, queue, v);
  }
  pthread_mutex_unlock(&leaf);
  return v;
}
static uint32_t kernel_name(Table *t, P kernel) {
  uint64_t id = map_get(kernel_names, kernel);
  if (id) return id;
  char text[512] = "";
  V(t, GetKernelInfo, Info)(kernel, 0x1190, sizeof text, text, 0);
  text[511] = 0;
  pthread_mutex_lock(&leaf);
  id = put_name(text, strlen(text));
  map_put(kernel_names, kernel, id);
  pthread_mutex_unlock(&leaf);
  return id;
}

/* ---- stamps of finished events; gives up after `unfinished` that still run; returns events taken ---- */
static int running(const Pending *p) {
  I status = 1;
  V(p->t, GetEventInfo, Info)(p->event, 0x11D3, 4, &status, 0);
  return status > 0;
}
static void put_stamps(const Rec *batch, int n, int refused) {
  pthread_mutex_lock(&leaf);
  for (int k = 0; k < n; k++) {
    busy += batch[k].t1 > batch[k].t0 ? batch[k].t1 - batch[k].t0 : 0;
    put(&batch[k]);
  }
  lost[2] += refused;
  pthread_mutex_unlock(&leaf);
}
static int harvest(int most, int unfinished) {
  if (head == tail || pthread_mutex_trylock(&harvester)) return 0;
  Rec batch[16];
  int n = 0, taken = 0, refused = 0;
  for (uint32_t i = head, end = tail; i != end && taken < most; i++) {
    Pending *p = &pending[i & (PENDING - 1)];
    if (p->event) {
      Info profile = V(p->t, GetEventProfilingInfo, Info);
      L s[4] = {0, 0, 0, 0};
      I bad = profile(p->event, 0x1283, 8, &s[3], 0); /* there is an end once it has ended: no need to ask first */
      if (bad || !s[3]) {
        if (running(p)) {
          if (--unfinished < 0) break;
          continue;
        }
        bad = profile(p->event, 0x1283, 8, &s[3], 0); /* it may have ended between the two questions */
      }
      for (int k = 0; k < 3; k++) bad |= profile(p->event, 0x1280 + k, 8, &s[k], 0);
      V(p->t, ReleaseEvent, One)(p->event);
      p->event = 0;
      taken++;
      if (bad) refused++;
      else batch[n++] = (Rec){.type = STAMP, .queue = p->number, .corr = p->corr, .t0 = s[2], .t1 = s[3], .a = s[0], .b = s[1]};
    }
    if (i == head) head = i + 1;
    if (n == 16) put_stamps(batch, n, 0), n = 0;
  }
  while (head != tail && !pending[head & (PENDING - 1)].event) head = head + 1;
  if (n || refused) put_stamps(batch, n, refused);
  pthread_mutex_unlock(&harvester);
  return taken;
}

/* ---- one call ---- */
typedef struct { Table *t; P queue; P mine; P *event; uint64_t number, t0, group; uint32_t era; int own; } Call;
static inline int begin(Call *c, P object) {
  c->t = table(object);
  c->group = 0; /* work items of a kernel's group, where the program says so */
  c->era = atomic_load_explicit(&era, memory_order_relaxed);
  return c->era & 1 && !my.deep;
}
static inline P *open_call(Call *c, P queue, P *event) { /* where the vendor is to store the event */
  my.deep = 1;
  c->queue = queue;
  c->number = queue_number(c->t, queue, 0);
  c->mine = 0;
  c->own = !event && c->number & 1;
  c->event = c->own ? &c->mine : event;
  c->t0 = now();
  return c->event;
}
static inline void close_call(Call *c, int fn, I failed, uint32_t name, uint64_t size, int blocking) {
  uint64_t t1 = now();
  P event = 0;
  if (!failed && c->event && c->number & 1 && (event = *c->event) && !c->own) V(c->t, RetainEvent, One)(event);
  Rec r = {.type = CALL, .fn = fn, .flags = (blocking ? BLOCKING : 0) | (failed ? FAILED : 0), .tid = me(),
           .queue = c->number >> 1, .name = name, .size = size, .t0 = c->t0, .t1 = t1 < c->t0 ? c->t0 : t1, .a = c->group};
  P drop = event;
  pthread_mutex_lock(&leaf);
  uint64_t corr = r.corr = ++next_corr;
  int counts = c->era == era;
  if (counts) put(&r);
  if (counts && event) {
    uint32_t at = tail;
    drop = 0;
    if (at - head < PENDING) {
      pending[at & (PENDING - 1)] = (Pending){event, c->queue, c->t, corr, (uint32_t)(c->number >> 1)};
      atomic_store_explicit(&tail, at + 1, memory_order_release);
    } else {
      lost[1]++;
      drop = event;
    }
  }
  pthread_mutex_unlock(&leaf);
  if (drop) V(c->t, ReleaseEvent, One)(drop);
  if (blocking) waited(c->era), harvest(20, 4);
  else if ((corr & 7) == 0) harvest(16, 2); /* more than are launched between: the ring does not fill behind a device in time */
  my.deep = 0;
}
static void host_call(Call *c, int fn, P queue, uint64_t t0, uint32_t name, uint64_t size, int blocking, I failed) {
  Rec r = {.type = CALL, .fn = fn, .flags = (blocking ? BLOCKING : 0) | (failed ? FAILED : 0), .tid = me(),
           .name = name, .size = size, .t0 = t0, .t1 = now()};
  if (r.t1 < t0) r.t1 = t0;
  if (queue) r.queue = queue_number(c->t, queue, 0) >> 1;
  pthread_mutex_lock(&leaf);
  r.corr = ++next_corr;
  if (c->era == era) put(&r);
  pthread_mutex_unlock(&leaf);
  if (blocking) waited(c->era), harvest(20, 4);
}
static uint64_t volume(const Z *r) { return r ? (uint64_t)r[0] * r[1] * r[2] : 0; }
static uint64_t image_bytes(Table *t, P image, const Z *region) {
  Z element = 0;
  V(t, GetImageInfo, Info)(image, 0x1111, sizeof element, &element, 0);
  return element * volume(region);
}

/* PARAMS and ARGS are what comes between the queue and (number of waits, waits, event). */
#define UNWRAP(...) __VA_ARGS__
#define ENQUEUE(FN, PARAMS, ARGS, NAME_, SIZE, BLOCKING_)                                                 \
  static I h_##FN(P q, UNWRAP PARAMS, U n, const P *w, P *ev) {                                            \
    typedef I (*T)(P, UNWRAP PARAMS, U, const P *, P *);                                                   \
    Call c;                                                                                                \
    if (!begin(&c, q)) return V(c.t, FN, T)(q, UNWRAP ARGS, n, w, ev);                                     \
    uint32_t name = NAME_;                                                                                 \
    uint64_t size = SIZE;                                                                                  \
    P *event = open_call(&c, q, ev);                                                                       \
    I r = V(c.t, FN, T)(q, UNWRAP ARGS, n, w, event);                                                      \
    close_call(&c, F_##FN, r, name, size, BLOCKING_);                                                      \
    return r;                                                                                              \
  }
static uint64_t work_items(U d, const Z *g) {
  uint64_t s = g ? 1 : 0;
  for (U i = 0; g && i < d; i++) s *= g[i];
  return s;
}
ENQUEUE(EnqueueNDRangeKernel, (P k, U d, const Z *o, const Z *g, const Z *l), (k, d, o, g, l), kernel_name(c.t, k), (c.group = work_items(d, l), work_items(d, g)), 0)
ENQUEUE(EnqueueTask, (P k), (k), kernel_name(c.t, k), 1, 0)
ENQUEUE(EnqueueNativeKernel, (P f, P a, Z cb, U m, P mems, P locs), (f, a, cb, m, mems, locs), 0, 0, 0)
ENQUEUE(EnqueueReadBuffer, (P b, U blk, Z off, Z sz, P p), (b, blk, off, sz, p), 0, sz, blk)
ENQUEUE(EnqueueWriteBuffer, (P b, U blk, Z off, Z sz, P p), (b, blk, off, sz, p), 0, sz, blk)
ENQUEUE(EnqueueCopyBuffer, (P s, P d, Z so, Z dof, Z sz), (s, d, so, dof, sz), 0, sz, 0)
ENQUEUE(EnqueueReadImage, (P i, U blk, Z *o, Z *g, Z rp, Z sp, P p), (i, blk, o, g, rp, sp, p), 0, image_bytes(c.t, i, g), blk)
ENQUEUE(EnqueueWriteImage, (P i, U blk, Z *o, Z *g, Z rp, Z sp, P p), (i, blk, o, g, rp, sp, p), 0, image_bytes(c.t, i, g), blk)
ENQUEUE(EnqueueCopyImage, (P s, P d, Z *so, Z *dof, Z *g), (s, d, so, dof, g), 0, image_bytes(c.t, s, g), 0)
ENQUEUE(EnqueueCopyImageToBuffer, (P s, P d, Z *so, Z *g, Z dof), (s, d, so, g, dof), 0, image_bytes(c.t, s, g), 0)
ENQUEUE(EnqueueCopyBufferToImage, (P s, P d, Z so, Z *dof, Z *g), (s, d, so, dof, g), 0, image_bytes(c.t, d, g), 0)
ENQUEUE(EnqueueUnmapMemObject, (P b, P p), (b, p), 0, 0, 0)
ENQUEUE(EnqueueReadBufferRect, (P b, U blk, Z *bo, Z *ho, Z *g, Z brp, Z bsp, Z hrp, Z hsp, P p), (b, blk, bo, ho, g, brp, bsp, hrp, hsp, p), 0, volume(g), blk)
ENQUEUE(EnqueueWriteBufferRect, (P b, U blk, Z *bo, Z *ho, Z *g, Z brp, Z bsp, Z hrp, Z hsp, P p), (b, blk, bo, ho, g, brp, bsp, hrp, hsp, p), 0, volume(g), blk)
ENQUEUE(EnqueueCopyBufferRect, (P s, P d, Z *so, Z *dof, Z *g, Z srp, Z ssp, Z drp, Z dsp), (s, d, so, dof, g, srp, ssp, drp, dsp), 0, volume(g), 0)
ENQUEUE(EnqueueFillBuffer, (P b, P pat, Z ps, Z off, Z sz), (b, pat, ps, off, sz), 0, sz, 0)
ENQUEUE(EnqueueFillImage, (P i, P color, Z *o, Z *g), (i, color, o, g), 0, image_bytes(c.t, i, g), 0)
ENQUEUE(EnqueueMigrateMemObjects, (U m, P mems, L flags), (m, mems, flags), 0, 0, 0)
ENQUEUE(EnqueueSVMMemcpy, (U blk, P d, P s, Z sz), (blk, d, s, sz), 0, sz, blk)
ENQUEUE(EnqueueSVMMemFill, (P p, P pat, Z ps, Z sz), (p, pat, ps, sz), 0, sz, 0)
ENQUEUE(EnqueueSVMMap, (U blk, L flags, P p, Z sz), (blk, flags, p, sz), 0, sz, blk)
ENQUEUE(EnqueueSVMUnmap, (P p), (p), 0, 0, 0)
ENQUEUE(EnqueueSVMMigrateMem, (U m, P ptrs, P sizes, L flags), (m, ptrs, sizes, flags), 0, 0, 0)

static P h_EnqueueMapBuffer(P q, P b, U blk, L flags, Z off, Z sz, U n, const P *w, P *ev, I *err) {
  typedef P (*T)(P, P, U, L, Z, Z, U, const P *, P *, I *);
  Call c;
  if (!begin(&c, q)) return V(c.t, EnqueueMapBuffer, T)(q, b, blk, flags, off, sz, n, w, ev, err);
  P *event = open_call(&c, q, ev);
  P r = V(c.t, EnqueueMapBuffer, T)(q, b, blk, flags, off, sz, n, w, event, err);
  close_call(&c, F_EnqueueMapBuffer, !r, 0, sz, blk);
  return r;
}
static P h_EnqueueMapImage(P q, P i, U blk, L flags, Z *o, Z *g, P rp, P sp, U n, const P *w, P *ev, I *err) {
  typedef P (*T)(P, P, U, L, Z *, Z *, P, P, U, const P *, P *, I *);
  Call c;
  if (!begin(&c, q)) return V(c.t, EnqueueMapImage, T)(q, i, blk, flags, o, g, rp, sp, n, w, ev, err);
  uint64_t size = image_bytes(c.t, i, g);
  P *event = open_call(&c, q, ev);
  P r = V(c.t, EnqueueMapImage, T)(q, i, blk, flags, o, g, rp, sp, n, w, event, err);
  close_call(&c, F_EnqueueMapImage, !r, 0, size, blk);
  return r;
}

/* Calls that launch no work of the device: host times only. */
#define HOST(FN, PARAMS, ARGS, OBJECT, QUEUE_, SIZE, WAITS)                                               \
  static I h_##FN PARAMS {                                                                                 \
    typedef I (*T) PARAMS;                                                                                 \
    Call c;                                                                                                \
    if (!begin(&c, OBJECT)) return V(c.t, FN, T) ARGS;                                                     \
    my.deep = 1;                                                                                              \
    P queue = QUEUE_;                                                                                      \
    uint64_t t0 = now();                                                                                   \
    I r = V(c.t, FN, T) ARGS;                                                                              \
    host_call(&c, F_##FN, queue, t0, 0, SIZE, WAITS, r);                                                   \
    my.deep = 0;                                                                                              \
    return r;                                                                                              \
  }
/* An event that has finished already is not waited for: pyopencl asks in every destructor. */
static int unfinished(Table *t, U n, const P *list, P *queue) {
  for (U i = 0; i < n; i++) {
    I status = 1;
    V(t, GetEventInfo, Info)(list[i], 0x11D3, 4, &status, 0);
    if (status > 0) {
      V(t, GetEventInfo, Info)(list[i], 0x11D0, sizeof *queue, queue, 0); /* NULL for a user event */
      return 1;
    }
  }
  return 0;
}
static I h_WaitForEvents(U n, const P *list) {
  typedef I (*T)(U, const P *);
  if (!n || !list || !list[0]) return V(&tables[0], WaitForEvents, T)(n, list);
  Call c;
  if (!begin(&c, list[0])) return V(c.t, WaitForEvents, T)(n, list);
  my.deep = 1;
  P queue = 0;
  int waits = unfinished(c.t, n, list, &queue);
  uint64_t t0 = now();
  I r = V(c.t, WaitForEvents, T)(n, list);
  if (waits) host_call(&c, F_WaitForEvents, queue, t0, 0, 0, 1, r);
  my.deep = 0;
  return r;
}
HOST(Flush, (P q), (q), q, q, 0, 0)
HOST(Finish, (P q), (q), q, q, 0, 1)
HOST(EnqueueMarker, (P q, P *ev), (q, ev), q, q, 0, 0)
HOST(EnqueueWaitForEvents, (P q, U n, const P *w), (q, n, w), q, q, 0, 0)
HOST(EnqueueBarrier, (P q), (q), q, q, 0, 0)
HOST(EnqueueMarkerWithWaitList, (P q, U n, const P *w, P *ev), (q, n, w, ev), q, q, 0, 0)
HOST(EnqueueBarrierWithWaitList, (P q, U n, const P *w, P *ev), (q, n, w, ev), q, q, 0, 0)
HOST(EnqueueSVMFree, (P q, U m, P ptrs, P f, P data, U n, const P *w, P *ev), (q, m, ptrs, f, data, n, w, ev), q, q, 0, 0)
HOST(SetUserEventStatus, (P e, I status), (e, status), e, 0, 0, 0)
HOST(BuildProgram, (P p, U nd, const P *d, const char *o, P f, P data), (p, nd, d, o, f, data), p, 0, 0, 0)
HOST(CompileProgram, (P p, U nd, const P *d, const char *o, U nh, const P *h, const char **hn, P f, P data), (p, nd, d, o, nh, h, hn, f, data), p, 0, 0, 0)

static P h_LinkProgram(P ctx, U nd, const P *d, const char *o, U np, const P *ps, P f, P data, I *err) {
  typedef P (*T)(P, U, const P *, const char *, U, const P *, P, P, I *);
  Call c;
  if (!begin(&c, ctx)) return V(c.t, LinkProgram, T)(ctx, nd, d, o, np, ps, f, data, err);
  my.deep = 1;
  uint64_t t0 = now();
  P r = V(c.t, LinkProgram, T)(ctx, nd, d, o, np, ps, f, data, err);
  host_call(&c, F_LinkProgram, 0, t0, 0, 0, 0, !r);
  my.deep = 0;
  return r;
}

/* A handle is used again after its release: forget what it was called. */
static I h_ReleaseKernel(P k) {
  Table *t = table(k);
  if (map_get(kernel_names, k)) {
    pthread_mutex_lock(&leaf);
    map_del(kernel_names, k);
    pthread_mutex_unlock(&leaf);
  }
  return V(t, ReleaseKernel, One)(k);
}
static I h_ReleaseCommandQueue(P q) {
  Table *t = table(q);
  U references = 0;
  V(t, GetCommandQueueInfo, Info)(q, 0x1092, sizeof references, &references, 0);
  if (!my.deep && recording()) { /* our events hold their queue: give back what can be given */
    my.deep = 1;
    harvest(1 << 30, 4);
    V(t, GetCommandQueueInfo, Info)(q, 0x1092, sizeof references, &references, 0);
    my.deep = 0;
  }
  if (references <= 1) {
    pthread_mutex_lock(&leaf);
    map_del(queue_numbers, q);
    pthread_mutex_unlock(&leaf);
  }
  return V(t, ReleaseCommandQueue, One)(q);
}
static void new_queue(Table *t, P q, int forced) {
  if (!q) return;
  pthread_mutex_lock(&leaf);
  map_del(queue_numbers, q);
  pthread_mutex_unlock(&leaf);
  if (recording()) queue_number(t, q, forced);
}
/* A queue made before the first recorded step is to have stamps as well. */
static int begin_queue(Call *c, P context) { return begin(c, context) || (armed && !my.deep); }
static P h_CreateCommandQueue(P ctx, P device, L props, I *err) {
  typedef P (*T)(P, P, L, I *);
  Call c;
  if (!begin_queue(&c, ctx)) return V(c.t, CreateCommandQueue, T)(ctx, device, props, err);
  my.deep = 1;
  P q = V(c.t, CreateCommandQueue, T)(ctx, device, props | 2, err);
  if (!q) q = V(c.t, CreateCommandQueue, T)(ctx, device, props, err); /* the driver may know better than we */
  new_queue(c.t, q, !(props & 2));
  my.deep = 0;
  return q;
}
/* The text of a program, for the linter. */
static P h_CreateProgramWithSource(P ctx, U n, const char **texts, const Z *lengths, I *err) {
  typedef P (*T)(P, U, const char **, const Z *, I *);
  Call c;
  int heard = begin(&c, ctx);
  P program = V(c.t, CreateProgramWithSource, T)(ctx, n, texts, lengths, err);
  if (!heard || !program) return program;
  pthread_mutex_lock(&leaf);
  uint32_t id = ++names;
  for (U i = 0; i < n; i++) put_text(SOURCE, id, texts[i], lengths && lengths[i] ? lengths[i] : strlen(texts[i]));
  pthread_mutex_unlock(&leaf);
  return program;
}
static P h_CreateCommandQueueWithProperties(P ctx, P device, const L *props, I *err) {
  typedef P (*T)(P, P, const L *, I *);
  Call c;
  if (!begin_queue(&c, ctx)) return V(c.t, CreateCommandQueueWithProperties, T)(ctx, device, props, err);
  L all[64], had = 0, on_device = 0;
  int n = 0;
  for (const L *p = props; p && *p; p += 2) {
    if (n > 58) return V(c.t, CreateCommandQueueWithProperties, T)(ctx, device, props, err); /* more than we can copy */
    if (p[0] == 0x1093) { had = p[1]; on_device = had & 4; continue; }
    all[n++] = p[0];
    all[n++] = p[1];
  }
  all[n++] = 0x1093;
  all[n++] = had | 2;
  all[n] = 0;
  my.deep = 1;
  P q = V(c.t, CreateCommandQueueWithProperties, T)(ctx, device, all, err);
  if (!q) q = V(c.t, CreateCommandQueueWithProperties, T)(ctx, device, props, err);
  if (q && !on_device) new_queue(c.t, q, !(had & 2));
  my.deep = 0;
  return q;
}

/* ---- the operators of our own device ----
 * An observer of kernels/queue.py, as a function of Python's: it runs after each of hundreds of operators in a step, and in
 * Python would cost more than the rest of a recording. What it takes of the interpreter is in the stable ABI, and declared
 * here: who has no compiled hook and builds it on first use may have no Python.h either. Weak, so that the hook loads
 * wherever Python's names are not to be seen.
 */
typedef struct { const char *name; P (*function)(P, P const *, ssize_t); int flags; const char *doc; } Method;
#define WEAK __attribute__((weak)) extern
WEAK P PyCFunction_NewEx(Method *, P self, P module);
WEAK P PyObject_CallFunctionObjArgs(P, ...);
WEAK P PyLong_FromUnsignedLongLong(unsigned long long);
WEAK unsigned long long PyLong_AsUnsignedLongLong(P);
WEAK const char *PyUnicode_AsUTF8AndSize(P, ssize_t *);
WEAK P PyErr_Occurred(void);
WEAK int PyErr_BadArgument(void);
WEAK void Py_IncRef(P), Py_DecRef(P);
WEAK char _Py_NoneStruct, _Py_TrueStruct;

static uint32_t operator_name(P label) { /* 0 and an exception where it is no string */
  uint64_t id = map_get(operator_names, label);
  if (id) return id;
  ssize_t length;
  const char *text = PyUnicode_AsUTF8AndSize(label, &length);
  if (!text) return 0;
  pthread_mutex_lock(&leaf);
  id = put_name(text, length);
  int kept = map_put(operator_names, label, id);
  pthread_mutex_unlock(&leaf);
  if (kept) Py_IncRef(label); /* so that nothing else gets its address */
  return id;
}
/* (name, start, fell back, ...): it ends now. `explain` is called with (name, start, end, fell back) where the thread has waited
 * in the driver and nobody has said why. */
static P operated(P explain, P const *args, ssize_t n) {
  uint64_t t1 = now();
  if (n < 3) { PyErr_BadArgument(); return 0; }
  uint64_t t0 = PyLong_AsUnsignedLongLong(args[1]);
  if (t0 == -1ull && PyErr_Occurred()) return 0;
  if (recording()) {
    uint32_t name = operator_name(args[0]);
    if (!name) return 0;
    Rec r = {.type = OPERATOR, .flags = args[2] == (P)&_Py_TrueStruct ? FELL_BACK : 0, .tid = me(), .name = name,
             .size = -1, .t0 = t0, .t1 = t1 < t0 ? t0 : t1};
    pthread_mutex_lock(&leaf);
    if (recording()) put(&r);
    pthread_mutex_unlock(&leaf);
  }
  if (my.waits != my.told && my.era == era) {
    P end = PyLong_FromUnsignedLongLong(t1);
    P answer = end ? PyObject_CallFunctionObjArgs(explain, args[0], args[1], end, args[2], (P)0) : 0;
    if (end) Py_DecRef(end);
    return answer;
  }
  Py_IncRef((P)&_Py_NoneStruct);
  return (P)&_Py_NoneStruct;
}
P new_observer(P explain) {
  static Method method = {"operated", operated, 0x80 /* METH_FASTCALL */, 0};
  return PyCFunction_NewEx ? PyCFunction_NewEx(&method, explain, 0) : 0;
}

/* ---- what Python calls ---- */
#define HOOK(name, slot) {#name, slot, (P)h_##name},
#define ABI 2 /* abi.py knows it: raise both when a record or a function changes */
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
  appended = written = busy = 0;
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
/* New queues get profiling although nothing is recorded yet. */
void arm(int yes) { armed = yes; }

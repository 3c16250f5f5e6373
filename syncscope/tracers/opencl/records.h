/* A record, the clock of its times, and the file that it goes to: a part of icd.c. */
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
/* of an OPERATOR: how it ran, as kernels/queue.py says it, is a bit, as in model/trace.py */
static uint8_t flags_of(unsigned long long how) { return how == 1 ? 2 : how == 2 ? 4 : 0; }

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
static int full; /* a record has found no room: none is written any more */
static uint64_t file_end, used, appended, written;
/* what was lost: 0 records without room on the disk, 1 stamps of a full ring, 2 stamps the driver refused, 3 maps full */
static uint64_t lost[4];
static uint64_t (*_Atomic asked)(void); /* which line of Python runs on this thread: lines/lines.c */
static inline uint64_t line(void) {
  uint64_t (*ask)(void) = atomic_load_explicit(&asked, memory_order_relaxed);
  return ask ? ask() : 0;
}
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
 * than that in the file knows that the window is the last of them. Where the disk is full the window stays as it is: it is the
 * end of the file, its first record says since when, and what comes is counted.
 */
static int roll(void) { /* whether there was room */
  for (Z done = 0; done < HOT;) {
    ssize_t n = pwrite(fd, hot + done, HOT - done, file_end + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      full = 1;
      ((Rec *)hot)->t1 = monotonic();
      return ftruncate(fd, file_end) && 0; /* a part of a window is not read */
    }
    done += n;
  }
  file_end += HOT;
  appended++;
  memset(hot + sizeof(Rec), 0, HOT - sizeof(Rec));
  __atomic_store_n(&((Rec *)hot)->t0, appended, __ATOMIC_RELEASE); /* last: until then all of it is in the file already */
  used = sizeof(Rec);
  return 1;
}
static void put(const Rec *r) {
  if (!hot || full || (used == HOT && !roll())) { lost[0]++; return; }
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

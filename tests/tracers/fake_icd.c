/* A vendor that does nothing, at once: for what no real driver can be made to do, and for the cost of the hook alone. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
typedef void *P;
typedef int32_t I;
typedef uint32_t U;
typedef uint64_t L;
typedef size_t Z;
typedef struct { P *table; P tagged; L props; U references; } Object;
typedef struct { P *table; P tagged; I status; U references; L stamps[4]; } Event;

P table[149];
/* 0 sane, 1 end before start, 2 all zero, 3 refuses to tell, 4 a clock that runs backwards, 5 stays unfinished,
   6 ends right after it said that there are no stamps yet */
int mood;
L clock_offset = 1000000000000ull;
int live_events, timer_works, refuse_profiling;
static Object platform, device, context, queue, kernel;

static L now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static L spent(void) { /* of this thread's processor time: other programs do not count */
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static I answer(const void *value, Z size, Z room, P out, Z *needed) {
  if (needed) *needed = size;
  if (out && room >= size) memcpy(out, value, size);
  return out && room < size ? -30 : 0;
}
static I device_info(P d, U what, Z room, P out, Z *needed) {
  L memory = 1 << 30;
  if (what == 0x1042) memory = 0; /* no parent: not a sub-device */
  return what == 0x102B ? answer("fake", 5, room, out, needed) : answer(&memory, 8, room, out, needed);
}
static I queue_info(P q, U what, Z room, P out, Z *needed) {
  Object *o = q;
  P d = &device;
  if (what == 0x1093) return answer(&o->props, 8, room, out, needed);
  if (what == 0x1092) return answer(&o->references, 4, room, out, needed);
  return answer(&d, 8, room, out, needed);
}
static I kernel_info(P k, U what, Z room, P out, Z *needed) { return answer("nothing", 8, room, out, needed); }
static I event_info(P e, U what, Z room, P out, Z *needed) {
  P q = &queue;
  return what == 0x11D3 ? answer(&((Event *)e)->status, 4, room, out, needed) : answer(&q, 8, room, out, needed);
}
static I profiling(P e, U what, Z room, P out, Z *needed) {
  I running = ((Event *)e)->status > 0;
  if (mood == 6) ((Event *)e)->status = 0;
  if (mood == 3 || running) return -7; /* CL_PROFILING_INFO_NOT_AVAILABLE */
  return answer(&((Event *)e)->stamps[what - 0x1280], 8, room, out, needed);
}
static I retain(P e) { return __atomic_add_fetch(&((Event *)e)->references, 1, __ATOMIC_ACQ_REL), 0; }
static I release(P e) {
  if (__atomic_sub_fetch(&((Event *)e)->references, 1, __ATOMIC_ACQ_REL)) return 0;
  __atomic_sub_fetch(&live_events, 1, __ATOMIC_RELAXED);
  free(e);
  return 0;
}
static I done(P *event) {
  if (!event) return 0;
  Event *e = malloc(sizeof *e);
  L t = now() + clock_offset;
  *e = (Event){.table = table, .tagged = table, .references = 1, .status = mood >= 5, .stamps = {t, t + 10, t + 20, t + 120}};
  if (mood == 1) e->stamps[3] = e->stamps[2] - 50;
  if (mood == 2) memset(e->stamps, 0, sizeof e->stamps);
  if (mood == 4) e->stamps[0] = t + 30;
  __atomic_add_fetch(&live_events, 1, __ATOMIC_RELAXED);
  *event = e;
  return 0;
}
static I ndrange(P q, P k, U d, Z *o, Z *g, Z *l, U n, P *w, P *e) { return done(e); }
static I read_buffer(P q, P b, U blk, Z off, Z sz, P p, U n, P *w, P *e) { return done(e); }
static I nothing(P q) { return 0; }
static I wait(U n, P *list) { return 0; }
static I timer(P d, L *dev, L *host) {
  if (!timer_works) return -59;
  *host = now();
  *dev = timer_works == 2 ? 12345 : *host + clock_offset; /* 2: another clock than that of the stamps */
  return 0;
}
static I host_timer(P d, L *host) { return *host = now(), 0; }
static P create_queue(P c, P d, L props, I *err) {
  if (err) *err = 0;
  if (refuse_profiling && props & 2) return 0;
  queue.props = props;
  queue.references = 1;
  return &queue;
}

/* The table's address; the objects' first word is the table, or the tag of cl_khr_icd 2.0 and then the table. */
P *setup(int icd2) {
  static P tag[1] = {(P)0x4F50454E434C3331ull};
  memset(table, 0, sizeof table);
  table[3] = device_info, table[9] = create_queue, table[11] = nothing, table[12] = queue_info;
  table[39] = kernel_info, table[41] = wait, table[42] = event_info, table[43] = retain, table[44] = release;
  table[45] = profiling, table[46] = nothing, table[47] = nothing, table[48] = read_buffer, table[59] = ndrange;
  table[140] = timer, table[141] = host_timer;
  Object *all[] = {&platform, &device, &context, &queue, &kernel};
  for (int i = 0; i < 5; i++) all[i]->table = icd2 ? tag : table, all[i]->tagged = table;
  queue.props = 2;
  queue.references = 1;
  mood = 0;
  return table;
}
P platform_handle(void) { return &platform; }
P queue_handle(void) { return &queue; }
P make_queue(L props) { return ((P(*)(P, P, L, I *))table[9])(&context, &device, props, 0); }
/* ns for each of n calls through the table, with an event of the caller's own that is given back at once */
double enqueue(int n) {
  Z global = 64;
  P event;
  L t0 = spent();
  for (int i = 0; i < n; i++) {
    ((I(*)(P, P, U, Z *, Z *, Z *, U, P *, P *))table[59])(&queue, &kernel, 1, 0, &global, 0, 0, 0, &event);
    release(event);
  }
  return (double)(spent() - t0) / n;
}
double blocking_read(int n) {
  char to[4];
  L t0 = spent();
  for (int i = 0; i < n; i++)
    ((I(*)(P, P, U, Z, Z, P, U, P *, P *))table[48])(&queue, &kernel, 1 /* blocking */, 0, 4, to, 0, 0, 0);
  return (double)(spent() - t0) / n;
}

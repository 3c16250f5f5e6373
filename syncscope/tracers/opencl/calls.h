/* Calls of the driver, the records that they make, and the device's stamps of what they launched: a part of icd.c. */
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
           .queue = c->number >> 1, .name = name, .size = size, .t0 = c->t0, .t1 = t1 < c->t0 ? c->t0 : t1, .a = c->group, .b = line()};
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
  r.b = line();
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

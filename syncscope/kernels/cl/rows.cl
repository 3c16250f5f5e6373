// Work-groups of GROUP items over rows of neighbouring elements: LANES items, a team, walk a row side by side, and a work-group
// has TEAMS of them. An item takes V elements at a time, LANES apart: on a GPU neighbours are read by neighbours, and several loads
// are under way; on a CPU a team is one item, and the compiler makes vectors of its eight neighbours.
#define TEAMS (GROUP / LANES)
#define LANE (get_local_id(0) % LANES)
#define TEAM (get_local_id(0) / LANES)

// For every element `i` in [from, to) that falls to this item; `j` < V says into which of its sums.
#define EACH(from, to, ...)                                                                        \
    {                                                                                              \
        const long from_ = (from), to_ = (to), full_ = from_ + (to_ - from_) / (LANES * V) * (LANES * V); \
        for (long k_ = from_ + LANE; k_ < full_; k_ += LANES * V) {                                \
            _Pragma("unroll") for (int j = 0; j < V; j++) { const long i = k_ + j * LANES; __VA_ARGS__ } \
        }                                                                                          \
        for (long i = full_ + LANE; i < to_; i += LANES) { const int j = 0; __VA_ARGS__ }          \
    }

// An item's sums of neighbours V apart, begun by SUMS, and what they come to. A CPU's are made of parts, which EACH_IN_PARTS ends
// after so many elements (`ends`: KEEP of each): little is lost by rounding then, however long a row is.
#if GROUP == 1
#define PART (64 * V)
#define SUMS(x) T x[V] = {0}; WIDE x##_kept[V] = {0};
#define KEEP(x) for (int j = 0; j < V; j++) { x##_kept[j] += x[j]; x[j] = 0; }
#define EACH_IN_PARTS(ends, from, to, ...) \
    for (long part_ = (from), all_ = (to); part_ < all_; part_ += PART) { EACH(part_, min(part_ + PART, all_), __VA_ARGS__) ends }
#define TOTAL(x) total(x##_kept)
#else
#undef WIDE
#define WIDE T
#define SUMS(x) T x[V] = {0};
#define KEEP(x)
#define EACH_IN_PARTS(ends, from, to, ...) EACH(from, to, __VA_ARGS__)
#define TOTAL(x) total(x)
#endif

static inline WIDE total(const WIDE *sums) {
    WIDE sum = 0;
#pragma unroll
    for (int j = 0; j < V; j++) sum += sums[j];
    return sum;
}

// What MEET makes of the values of a team: every item has it. All items of the work-group must come here.
#define TEAM_MEETS(name, MEET)                                              \
    static inline T name(T x, __local T *all) {                             \
        if (LANES == 1) return x;                                           \
        const uint me = get_local_id(0), lane = me % LANES;                 \
        barrier(CLK_LOCAL_MEM_FENCE);                                       \
        all[me] = x;                                                        \
        barrier(CLK_LOCAL_MEM_FENCE);                                       \
        for (uint half_ = LANES / 2; half_; half_ /= 2) {                   \
            if (lane < half_) {                                             \
                const T a = all[me], b = all[me + half_];                   \
                all[me] = MEET;                                             \
            }                                                               \
            barrier(CLK_LOCAL_MEM_FENCE);                                   \
        }                                                                   \
        return all[me - lane];                                              \
    }
#if GROUP == 1
#define team_sum(x, all) (x)
#else
TEAM_MEETS(team_sum, a + b)
#endif
TEAM_MEETS(team_top, a != a || a > b ? a : b)

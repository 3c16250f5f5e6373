// Rows of attention's scores, each of a query: softmax of what a query may see, and its gradient. Scores lie as S, what is made of
// them as O. A team takes a row, which ends in zeros up to its pitch.
#include "rows.cl"
#define LOAD_MADE(p, i) JOIN(LOAD_, MADE)(p, i)

#define ROW                                                                                                     \
    __local T all[GROUP];                                                                                       \
    const uint row = get_group_id(0) * TEAMS + TEAM, query = row % queries;                                     \
    const uint seen = causal ? min(length, query + 1) : length;                                                 \
    const long base = (long)row * pitch, end = row < lines ? base + seen : base;                                \
    const long behind = row < lines ? base + pitch : base;

// BIAS says what is added to scores: 0 nothing, 1 numbers of the tensors' type, 2 nothing where it is true, else minus infinity.
#if BIAS == 0
#define SCORE(i) LOAD(scores, i)
#elif BIAS == 1
#define SCORE(i) (LOAD(scores, i) + LOAD_MADE(bias, ((i) - base) * bias_k))
#else
#define SCORE(i) (bias[((i) - base) * bias_k] ? LOAD(scores, i) : -INFINITY)
#endif

__kernel void attention_softmax(__global const S *scores, __global O *out, __global const B *bias, long bias_at, long bias_z, long bias_h,
                                long bias_q, long bias_k, uint heads, uint lines, uint length, uint pitch, uint queries,
                                int causal) {
    ROW
    const uint head = row / queries;
    bias += bias_at + head / heads * bias_z + head % heads * bias_h + query * bias_q;
    T tops[V];
    SUMS(sums)
    for (int j = 0; j < V; j++) tops[j] = -INFINITY;
    EACH(base, end, const T x = SCORE(i); tops[j] = x != x || x > tops[j] ? x : tops[j];)
    T top = tops[0];
    for (int j = 1; j < V; j++) top = top != top || top > tops[j] ? top : tops[j];
    top = team_top(top, all);
    if (top == -INFINITY) top = 0;  // a query that sees nothing
    EACH_IN_PARTS(KEEP(sums), base, end, sums[j] += exp(SCORE(i) - top);)
    const T sum = team_sum(TOTAL(sums), all), factor = sum == 0 ? 0 : 1 / sum;
    EACH(base, end, STORE(exp(SCORE(i) - top) * factor, out, i);)
    EACH(end, behind, STORE((T)0, out, i);)
}

__kernel void attention_softmax_backward(__global const S *slopes, __global const O *made, __global O *out, uint lines, uint length,
                                         uint pitch, uint queries, int causal) {
    ROW
    SUMS(sums)
    EACH_IN_PARTS(KEEP(sums), base, end, sums[j] += LOAD(slopes, i) * LOAD_MADE(made, i);)
    const T sum = team_sum(TOTAL(sums), all);
    EACH(base, end, STORE(LOAD_MADE(made, i) * (LOAD(slopes, i) - sum), out, i);)
    EACH(end, behind, STORE((T)0, out, i);)
}

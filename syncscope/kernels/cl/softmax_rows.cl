// Softmax along rows of neighbouring elements: a team takes a row.
#include "rows.cl"

#define ROW                                                                                                      \
    __local T all[GROUP];                                                                                        \
    const uint row = get_group_id(0) * TEAMS + TEAM;                                                             \
    const long base = (long)row * length, end = row < lines ? base + length : base;

// A logarithm is left without the sum's; an exponential is divided by the sum.
#define FORWARD(VALUE)                                                                                           \
    ROW                                                                                                          \
    in += at;                                                                                                    \
    T tops[V];                                                                                                   \
    SUMS(sums)                                                                                                   \
    for (int j = 0; j < V; j++) tops[j] = -INFINITY;                                                             \
    EACH(base, end, const T x = LOAD(in, i); tops[j] = x != x || x > tops[j] ? x : tops[j];)                           \
    T top = tops[0];                                                                                             \
    for (int j = 1; j < V; j++) top = top != top || top > tops[j] ? top : tops[j];                               \
    top = team_top(top, all);                                                                                    \
    EACH_IN_PARTS(KEEP(sums), base, end, sums[j] += exp(LOAD(in, i) - top);)                                     \
    const T sum = team_sum(TOTAL(sums), all), shift = log(sum);                                                  \
    EACH(base, end, STORE(VALUE, out, i);)

__kernel void softmax_forward(__global const S *restrict in, long at, __global O *restrict out, uint lines, uint length,
                              uint inner) {
    FORWARD(exp(LOAD(in, i) - top) / sum)
}

__kernel void log_softmax_forward(__global const S *restrict in, long at, __global O *restrict out, uint lines, uint length,
                                  uint inner) {
    FORWARD(LOAD(in, i) - top - shift)
}

#define BACKWARD(ADDED, VALUE)                                                                                   \
    ROW                                                                                                          \
    grad += grad_at;                                                                                             \
    result += at;                                                                                                \
    SUMS(sums)                                                                                                   \
    EACH_IN_PARTS(KEEP(sums), base, end, sums[j] += ADDED;)                                                      \
    const T sum = team_sum(TOTAL(sums), all);                                                                    \
    EACH(base, end, STORE(VALUE, out, i);)

__kernel void softmax_backward(__global const S *restrict grad, long grad_at, __global const S *restrict result, long at,
                               __global O *restrict out, uint lines, uint length, uint inner) {
    BACKWARD(LOAD(grad, i) * LOAD(result, i), (LOAD(grad, i) - sum) * LOAD(result, i))
}

__kernel void log_softmax_backward(__global const S *restrict grad, long grad_at, __global const S *restrict result, long at,
                                   __global O *restrict out, uint lines, uint length, uint inner) {
    BACKWARD(LOAD(grad, i), LOAD(grad, i) - exp(LOAD(result, i)) * sum)
}

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
    T tops[V], sums[V] = {0};                                                                                    \
    for (int j = 0; j < V; j++) tops[j] = -INFINITY;                                                             \
    EACH(base, end, const T x = in[i]; tops[j] = x != x || x > tops[j] ? x : tops[j];)                           \
    T top = tops[0];                                                                                             \
    for (int j = 1; j < V; j++) top = top != top || top > tops[j] ? top : tops[j];                               \
    top = team_top(top, all);                                                                                    \
    EACH(base, end, sums[j] += exp(in[i] - top);)                                                                \
    const T sum = team_sum(total(sums), all), shift = log(sum);                                                  \
    EACH(base, end, out[i] = VALUE;)

__kernel void softmax_forward(__global const T *restrict in, long at, __global T *restrict out, uint lines, uint length,
                              uint inner) {
    FORWARD(exp(in[i] - top) / sum)
}

__kernel void log_softmax_forward(__global const T *restrict in, long at, __global T *restrict out, uint lines, uint length,
                                  uint inner) {
    FORWARD(in[i] - top - shift)
}

#define BACKWARD(ADDED, VALUE)                                                                                   \
    ROW                                                                                                          \
    grad += grad_at;                                                                                             \
    result += at;                                                                                                \
    T sums[V] = {0};                                                                                             \
    EACH(base, end, sums[j] += ADDED;)                                                                           \
    const T sum = team_sum(total(sums), all);                                                                    \
    EACH(base, end, out[i] = VALUE;)

__kernel void softmax_backward(__global const T *restrict grad, long grad_at, __global const T *restrict result, long at,
                               __global T *restrict out, uint lines, uint length, uint inner) {
    BACKWARD(grad[i] * result[i], (grad[i] - sum) * result[i])
}

__kernel void log_softmax_backward(__global const T *restrict grad, long grad_at, __global const T *restrict result, long at,
                                   __global T *restrict out, uint lines, uint length, uint inner) {
    BACKWARD(grad[i], grad[i] - exp(result[i]) * sum)
}

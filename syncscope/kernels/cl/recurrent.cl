// One step of an LSTM or a GRU for one unit of one sequence. Gates are row-major (sequences, 4 or 3 gates, units), and come from the
// input and from the hidden state, with a bias each if there are any.

static inline T squashed(T x) { return 1 / (1 + exp(-x)); }

#define UNIT(gates)                                                                     \
    const uint item = get_global_id(0);                                                 \
    if (item >= total) return;                                                          \
    const uint unit = item % units, at = item / units * gates * units + unit;
#define GATE(g, x, bias) (x[x##_at + at + g * units] + (has_bias ? bias[bias##_at + g * units + unit] : (T)0))

__kernel void lstm_cell(__global const T *given, long given_at, __global const T *kept, long kept_at, __global const T *b, long b_at,
                        __global const T *c, long c_at, int has_bias, __global const T *cx, long cx_at, __global T *hy, long hy_at,
                        __global T *cy, long cy_at, __global T *workspace, long workspace_at, uint total, uint units) {
    UNIT(4)
    workspace += workspace_at + at;
    const T into = squashed(GATE(0, given, b) + GATE(0, kept, c)), forget = squashed(GATE(1, given, b) + GATE(1, kept, c));
    const T cell = tanh(GATE(2, given, b) + GATE(2, kept, c)), out = squashed(GATE(3, given, b) + GATE(3, kept, c));
    const T state = forget * cx[cx_at + item] + into * cell;
    cy[cy_at + item] = state;
    hy[hy_at + item] = out * tanh(state);
    workspace[0] = into;
    workspace[units] = forget;
    workspace[2 * units] = cell;
    workspace[3 * units] = out;
}

__kernel void lstm_cell_backward(__global const T *grad_hy, long grad_hy_at, int has_hy, __global const T *grad_cy, long grad_cy_at,
                                 int has_cy, __global const T *cx, long cx_at, __global const T *cy, long cy_at,
                                 __global const T *workspace, long workspace_at, __global T *gates, long gates_at, __global T *to_cx,
                                 long to_cx_at, uint total, uint units) {
    UNIT(4)
    workspace += workspace_at + at;
    gates += gates_at + at;
    const T into = workspace[0], forget = workspace[units], cell = workspace[2 * units], out = workspace[3 * units];
    const T shown = tanh(cy[cy_at + item]), g = has_hy ? grad_hy[grad_hy_at + item] : (T)0;
    const T through = (has_cy ? grad_cy[grad_cy_at + item] : (T)0) + g * out * (1 - shown * shown);
    gates[0] = through * cell * into * (1 - into);
    gates[units] = through * cx[cx_at + item] * forget * (1 - forget);
    gates[2 * units] = through * into * (1 - cell * cell);
    gates[3 * units] = g * shown * out * (1 - out);
    to_cx[to_cx_at + item] = through * forget;  // which may lie where its own gradient did
}

// The workspace holds reset, update, new, the state before, and the hidden part of new.
__kernel void gru_cell(__global const T *given, long given_at, __global const T *kept, long kept_at, __global const T *b, long b_at,
                       __global const T *c, long c_at, int has_bias, __global const T *hx, long hx_at, __global T *hy,
                       __global T *workspace, uint total, uint units) {
    UNIT(3)
    const T reset = squashed(GATE(0, given, b) + GATE(0, kept, c)), update = squashed(GATE(1, given, b) + GATE(1, kept, c));
    const T hidden = GATE(2, kept, c), state = hx[hx_at + item], made = tanh(GATE(2, given, b) + reset * hidden);
    hy[item] = made + update * (state - made);
    workspace += item / units * 5 * units + unit;
    workspace[0] = reset;
    workspace[units] = update;
    workspace[2 * units] = made;
    workspace[3 * units] = state;
    workspace[4 * units] = hidden;
}

__kernel void gru_cell_backward(__global const T *grad, long grad_at, __global const T *workspace, long workspace_at,
                                __global T *to_given, __global T *to_kept, __global T *to_hx, uint total, uint units) {
    UNIT(3)
    workspace += workspace_at + item / units * 5 * units + unit;
    const T reset = workspace[0], update = workspace[units], made = workspace[2 * units], state = workspace[3 * units];
    const T hidden = workspace[4 * units], g = grad[grad_at + item];
    const T to_new = g * (1 - update) * (1 - made * made);
    to_given[at] = to_kept[at] = to_new * hidden * reset * (1 - reset);
    to_given[at + units] = to_kept[at + units] = g * (state - made) * update * (1 - update);
    to_given[at + 2 * units] = to_new;
    to_kept[at + 2 * units] = to_new * reset;
    to_hx[item] = g * update;
}

// Attention of halves by tensor cores: forward in one kernel, its gradients in two, and no scores are written (Dao, 2023). A warp
// holds 16 rows in registers, its own: queries, or keys and values for their gradients. It walks over TILE rows at a time of the
// other side, which are copied to local memory while those before are multiplied. An item finds what it multiplies next where its
// sums of the scores are. Of a query the logarithm (of two) of its sum is kept: by it the backward pass makes probabilities again.
#define ITEMS (32 * WARPS)
#define ROWS (16 * WARPS)
#define WIDTH ((HEAD + 15) / 16 * 16)
#define PITCH (WIDTH + 8)  // rows that are read together then meet different banks
#define LOG2_E 1.44269504f
#define EVERY(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)
// An item's sums: of 16 x 8 it has two neighbours of a row, and two of the eighth row below.
#define EACH(j, i, columns) EVERY(j, (columns) / 8) EVERY(i, 4)
#define ROW(i) (first + lane / 4 + (i) / 2 * 8)
#define COLUMN(j, i) (8 * (j) + lane % 4 * 2 + (i) % 2)

// Of each tensor where it begins, and the steps to the next of the batch, head, and row; of the bias, key, too.
typedef struct {
    long query[4], key[4], value[4], out[4], grad[4], to_query[4], to_key[4], to_value[4], bias[5];
    int heads, queries, keys;
    float factor;
} Numbers;

#define BEGIN                                                                                                          \
    MMA_BEGIN                                                                                                          \
    __local ushort tiles[2][2][TILE * PITCH] __attribute__((aligned(128)));                                            \
    const int item = get_local_id(0), lane = item % 32, first = get_group_id(0) * ROWS + item / 32 * 16;               \
    const long z = get_group_id(1) / p.heads, h = get_group_id(1) % p.heads;                                           \
    uint part[4];
#define AT(x) x += p.x[0] + z * p.x[1] + h * p.x[2];

// An item's words of rows that are its warp's own.
#define OWN(words, x, count)                                                                                           \
    EACH(d, i, WIDTH / 2) {                                                                                            \
        const int row = first + lane / 4 + i % 2 * 8, column = 16 * d + lane % 4 * 2 + i / 2 * 8;                      \
        words[d][i] = row < count && column < HEAD ? *(__global const uint *)(x + row * p.x[3] + column) : 0;          \
    }

// Copies rows from `from` on of a tensor; beyond its end there are zeros.
#define FETCH(tile, x, from, count)                                                                                    \
    EVERY(turn, (TILE * WIDTH / 8 + ITEMS - 1) / ITEMS) {                                                              \
        const int eight = turn * ITEMS + item, row = eight / (WIDTH / 8), column = eight % (WIDTH / 8) * 8;            \
        if (TILE * WIDTH / 8 % ITEMS == 0 || row < TILE)                                                               \
            COPY8(&tile[row * PITCH + column], x + (from + row) * p.x[3] + column, from + row < count && column < HEAD) \
    }

// sums += own rows times the tile's rows.
#define BY_ROWS(sums, words, tile)                                                                                     \
    EVERY(d, WIDTH / 16) EVERY(j, TILE / 16) {                                                                         \
        uint b0, b1, b2, b3;                                                                                           \
        MATRICES(b0, b1, b2, b3, &tile[(16 * j + lane / 16 * 8 + lane % 8) * PITCH + 16 * d + lane / 8 % 2 * 8])       \
        MULTIPLY(sums[2 * j], words[d], b0, b1)                                                                        \
        MULTIPLY(sums[2 * j + 1], words[d], b2, b3)                                                                    \
    }
// sums += what was made of the scores times the tile's columns.
#define BY_COLUMNS(sums, scores, tile)                                                                                 \
    EVERY(t, TILE / 16) {                                                                                              \
        EVERY(i, 4) BOTH(part[i], scores[2 * t + i / 2][i % 2 * 2], scores[2 * t + i / 2][i % 2 * 2 + 1])              \
        EVERY(j, WIDTH / 16) {                                                                                         \
            uint b0, b1, b2, b3;                                                                                       \
            MATRICES_TURNED(b0, b1, b2, b3, &tile[(16 * t + lane % 16) * PITCH + 16 * j + lane / 16 * 8])              \
            MULTIPLY(sums[2 * j], part, b0, b1)                                                                        \
            MULTIPLY(sums[2 * j + 1], part, b2, b3)                                                                    \
        }                                                                                                              \
    }
#define MULTIPLY(sums, a, b0, b1) MMA_ONCE(sums, sums + 2, (a)[0], (a)[1], (a)[2], (a)[3], b0, b1)

// Where a key is not seen scores become minus infinity. BIAS says what is added: 0 nothing, 1 numbers of the tensors' type, 2 nothing
// where it is true, else minus infinity; what is added to is scaled before, and the others where they become exponents of two.
#if BIAS == 0
#define SCALE factor
#define ADDED(x, query, key) (x)
#else
#define SCALE 1.0f
#if BIAS == 1
#define ADDED(x, query, key) ((x) * factor + LOG2_E * LOAD(bias, (query) * p.bias[3] + (key) * p.bias[4]))
#else
#define ADDED(x, query, key) (bias[(query) * p.bias[3] + (key) * p.bias[4]] ? (x) * factor : -INFINITY)
#endif
#endif
#define LOOK(scores, edge, query, key)                                                                                 \
    if (BIAS || (edge)) EACH(j, i, TILE) {                                                                             \
        const int q = (query), k = (key);                                                                              \
        const int seen = q < p.queries && k < p.keys && (!CAUSAL || k <= q);                                           \
        scores[j][i] = seen ? ADDED(scores[j][i], q, k) : -INFINITY;                                                   \
    }
// What of a causal tile no row of a warp has to do with is passed over: there are no barriers in between, on a GPU.
#define CONCERNS(row) (!ON_GPU || !CAUSAL || (row))

// What the four items have that share a row.
#define MEET(x, HOW)                                                                                                   \
    {                                                                                                                  \
        float other = x;                                                                                               \
        EXCHANGE_BY(other, 1)                                                                                          \
        x = HOW(x, other);                                                                                             \
        other = x;                                                                                                     \
        EXCHANGE_BY(other, 2)                                                                                          \
        x = HOW(x, other);                                                                                             \
    }
#define SUM(a, b) ((a) + (b))

// Items exchange two of four neighbours, so that each writes four of a row, and four items 32 bytes.
#define WRITE(x, sums, by, count)                                                                                      \
    EVERY(half_, 2) EVERY(j, WIDTH / 16) {                                                                             \
        uint one, two;                                                                                                 \
        BOTH(one, sums[2 * j][2 * half_] * (by), sums[2 * j][2 * half_ + 1] * (by))                                    \
        BOTH(two, sums[2 * j + 1][2 * half_] * (by), sums[2 * j + 1][2 * half_ + 1] * (by))                            \
        float given = as_float(lane % 2 ? one : two);                                                                  \
        EXCHANGE_BY(given, 1)                                                                                          \
        const int row = ROW(2 * half_), column = 16 * j + lane % 2 * 8 + lane % 4 / 2 * 4;                             \
        if (row < count && column < HEAD)                                                                              \
            *(__global uint2 *)(x + row * p.x[3] + column) =                                                           \
                lane % 2 ? (uint2)(as_uint(given), two) : (uint2)(one, as_uint(given));                                \
    }

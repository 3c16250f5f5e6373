// Winograd's F(2 x 2, 3 x 3): what 4 x 4 pixels seen make of 2 x 2 pixels takes 16 products for each pair of channels, not 36. With
//     Bt = 1 0 -1 0 | 0 1 1 0 | 0 -1 1 0 | 0 1 0 -1     G = 1 0 0 | 1/2 1/2 1/2 | 1/2 -1/2 1/2 | 0 0 1     At = 1 1 1 0 | 0 1 -1 -1
// it is made = At ((G weight Gt) * (Bt seen B)) A, and the weight's gradient Gt ((A grad At) * (Bt seen B)) G, summed over tiles.
// Transformed tensors are [16][channel][tile], tiles by image, row and column, and zeros to a multiple of four.

// Four numbers, `apart` from one another, to four: Bt, A and G from the left; their transposes likewise.
static inline void seen_4(T *x, int apart) {
    const T a = x[0], b = x[apart], c = x[2 * apart], d = x[3 * apart];
    x[0] = a - c;
    x[apart] = b + c;
    x[2 * apart] = c - b;
    x[3 * apart] = b - d;
}

static inline void grad_4(T *x, int apart) {  // of two
    const T a = x[0], b = x[apart];
    x[apart] = a + b;
    x[2 * apart] = a - b;
    x[3 * apart] = -b;
}

static inline void weight_4(T *x, int apart) {  // of three
    const T a = x[0], b = x[apart], c = x[2 * apart];
    x[apart] = (T)0.5 * (a + b + c);
    x[2 * apart] = (T)0.5 * (a - b + c);
    x[3 * apart] = c;
}

static inline void made_2(T *x, int apart) {
    const T a = x[0], b = x[apart], c = x[2 * apart], d = x[3 * apart];
    x[0] = a + b + c;
    x[apart] = b - c - d;
}

static inline void weight_3(T *x, int apart) {
    const T a = x[0], b = x[apart], c = x[2 * apart], d = x[3 * apart];
    x[0] = a + (T)0.5 * (b + c);
    x[apart] = (T)0.5 * (b - c);
    x[2 * apart] = (T)0.5 * (b + c) + d;
}

#define TILE                                                                                                   \
    const int tile = get_global_id(0), c = get_global_id(1), channels = get_global_size(1);                    \
    if (tile >= room) return;                                                                                  \
    const int x = tile % across * 2, y = tile / across % down * 2, image = tile / across / down;               \
    const bool real = tile < tiles;

// Of `side` x `side` pixels of each tile, the first at (2 x - left, 2 y - top).
#define TRANSFORM(side, STEP)                                                                              \
    TILE                                                                                                   \
    in += at + ((long)image * channels + c) * height * width;                                              \
    T t[16];                                                                                               \
    _Pragma("unroll") for (int i = 0; i < side * side; i++) {                                              \
        const int row = y + i / side - top, column = x + i % side - left;                                  \
        const bool inside = real && (uint)row < (uint)height && (uint)column < (uint)width;                \
        t[i / side * 4 + i % side] = inside ? LOAD(in, row * width + column) : (T)0;                          \
    }                                                                                                      \
    _Pragma("unroll") for (int i = 0; i < side; i++) STEP(t + 4 * i, 1);                                   \
    _Pragma("unroll") for (int i = 0; i < 4; i++) STEP(t + i, 4);                                          \
    _Pragma("unroll") for (int i = 0; i < 16; i++) out[((long)i * channels + c) * room + tile] = t[i];

__kernel void winograd_seen(__global const S *restrict in, long at, __global T *restrict out, int height, int width, int top,
                            int left, int down, int across, int tiles, int room) {
    TRANSFORM(4, seen_4)
}

__kernel void winograd_grad(__global const S *restrict in, long at, __global T *restrict out, int height, int width, int top,
                            int left, int down, int across, int tiles, int room) {
    TRANSFORM(2, grad_4)
}

// The 2 x 2 pixels of each tile.
__kernel void winograd_made(__global const T *restrict in, __global O *restrict out, long at, __global const S *bias, long bias_at,
                            int has_bias, int height, int width, int down, int across, int tiles, int room) {
    TILE
    if (!real) return;
    T t[16];
#pragma unroll
    for (int i = 0; i < 16; i++) t[i] = in[((long)i * channels + c) * room + tile];
#pragma unroll
    for (int i = 0; i < 4; i++) made_2(t + 4 * i, 1);
#pragma unroll
    for (int i = 0; i < 2; i++) made_2(t + i, 4);
    const T more = has_bias ? LOAD(bias, bias_at + c) : (T)0;
    out += at + ((long)image * channels + c) * height * width;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (y + i / 2 < height && x + i % 2 < width) STORE(t[i / 2 * 4 + i % 2] + more, out, (y + i / 2) * width + x + i % 2);
}

// A weight [made][read][3][3] as [16][made][read]; TURNED is for the way back, by half a turn: [16][read][made].
__kernel void winograd_weight(__global const S *restrict in, long at, __global T *restrict out, int made, int read) {
    const int k = get_global_id(0);
    if (k >= made * read) return;
    const int m = TURNED ? k % made : k / read, r = TURNED ? k / made : k % read;
    in += at + (m * read + r) * 9;
    T t[16];
#pragma unroll
    for (int i = 0; i < 9; i++) t[i / 3 * 4 + i % 3] = LOAD(in, TURNED ? 8 - i : i);
#pragma unroll
    for (int i = 0; i < 3; i++) weight_4(t + 4 * i, 1);
#pragma unroll
    for (int i = 0; i < 4; i++) weight_4(t + i, 4);
#pragma unroll
    for (int i = 0; i < 16; i++) out[(long)i * made * read + k] = t[i];
}

// [16][made][read] to the gradient of a weight.
__kernel void winograd_to_weight(__global const T *restrict in, __global O *restrict out, long at, int count) {
    const int k = get_global_id(0);
    if (k >= count) return;
    T t[16];
#pragma unroll
    for (int i = 0; i < 16; i++) t[i] = in[(long)i * count + k];
#pragma unroll
    for (int i = 0; i < 4; i++) weight_3(t + 4 * i, 1);
#pragma unroll
    for (int i = 0; i < 3; i++) weight_3(t + i, 4);
#pragma unroll
    for (int i = 0; i < 9; i++) STORE(t[i / 3 * 4 + i % 3], out, at + k * 9 + i);
}

// Images (N, C, H, W) with zeros around each. An item makes a row.
__kernel void conv_pad(__global const S *in, long in_at, __global S *out, int H, int W, int top, int left, int HP, int WP,
                       uint rows) {
    const uint i = get_global_id(0);
    if (i >= rows) return;
    const int y = (int)(i % HP) - top;
    const int begin = y >= 0 && y < H ? left : WP, end = min(begin + W, WP);
    in += in_at + ((long)(i / HP) * H + y) * W - left;
    out += (long)i * WP;
    for (int x = 0; x < begin; x++) out[x] = 0;
    for (int x = begin; x < end; x++) out[x] = in[x];
    for (int x = end; x < WP; x++) out[x] = 0;
}

// Images (N, C, P) as (N, P, C): neighbours of a pixel, then its channels, are read and written together. Floats that are multiplied
// in TF32 are rounded to its eleven bits.
#if ROUND
#define MOVED(x) (isnan(x) ? (x) : as_float((as_uint(x) + 0x1000u) & 0xffffe000u))
#else
#define MOVED(x) (x)
#endif
#define SIDE 64

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void conv_channels_last(__global const S *in, long in_at, __global S *out, int C, int P) {
    __local S tile[SIDE][SIDE + 4 / sizeof(S)];
    const int item = get_local_id(0), here = item % SIDE, row = item / SIDE;
    const int across = (P + SIDE - 1) / SIDE, p0 = get_group_id(0) % across * SIDE, c0 = get_group_id(1) * SIDE;
    const long image = (long)(get_group_id(0) / across) * C * P;
    in += in_at + image;
    out += image;
    for (int i = row; i < SIDE; i += 256 / SIDE)
        if (c0 + i < C && p0 + here < P) tile[i][here] = in[(c0 + i) * P + p0 + here];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = row; i < SIDE; i += 256 / SIDE)
        if (p0 + i < P && c0 + here < C) out[(p0 + i) * C + c0 + here] = MOVED(tile[here][i]);
}

// The same where there are few pixels, as in weights: an item for each element.
__kernel void conv_few_channels_last(__global const S *in, long in_at, __global S *out, int C, int P, uint total) {
    const uint i = get_global_id(0), c = i % C, image = i / C / P;
    if (i >= total) return;
    out[i] = MOVED(in[in_at + ((long)image * C + c) * P + i / C % P]);
}

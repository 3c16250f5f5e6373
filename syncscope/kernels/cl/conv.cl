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

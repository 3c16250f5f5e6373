// Convolutions over row-major images (N, C, H, W).

// Zeros around each image, and to the right of it so that reading eight pixels never leaves the row.
__kernel void conv2d_pad(__global const T *in, long in_at, __global T *out, int H, int W, int top, int left, int HP, int WP,
                         uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const uint row = i / WP;
    const int x = (int)(i - row * WP) - left;
    const uint image = row / HP;
    const int y = (int)(row - image * HP) - top;
    out[i] = (x >= 0 && x < W && y >= 0 && y < H) ? in[in_at + ((long)image * H + y) * W + x] : (T)0;
}

#ifdef KH
// Stride 1: an item makes 8 pixels of CO_BLOCK channels from a padded input. The weight's strides are free, so that the
// gradient of the input is the same work on the flipped and transposed weight.
static inline void convolve(__global const T *in, __global const T *weight, __global const T *bias, __global T *out,
                            long w_at, int w_co, int w_ci, int w_y, int w_x, int has_bias, long bias_at,
                            int CI, int CO, int HP, int WP, int OH, int OW) {
    const int x = get_global_id(0) * 8, y = get_global_id(1);
    const int blocks = (CO + CO_BLOCK - 1) / CO_BLOCK;
    const int image = get_global_id(2) / blocks, co = (get_global_id(2) % blocks) * CO_BLOCK;
    if (x >= OW || y >= OH) return;
    T8 sum[CO_BLOCK];
    __global const T *w[CO_BLOCK];
#pragma unroll
    for (int c = 0; c < CO_BLOCK; c++) {
        const int channel = min(co + c, CO - 1);
        sum[c] = (T8)(has_bias ? bias[bias_at + channel] : (T)0);
        w[c] = weight + w_at + channel * w_co;
    }
    __global const T *rows = in + ((long)image * CI * HP + y) * WP + x;
    for (int ci = 0; ci < CI; ci++, rows += HP * WP) {
        const int w_channel = ci * w_ci;
#pragma unroll
        for (int ky = 0; ky < KH; ky++) {
#pragma unroll
            for (int kx = 0; kx < KW; kx++) {
                const T8 v = LD8(rows + ky * WP + kx);
                const int at = w_channel + ky * w_y + kx * w_x;
#pragma unroll
                for (int c = 0; c < CO_BLOCK; c++) sum[c] += w[c][at] * v;
            }
        }
    }
    const int width = min(8, OW - x);
    for (int c = 0; c < CO_BLOCK && co + c < CO; c++) {
        __global T *pixels = out + (((long)image * CO + co + c) * OH + y) * OW + x;
        if (width == 8) {
            ST8(sum[c], pixels);
        } else {
            const T *lanes = (const T *)&sum[c];
            for (int j = 0; j < width; j++) pixels[j] = lanes[j];
        }
    }
}

__kernel void conv2d_forward(__global const T *in, __global const T *weight, __global const T *bias, __global T *out,
                             long w_at, int w_co, int w_ci, int w_y, int w_x, int has_bias, long bias_at,
                             int CI, int CO, int HP, int WP, int OH, int OW) {
    convolve(in, weight, bias, out, w_at, w_co, w_ci, w_y, w_x, has_bias, bias_at, CI, CO, HP, WP, OH, OW);
}

__kernel void conv2d_backward_input(__global const T *in, __global const T *weight, __global const T *bias, __global T *out,
                                    long w_at, int w_co, int w_ci, int w_y, int w_x, int has_bias, long bias_at,
                                    int CI, int CO, int HP, int WP, int OH, int OW) {
    convolve(in, weight, bias, out, w_at, w_co, w_ci, w_y, w_x, has_bias, bias_at, CI, CO, HP, WP, OH, OW);
}

// Stride 1: an item sums one (co, ci) plane of the weight's gradient over a share of the rows of all images; the shares are
// added up afterwards. The gradient's rows are padded with zeros to a multiple of eight.
__kernel void conv2d_backward_weight(__global const T *in, __global const T *grad, __global T *out,
                                     int CI, int CO, int HP, int WP, int OH, int GW, int rows, int shares, uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const int share = i / (CO * CI), plane = i % (CO * CI);
    const int co = plane / CI, ci = plane % CI;
    const int first = (long)rows * share / shares, last = (long)rows * (share + 1) / shares;
    T8 sum[KH * KW];
#pragma unroll
    for (int k = 0; k < KH * KW; k++) sum[k] = (T8)(0);
    for (int row = first; row < last; row++) {
        const int image = row / OH, y = row % OH;
        __global const T *g = grad + (((long)image * CO + co) * OH + y) * GW;
        __global const T *v = in + (((long)image * CI + ci) * HP + y) * WP;
        for (int x = 0; x < GW; x += 8) {
            const T8 weight = LD8(g + x);
#pragma unroll
            for (int ky = 0; ky < KH; ky++)
#pragma unroll
                for (int kx = 0; kx < KW; kx++) sum[ky * KW + kx] += weight * LD8(v + ky * WP + kx + x);
        }
    }
#pragma unroll
    for (int k = 0; k < KH * KW; k++) {
        const T8 s = sum[k];
        out[(long)i * KH * KW + k] = ((s.s0 + s.s1) + (s.s2 + s.s3)) + ((s.s4 + s.s5) + (s.s6 + s.s7));
    }
}
#endif

// What each output pixel sees of the input, as a matrix of (pixel, tap) or (tap, pixel) for the matrix product, in panels of eight
// columns: [image][columns / 8][rows][8]. A tap is a channel and a place in the window. An item makes a row of a panel.
__kernel void conv2d_im2col(__global const T *in, long in_at, __global T *panels, int taps_are_rows, int CI, int H, int W, int OH,
                            int OW, int kh, int kw, int sh, int sw, int ph, int pw, int dh, int dw, uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const int taps = CI * kh * kw, pixels = OH * OW;
    const int rows = taps_are_rows ? taps : pixels, columns = taps_are_rows ? pixels : taps;
    const int row = i % rows, panel = i / rows % ((columns + 7) / 8), image = i / rows / ((columns + 7) / 8);
    __global T *to = panels + (long)i * 8;
    for (int j = 0; j < 8; j++) {
        const int column = panel * 8 + j;
        const int tap = taps_are_rows ? row : column, pixel = taps_are_rows ? column : row;
        T value = 0;
        if (column < columns) {
            const int kx = tap % kw, ky = tap / kw % kh, ci = tap / kw / kh;
            const int y = pixel / OW * sh - ph + ky * dh, x = pixel % OW * sw - pw + kx * dw;
            if (y >= 0 && y < H && x >= 0 && x < W) value = in[in_at + (((long)image * CI + ci) * H + y) * W + x];
        }
        to[j] = value;
    }
}

// The sum, for one input pixel, of everything that saw it: columns is (image, tap, output pixel).
__kernel void conv2d_col2im(__global const T *columns, __global T *out, int CI, int H, int W, int OH, int OW, int kh, int kw, int sh,
                            int sw, int ph, int pw, int dh, int dw, uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const int x = i % W, y = i / W % H, ci = i / W / H % CI, image = i / W / H / CI;
    T sum = 0;
    for (int ky = 0; ky < kh; ky++) {
        const int ty = y + ph - ky * dh, oy = ty / sh;
        if (ty < 0 || ty % sh || oy >= OH) continue;
        for (int kx = 0; kx < kw; kx++) {
            const int tx = x + pw - kx * dw, ox = tx / sw;
            if (tx < 0 || tx % sw || ox >= OW) continue;
            const int tap = (ci * kh + ky) * kw + kx;
            sum += columns[((long)image * CI * kh * kw + tap) * OH * OW + oy * OW + ox];
        }
    }
    out[i] = sum;
}

// Any stride, padding, dilation and groups: an item makes one element.
__kernel void conv2d_forward_direct(__global const T *in, long in_at, __global const T *weight, long w_at,
                                    __global const T *bias, long bias_at, int has_bias, __global T *out, int CI, int CO, int H,
                                    int W, int OH, int OW, int kh, int kw, int sh, int sw, int ph, int pw, int dh, int dw,
                                    int groups, int N) {
    const uint i = get_global_id(0);
    if (i >= (uint)N * CO * OH * OW) return;
    const int x = i % OW, y = i / OW % OH, co = i / OW / OH % CO, image = i / OW / OH / CO;
    const int CG = CI / groups, first = co / (CO / groups) * CG;
    T sum = has_bias ? bias[bias_at + co] : (T)0;
    for (int c = 0; c < CG; c++)
        for (int ky = 0; ky < kh; ky++) {
            const int iy = y * sh - ph + ky * dh;
            if (iy < 0 || iy >= H) continue;
            for (int kx = 0; kx < kw; kx++) {
                const int ix = x * sw - pw + kx * dw;
                if (ix < 0 || ix >= W) continue;
                sum += in[in_at + (((long)image * CI + first + c) * H + iy) * W + ix] *
                       weight[w_at + (((long)co * CG + c) * kh + ky) * kw + kx];
            }
        }
    out[i] = sum;
}

// Also the forward of a transposed convolution, which has a bias.
__kernel void conv2d_backward_input_direct(__global const T *grad, long g_at, __global const T *weight, long w_at,
                                           __global const T *bias, long bias_at, int has_bias, __global T *out, int CI, int CO,
                                           int H, int W, int OH, int OW, int kh, int kw, int sh, int sw, int ph, int pw, int dh,
                                           int dw, int groups, int N) {
    const uint i = get_global_id(0);
    if (i >= (uint)N * CI * H * W) return;
    const int x = i % W, y = i / W % H, ci = i / W / H % CI, image = i / W / H / CI;
    const int CG = CI / groups, OG = CO / groups, first = ci / CG * OG;
    T sum = has_bias ? bias[bias_at + ci] : (T)0;
    for (int ky = 0; ky < kh; ky++) {
        const int ty = y + ph - ky * dh, oy = ty / sh;
        if (ty < 0 || ty % sh || oy >= OH) continue;
        for (int kx = 0; kx < kw; kx++) {
            const int tx = x + pw - kx * dw, ox = tx / sw;
            if (tx < 0 || tx % sw || ox >= OW) continue;
            for (int c = 0; c < OG; c++)
                sum += grad[g_at + (((long)image * CO + first + c) * OH + oy) * OW + ox] *
                       weight[w_at + (((long)(first + c) * CG + ci % CG) * kh + ky) * kw + kx];
        }
    }
    out[i] = sum;
}

__kernel void conv2d_backward_weight_direct(__global const T *in, long in_at, __global const T *grad, long g_at,
                                            __global T *out, int CI, int CO, int H, int W, int OH, int OW, int kh, int kw,
                                            int sh, int sw, int ph, int pw, int dh, int dw, int groups, int N) {
    const uint i = get_global_id(0);
    const int CG = CI / groups;
    if (i >= (uint)CO * CG * kh * kw) return;
    const int kx = i % kw, ky = i / kw % kh, c = i / kw / kh % CG, co = i / kw / kh / CG;
    const int ci = co / (CO / groups) * CG + c;
    T sum = 0;
    for (int image = 0; image < N; image++)
        for (int y = 0; y < OH; y++) {
            const int iy = y * sh - ph + ky * dh;
            if (iy < 0 || iy >= H) continue;
            for (int x = 0; x < OW; x++) {
                const int ix = x * sw - pw + kx * dw;
                if (ix < 0 || ix >= W) continue;
                sum += in[in_at + (((long)image * CI + ci) * H + iy) * W + ix] *
                       grad[g_at + (((long)image * CO + co) * OH + y) * OW + x];
            }
        }
    out[i] = sum;
}

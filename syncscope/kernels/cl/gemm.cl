// out[b] = alpha * a[b] x c[b] (+ beta * bias[b]), row-major out of M x N. An item makes 8 rows x 8 columns without local memory:
// on a CPU this reaches the order of the vendor's library, where the textbook's tiles with barriers are twenty times slower.

// Copies any matrix (K x N) into panels of eight columns, [N / 8][K][8], padded with zeros: an item of gemm then reads memory
// from front to back, where rows that are a power of two apart would evict each other from the cache.
__kernel void gemm_pack(__global const T *c, long c_at, long c_batch, long c_row, long c_col, __global T *panels, int N, int K,
                        uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const int k = i % K, panel = i / K % ((N + 7) / 8);
    const long batch = i / K / ((N + 7) / 8);
    __global const T *from = c + c_at + batch * c_batch + k * c_row + (long)panel * 8 * c_col;
    __global T *to = panels + (long)i * 8;
    const int width = min(8, N - panel * 8);
    for (int j = 0; j < 8; j++) to[j] = j < width ? from[j * c_col] : (T)0;
}

// a has any strides; a row of eight columns of c is `c_row` after the last, the next eight columns are `c_panel` further; bias
// has any strides (0 broadcasts). Unless c is PACKED its last columns are read one by one.
__kernel void gemm(__global const T *a, long a_at, long a_batch, long a_row, long a_col,
                   __global const T *c, long c_at, long c_batch, long c_row, long c_panel,
                   __global const T *bias, long bias_at, long bias_batch, long bias_row, long bias_col,
                   __global T *out, long out_at, int M, int N, int K, T alpha, T beta) {
    const int n = get_global_id(0) * 8, m = get_global_id(1) * 8;
    const long batch = get_global_id(2);
    if (n >= N || m >= M) return;
    __global const T *rows[8];
    for (int r = 0; r < 8; r++) rows[r] = a + a_at + batch * a_batch + min(m + r, M - 1) * a_row;
    c += c_at + batch * c_batch + n / 8 * c_panel;
    out += out_at + batch * M * N + n;
    const int height = min(8, M - m), width = min(8, N - n);
    T8 sum[8];
    for (int r = 0; r < 8; r++) sum[r] = (T8)(0);
    if (PACKED || width == 8) {
        for (int k = 0; k < K; k++) {
            const T8 v = LD8(c + k * c_row);
            const long at = k * a_col;
#pragma unroll
            for (int r = 0; r < 8; r++) sum[r] += rows[r][at] * v;
        }
    } else {
        for (int k = 0; k < K; k++) {
            T8 v = (T8)(0);
            T *lanes = (T *)&v;
            for (int j = 0; j < width; j++) lanes[j] = c[k * c_row + j];
            const long at = k * a_col;
#pragma unroll
            for (int r = 0; r < 8; r++) sum[r] += rows[r][at] * v;
        }
    }
    for (int r = 0; r < height; r++) {
        const T *lanes = (const T *)&sum[r];
        for (int j = 0; j < width; j++) {
            T value = alpha * lanes[j];
#if HAS_BIAS
            value += beta * bias[bias_at + batch * bias_batch + (m + r) * bias_row + (n + j) * bias_col];
#endif
            out[(long)(m + r) * N + j] = value;
        }
    }
}

// out[b] = alpha * a[b] x c[b] (+ beta * bias[b]), row-major out of M x N; an item makes 8 rows x 8 columns, without local memory.
// a has any strides; the columns of c lie side by side; bias has any strides (0 broadcasts).

__kernel void gemm(__global const T *a, long a_at, long a_batch, long a_row, long a_col,
                   __global const T *c, long c_at, long c_batch, long c_row,
                   __global const T *bias, long bias_at, long bias_batch, long bias_row, long bias_col,
                   __global T *out, long out_at, int M, int N, int K, T alpha, T beta) {
    const int n = get_global_id(0) * 8, m = get_global_id(1) * 8;
    const long batch = get_global_id(2);
    if (n >= N || m >= M) return;
    __global const T *rows[8];
    for (int r = 0; r < 8; r++) rows[r] = a + a_at + batch * a_batch + min(m + r, M - 1) * a_row;
    c += c_at + batch * c_batch + n;
    out += out_at + batch * M * N + n;
    const int height = min(8, M - m), width = min(8, N - n);
    T8 sum[8];
    for (int r = 0; r < 8; r++) sum[r] = (T8)(0);
    if (width == 8) {
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

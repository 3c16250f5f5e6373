// Running sums along rows, in three steps: the sum of each chunk, the running sum of those, and the chunks once more from there.
// A row of `length` elements is cut into `chunks` of `chunk`.

__kernel void scan_chunk_sums(__global const T *in, long at, __global S *sums, uint rows, uint length,
                              uint chunk, uint chunks) {
    const uint i = get_global_id(0);
    if (i >= rows * chunks) return;
    const uint row = i / chunks, begin = (i % chunks) * chunk, end = min(begin + chunk, length);
    S sum = 0;
    for (uint k = begin; k < end; k++) sum += ENTER(in[at + (long)row * length + k]);
    sums[i] = sum;
}

// In place; an item takes a row. The last sum of each row, which nobody needs to come back to, is its total.
__kernel void scan_sums(__global S *sums, __global S *totals, uint rows, uint chunks) {
    const uint row = get_global_id(0);
    if (row >= rows) return;
    S sum = 0;
    for (uint c = 0; c < chunks; c++) {
        const S here = sums[row * chunks + c];
        sums[row * chunks + c] = sum;
        sum += here;
    }
    totals[row] = sum;
}

// `sums` holds what comes before each chunk. Inclusive: out[k] is the sum up to and with k.
__kernel void scan_chunks(__global const T *in, long at, __global const S *sums, __global O *out,
                          long out_at, uint rows, uint length, uint chunk, uint chunks) {
    const uint i = get_global_id(0);
    if (i >= rows * chunks) return;
    const uint row = i / chunks, begin = (i % chunks) * chunk, end = min(begin + chunk, length);
    S sum = sums[i];
    for (uint k = begin; k < end; k++) {
        sum += ENTER(in[at + (long)row * length + k]);
        out[out_at + (long)row * length + k] = (O)sum;
    }
}

// Where an element is not zero, its place in a row-major tensor, as coordinates: out[n][rank].
__kernel void nonzero_scatter(__global const T *in, long at, __global const long *sums, __global long *out, long room, int rank,
                              uint n0, uint n1, uint n2, uint n3, uint n4, uint n5, uint n6, uint n7, uint length, uint chunk,
                              uint chunks) {
    const uint i = get_global_id(0);
    if (i >= chunks) return;
    const uint sizes[8] = {n0, n1, n2, n3, n4, n5, n6, n7};
    long place = sums[i];
    const uint end = min(i * chunk + chunk, length);
    for (uint k = i * chunk; k < end; k++) {
        if (in[at + k] == 0) continue;
        uint rest = k;
        if (place < room)
            for (int d = rank - 1; d >= 0; d--) {
                out[place * rank + d] = rest % sizes[d];
                rest /= sizes[d];
            }
        place++;
    }
}

// The sum of the parts that groups have left of a contraction (split.py).

@divide@@fields@
__kernel void @name@_sum(__global const T *parts, int count, @arguments@) {
    const int i = get_global_id(0), total = p.Z * p.M * p.N;
    if (i >= total) return;
    const int row = DIVIDE(i, N), n = i - row * p.N, z = DIVIDE(row, M), m = row - z * p.M;
    @loops@
    T sum = 0;
    for (int part = 0; part < count; part++) sum += parts[(long)part * total + i];
    @store@
}

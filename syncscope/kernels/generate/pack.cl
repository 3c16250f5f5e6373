// The copy of a left operand, [z][k][m], that a contraction reads (gpu.packing).

@divide@@fields@
__kernel void @name@_pack_a(__global const S *x, long x_at, __global S *to, Numbers p) {
    const int i = get_global_id(0);
    if (i >= @total@) return;
    const int row = DIVIDE(i, width), m = min(i - row * p.width, @m@ - 1);
    const int z = DIVIDE(row, depth), k = row - z * p.depth;
    @loops@
    to[i] = x[x_at + @at@];
}

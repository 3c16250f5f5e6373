// A contraction on a GPU (gpu.py): @words@ stand for what is written for its loops, operands and schedule.

@divide@#define T4 JOIN(T, 4)
@products@@fetching@@fields@
__kernel __attribute__((reqd_work_group_size(@items@, 1, 1)))
void @name@(__global const S *a, long a_at, __global const S *b, long b_at, @arguments@) {
    @tiles@
    const int item = get_local_id(0), lane = item % 32, warp = item / 32;
    const int down = (@m@ + @bm@ - 1) / @bm@, over = (@n@ + @bn@ - 1) / @bn@;
    const int band = get_group_id(0) / (down * @band@), spot = get_group_id(0) % (down * @band@);
    const int wide = min(@band@, over - band * @band@);
    const int m0 = spot / wide * @bm@, n0 = (band * @band@ + spot % wide) * @bn@;
    @z_and_part@
    @z_lines@
    int k0 = part * @chunk@;
    const int k_end = min(@k@, k0 + @chunk@);
    @begin@
    @sums@;
#pragma unroll
    for (int r = 0; r < @tm@; r++)
#pragma unroll
        for (int q = 0; q < @vectors@; q++) { @nothing@ }
    @walk@
    @store@
}

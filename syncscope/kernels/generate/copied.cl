// The walk along k of a contraction (gpu.py): the next steps are copied to local memory while this one is multiplied.

    int now = 0, there = 0;
    for (; there < @stages@ - 1; there++) {
        if (k0 < k_end) {
            @fetch@
        }
        COPIES_END
        k0 += @bk@;
    }
    for (int left = (k_end - part * @chunk@ + @bk@ - 1) / @bk@; left > 0; left--) {
        COPIES_WAIT(@left@)
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k0 < k_end) {
            @fetch@
        }
        COPIES_END
        k0 += @bk@;
#pragma unroll
        @multiply@
        now = now == @stages@ - 1 ? 0 : now + 1;
        there = there == @stages@ - 1 ? 0 : there + 1;
    }

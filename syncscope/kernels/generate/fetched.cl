// The walk along k of a contraction (gpu.py): the next step comes through registers while this one is multiplied.

    int now = 0;
    @fetch@ @keep_first@
    barrier(CLK_LOCAL_MEM_FENCE);
    for (;;) {
        k0 += @bk@;
        const int more = k0 < k_end;
        if (more) {
            @fetch@
        }
#pragma unroll
        @multiply@
        if (!more) break;
        now ^= 1;
        @keep@
        barrier(CLK_LOCAL_MEM_FENCE);
    }

// A fold on a GPU (fold.py): @deep@ items share an output and a work-group has @wide@ outputs: neighbours read neighbours, whichever
// way they lie.

    __local @state@ states[@wide@ * @deep@];
    @places@
    const uint me = get_local_id(0);
    const uint @where@, o = get_group_id(0) * @wide@ + x, share = get_group_id(1), lane = 0;
    const long base = in_at + (long)(o / n1) * ns0 + (long)(o % n1) * ns1;
    @state@ acc = @start@;
    @place@
    const uint begin = share * length + y, end = o < outputs ? min(share * length + length, (uint)(r0 * r1)) : 0;
    uint k0 = begin / r1, k1 = begin % r1;
    const uint step0 = @deep@ / r1, step1 = @deep@ % r1;
    for (uint k = begin; k < end; k += @deep@) {
        const long spot = base + (long)k0 * rs0 + (long)k1 * rs1;
        @enter@
        k0 += step0;
        k1 += step1;
        if (k1 >= r1) { k1 -= r1; k0++; }
    }
    for (uint half_ = @deep@ / 2; half_; half_ /= 2) {
        states[me] = acc;
        @leave@
        barrier(CLK_LOCAL_MEM_FENCE);
        if (y < half_@there@) {
            const @state@ other = states[me + half_ * @next@];
            @other_place@
            @meet@
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (y == 0 && o < outputs) {

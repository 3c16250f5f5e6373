// A fold on a CPU (fold.py): an item walks all elements of its output, in one state, which may remember a place.

    const uint i = get_global_id(0);
    if (i >= outputs * shares) return;
    const uint o = i / shares, share = i % shares, lane = 0;
    const uint o1 = o % n1, o0 = o / n1;
    const long base = in_at + (long)o0 * ns0 + (long)o1 * ns1;
    @state@ acc = @start@;
    @place@
    const uint begin = share * length, end = min(begin + length, (uint)(r0 * r1));
    uint k0 = begin / r1, k1 = begin % r1;
    for (uint k = begin; k < end;) {
        const uint run = min(end - k, r1 - k1);
        long spot = base + (long)k0 * rs0 + (long)k1 * rs1;
        for (const uint stop = k + run; k < stop; k++, spot += rs1) { @enter@ }
        k0++;
        k1 = 0;
    }
    {

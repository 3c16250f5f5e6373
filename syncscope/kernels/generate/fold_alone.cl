// A fold on a CPU (fold.py): an item walks all elements of its outputs. There are @lanes@ of them side by side, or one with @ways@
// states of every so many-th element each: no element waits for the one before then. What states come to is put together after
// so many elements, sums in double precision: little is lost by rounding, however many there are.

    const uint i = get_global_id(0);
    if (i >= outputs / @lanes@ * shares) return;
    const uint o = i / shares * @lanes@, share = i % shares;
    const uint o1 = o % n1, o0 = o / n1;
    const long base = in_at + (long)o0 * ns0 + (long)o1 * ns1;
    @state@ states[@states@];
    @wide@ kept[@states@];
    for (int j = 0; j < @states@; j++) { states[j] = @start@; kept[j] = @start@; }
    const uint begin = share * length, end = min(begin + length, (uint)(r0 * r1));
    uint k0 = begin / r1, k1 = begin % r1, room = @part@;
    for (uint k = begin; k < end;) {
        const uint run = min(min(end - k, r1 - k1), room), stop = k + run;
        long from = base + (long)k0 * rs0 + (long)k1 * rs1;
        @walk@
        k1 += run;
        if (k1 == r1) { k0++; k1 = 0; }
        room -= run;
        if (room && k < end) continue;
        room = @part@;
        for (int j = 0; j < @states@; j++) {
            @wide@ acc = kept[j];
            const @wide@ other = states[j];
            acc = @meet@;
            kept[j] = acc;
            states[j] = @start@;
        }
    }
    for (int lane = 0; lane < @lanes@; lane++) {
        @wide@ acc = kept[lane];
        for (int way = 1; way < @ways@; way++) { const @wide@ other = kept[way]; acc = @meet@; }

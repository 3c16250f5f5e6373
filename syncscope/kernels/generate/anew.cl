// The end of an item of which a sum is no number: by float32's own multiply-adds, one after the other (gpu.py).

    int odd = 0;
#pragma unroll
    for (int r = 0; r < @tm@; r++)
#pragma unroll
        for (int q = 0; q < @vectors@; q++) odd |= @odd@;
    if (odd) {
#pragma unroll 1
        for (int i = 0; i < @tm@ * @vectors@ * @lanes@; i++) {
            const int q = i / (@tm@ * @lanes@), r = i / @lanes@ % @tm@;
            const int m = @row@, n = @column@ + i % @lanes@;
            if (m >= p.M || n >= p.N) continue;
            @loops@
            T sum = 0;
            for (int k = part * p.chunk; k < k_end; k++) {
                @k_loops@
                sum = FMA(@a@, @b@, sum);
            }
            @one@
        }
    } else {
        @store@
    }

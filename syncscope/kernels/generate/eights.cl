// The end of a contraction on a CPU (cpu.py): eight neighbours in the result are one store.

    out += out_at + @start@;
    @bias_line@
    const int left = @left@;
    for (int v = 0; v < @vectors@; v++) {
        const int width = min(8, left - v * 8);
        int spots[8]@bias_spots@;
        for (int j = 0; j < 8; j++) {
            const int column = n + v * 8 + min(j, max(width - 1, 0));
            @n_lines@
            spots[j] = @out_n@;@bias_spot@
        }
        const int run = width == 8 && spots[7] - spots[0] == 7;
        for (int r = 0; r < min(@tm@, p.M - m); r++) {
            const int row = m + r;
            @m_lines@
            const int row_at = @out_m@;
            @vector@
            const T *lanes = (const T *)&sums[r][v];
            for (int j = 0; j < width; j++)
                @one@
        }
    }

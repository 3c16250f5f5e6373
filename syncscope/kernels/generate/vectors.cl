// A contraction on a CPU (cpu.py): an item makes a block of rows by vectors of eight columns, in registers.

@divide@@fields@
__kernel void @name@(__global const @of_a@ *a, long a_at,
        __global const @of_b@ *b, long b_at, @arguments@) {
    const int m = get_global_id(0) * @tm@, tile = get_global_id(1), z = get_global_id(2);
    if (m >= @m@ || tile >= @tiles@) return;
    @z_lines@
    @n_lines@
    @a_rows@
    @b_start@
    @before@
    @walks@ {
        @loads@ @a_k@
        @values@
@multiply@
        @a_next@ @b_next@
    }
    @after@
@store@}

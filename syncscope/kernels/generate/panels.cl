// An operand copied in panels of as many neighbours as a CPU's vectors take together (cpu.py).

@divide@@fields@
__kernel void @name@(__global const S *x, long x_at, __global T *to, Numbers p) {
    const int panel = get_global_id(0), first = get_global_id(1) * @block@, z = get_global_id(2);
    const int panels = (@size@ + @last@) / @width@;
    if (panel >= panels) return;
    @z_lines@
    x += x_at + @start@;
    to += (((long)z * panels + panel) * @depth@ + first) * @width@;
    int place[@width@]@declared@;
    for (int j = 0; j < @width@; j++) {
        const int free = min(panel * @width@ + j, @size@ - 1);
        @f_lines@
        place[j] = @place@;@set_bounds@
    }
    const int run = @run@;
    for (int k = first; k < min(@depth@, first + @block@); k++, to += @width@) {
        @k_lines@
        __global const S *from_all = x + @from_k@, *from = from_all + place[0];
        @body@
    }
}

// Where an item stands in an operand `@x@` before the walk along k (operands.py).


    @x@ += @x@_at + @start@;
    const int @x@_spot = @spot@, @x@_step = @step@;
    int @x@_place[@count@]@bounds@;
#pragma unroll
    for (int j = 0; j < @count@; j++) {
        const int @x@_free = min(@free@, @last@);
        @loops@
        @x@_place[j] = @place@;@set_bounds@
    }
    @kept@

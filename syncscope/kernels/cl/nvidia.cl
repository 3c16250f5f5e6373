// Halves on NVIDIA's GPUs, behind prelude.cl. What the driver makes of vstore_half_rte takes many instructions for each number: with a
// result in float16 a product took 283 us on an H200, in bfloat16, which is rounded above, 179. The chip has one for it.
#undef LOAD_half
#undef STORE_half
#undef LOAD4_half
#undef STORE4_half
#undef STORE2_half
#define LOAD_half(p, i) from_half((p)[i])
#define STORE_half(x, p, i) ((p)[i] = to_half(x))
#define LOAD4_half(p) from_half4(*(__global const ushort4 *)(p))
#define STORE4_half(x, p) (*(__global ushort4 *)(p) = to_half4(x))
#define STORE2_half(x, p) (*(__global ushort2 *)(p) = to_half2(x))

static inline float from_half(ushort x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

static inline ushort to_half(float x) {
    ushort y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}

static inline float4 from_half4(ushort4 x) { return (float4)(from_half(x.x), from_half(x.y), from_half(x.z), from_half(x.w)); }
static inline ushort2 to_half2(float2 x) { return (ushort2)(to_half(x.x), to_half(x.y)); }
static inline ushort4 to_half4(float4 x) { return (ushort4)(to_half(x.x), to_half(x.y), to_half(x.z), to_half(x.w)); }

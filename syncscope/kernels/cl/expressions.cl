// What an expression may call besides OpenCL's own functions. T is the type that is computed in, FLOATING whether it has a point.
#if FLOATING
#define WHOLE(f, x) f(x)
static inline T modulo(T a, T b) { const T r = fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
static inline T floor_quotient(T a, T b) {
    if (b == 0) return a / b;
    const T r = fmod(a, b);
    T q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return copysign((T)0, a / b);
    const T down = floor(q);
    return q - down > (T)0.5 ? down + 1 : down;
}
static inline T cut_quotient(T a, T b) { return trunc(a / b); }
static inline T rest(T a, T b) { return fmod(a, b); }
static inline T power(T a, T b) { return pow(a, b); }
static inline T sigmoid(T x) { return 1 / (1 + exp(-x)); }
static inline T softplus(T x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static inline T normal_cdf(T x) { return (T)0.5 * erfc(-x * (T)0.70710678118654752440); }
static inline T gelu_slope(T x) {
    return normal_cdf(x) + x * exp((T)-0.5 * x * x) * (T)0.39894228040143267794;
}
static inline T gelu_inner(T x) { return (T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x); }
static inline T gelu_tanh_slope(T x) {
    const T t = tanh(gelu_inner(x));
    return (T)0.5 * (1 + t) + (T)0.5 * x * (1 - t * t) * (T)0.79788456080286535588 * (1 + (T)0.134145 * x * x);
}
#else
// A GPU has no exception for a division by zero and a CPU would end the process: the quotient is 0 then.
#define WHOLE(f, x) (x)
static inline T modulo(T a, T b) {
    if (b == 0) return 0;
    const T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static inline T floor_quotient(T a, T b) {
    if (b == 0) return 0;
    const T q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
static inline T cut_quotient(T a, T b) { return b == 0 ? 0 : a / b; }
static inline T rest(T a, T b) { return b == 0 ? 0 : a % b; }
static inline T power(T a, T b) {
    if (b < 0) return a == 1 ? 1 : a == (T)-1 ? (b % 2 ? -1 : 1) : 0;
    T result = 1;
    for (; b; b /= 2, a *= a)
        if (b % 2) result *= a;
    return result;
}
#endif

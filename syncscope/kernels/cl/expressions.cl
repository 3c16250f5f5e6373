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
static inline T gelu_inner(T x) { return (T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x); }
#if defined(OF_HALVES) && ON_GPU
// What is rounded to eleven bits is made of a GPU's own exponentials; tails keep their digits (Numerical Recipes' erfcc).
static inline T normal_tail(T x, T bell) {
    const T t = native_recip(1 + 0.35355339f * fabs(x));
    const T late = t * (-0.82215223f + t * 0.17087277f), mid = t * (-1.13520398f + t * (1.48851587f + late));
    const T early = 1.00002368f + t * (0.37409196f + t * (0.09678418f + t * (-0.18628806f + t * (0.27886807f + mid))));
    return 0.5f * t * bell * native_exp(t * early - 1.26551223f);
}
static inline T normal_bell(T x) { return native_exp(-0.5f * x * x); }
static inline T normal_cdf(T x) {
    const T tail = normal_tail(x, normal_bell(x));
    return x < 0 ? tail : 1 - tail;
}
static inline T gelu_slope(T x) {
    const T bell = normal_bell(x), tail = normal_tail(x, bell);
    return (x < 0 ? tail : 1 - tail) + x * bell * 0.39894228f;
}
static inline T gelu_share(T x) { return native_recip(1 + native_exp(-2 * gelu_inner(x))); }
static inline T gelu_tanh(T x) { return x * gelu_share(x); }
static inline T gelu_tanh_slope(T x) {
    const T share = gelu_share(x);
    return share + share * (1 - share) * x * 1.59576912f * (1 + 0.134145f * x * x);
}
#else
static inline T normal_cdf(T x) { return (T)0.5 * erfc(-x * (T)0.70710678118654752440); }
static inline T gelu_slope(T x) {
    return normal_cdf(x) + x * exp((T)-0.5 * x * x) * (T)0.39894228040143267794;
}
static inline T gelu_tanh(T x) { return (T)0.5 * x * (1 + tanh(gelu_inner(x))); }
static inline T gelu_tanh_slope(T x) {
    const T t = tanh(gelu_inner(x));
    return (T)0.5 * (1 + t) + (T)0.5 * x * (1 - t * t) * (T)0.79788456080286535588 * (1 + (T)0.134145 * x * x);
}
#endif
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

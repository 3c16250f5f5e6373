// One step of an optimizer for one element.

static inline void sgd_step(__global S *p, __global const S *grad, __global S *momenta, uint i, int has_momentum, int first, int nesterov,
                            int maximize, T lr, T momentum, T dampening, T weight_decay) {
    const T before = LOAD(p, i);
    T g = maximize ? -LOAD(grad, i) : LOAD(grad, i);
    g += weight_decay * before;
    if (has_momentum) {
        const T m = first ? g : momentum * LOAD(momenta, i) + (1 - dampening) * g;
        STORE(m, momenta, i);
        g = nesterov ? g + momentum * m : m;
    }
    STORE(before - lr * g, p, i);
}

// What the means, and the roots of the squares, must be divided by: they began at zero. `step` counts the steps, this one included.
#define CORRECTIONS(step) const T for_means = 1 - pow(beta1, (T)(step)), for_roots = sqrt(1 - pow(beta2, (T)(step)));

// Decay is decoupled (AdamW) or part of the gradient (Adam).
static inline void adam_step(__global S *p, __global const S *grad, __global S *means, __global S *squares, __global S *largest, uint i,
                             int amsgrad, int decoupled, int maximize, T for_means, T for_roots, T lr, T beta1, T beta2,
                             T weight_decay, T eps) {
    T x = LOAD(p, i), g = maximize ? -LOAD(grad, i) : LOAD(grad, i);
    if (decoupled) x -= lr * weight_decay * x;
    else g += weight_decay * x;
    const T before = LOAD(means, i), mean = before + (1 - beta1) * (g - before);
    const T square = beta2 * LOAD(squares, i) + (1 - beta2) * g * g;
    STORE(mean, means, i);
    STORE(square, squares, i);
    T top = square;
    if (amsgrad) {
        top = fmax(LOAD(largest, i), square);
        STORE(top, largest, i);
    }
    STORE(x - lr / for_means * mean / (sqrt(top) / for_roots + eps), p, i);
}

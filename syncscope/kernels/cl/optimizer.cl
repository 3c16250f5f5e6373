// One step of an optimizer for one element.

static inline void sgd_step(__global T *p, __global const T *grad, __global T *momenta, uint i, int has_momentum, int first, int nesterov,
                            int maximize, T lr, T momentum, T dampening, T weight_decay) {
    const T before = p[i];
    T g = maximize ? -grad[i] : grad[i];
    g += weight_decay * before;
    if (has_momentum) {
        const T m = first ? g : momentum * momenta[i] + (1 - dampening) * g;
        momenta[i] = m;
        g = nesterov ? g + momentum * m : m;
    }
    p[i] = before - lr * g;
}

// What the means, and the roots of the squares, must be divided by: they began at zero. `step` counts the steps, this one included.
#define CORRECTIONS(step) const T for_means = 1 - pow(beta1, (T)(step)), for_roots = sqrt(1 - pow(beta2, (T)(step)));

// Decay is decoupled (AdamW) or part of the gradient (Adam).
static inline void adam_step(__global T *p, __global const T *grad, __global T *means, __global T *squares, __global T *largest, uint i,
                             int amsgrad, int decoupled, int maximize, T for_means, T for_roots, T lr, T beta1, T beta2,
                             T weight_decay, T eps) {
    T x = p[i], g = maximize ? -grad[i] : grad[i];
    if (decoupled) x -= lr * weight_decay * x;
    else g += weight_decay * x;
    const T mean = means[i] + (1 - beta1) * (g - means[i]);
    const T square = beta2 * squares[i] + (1 - beta2) * g * g;
    means[i] = mean;
    squares[i] = square;
    T top = square;
    if (amsgrad) largest[i] = top = fmax(largest[i], square);
    p[i] = x - lr / for_means * mean / (sqrt(top) / for_roots + eps);
}

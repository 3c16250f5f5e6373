// One step of an optimizer over a row-major parameter, in one pass.

__kernel void sgd_step(__global T *p, long p_at, __global const T *grad, long g_at, __global T *momenta, long m_at, int has_momentum,
                       int first, int nesterov, int maximize, T lr, T momentum, T dampening, T weight_decay, uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const T before = p[p_at + i];
    T g = maximize ? -grad[g_at + i] : grad[g_at + i];
    g += weight_decay * before;
    if (has_momentum) {
        const T m = first ? g : momentum * momenta[m_at + i] + (1 - dampening) * g;
        momenta[m_at + i] = m;
        g = nesterov ? g + momentum * m : m;
    }
    p[p_at + i] = before - lr * g;
}

// `step` is on the device, where the optimizer has counted it up already. Decay is decoupled (AdamW) or part of the gradient (Adam).
__kernel void adam_step(__global T *p, long p_at, __global const T *grad, long g_at, __global T *means, long m_at,
                        __global T *squares, long s_at, __global T *largest, long l_at, int amsgrad,
                        __global const float *step, long step_at, int decoupled, int maximize, T lr, T beta1, T beta2,
                        T weight_decay, T eps, uint total) {
    const uint i = get_global_id(0);
    if (i >= total) return;
    const T t = step[step_at];
    T x = p[p_at + i], g = maximize ? -grad[g_at + i] : grad[g_at + i];
    if (decoupled) x -= lr * weight_decay * x;
    else g += weight_decay * x;
    const T mean = means[m_at + i] + (1 - beta1) * (g - means[m_at + i]);
    const T square = beta2 * squares[s_at + i] + (1 - beta2) * g * g;
    means[m_at + i] = mean;
    squares[s_at + i] = square;
    T top = square;
    if (amsgrad) largest[l_at + i] = top = fmax(largest[l_at + i], square);
    const T deviation = sqrt(top) / sqrt(1 - pow(beta2, t)) + eps;
    p[p_at + i] = x - lr / (1 - pow(beta1, t)) * mean / deviation;
}

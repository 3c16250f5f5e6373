"""Comprehensions: index notation, as Tensor Comprehensions has it, that is fused, differentiated and tuned.

    attend = comprehension('''
        def attend(float(B,H,T,D) Q, float(B,H,S,D) K, float(B,H,S,D) V) -> (O) {
            L(b,h,t,s) +=! Q(b,h,t,d) * K(b,h,s,d)
            ...
        }''')
    out = attend(q, k, v)

On the device `ocl` it runs as few kernels, on any other through torch.
"""

from syncscope.kernels.comprehensions.comprehension import Comprehension as Comprehension

"""Native operators: a file is found by being here; each fills `syncscope.kernels.operators.native`."""

// The obvious form: the logarithm of cosh, which overflows beyond 710.
functions {
  #include tempering.stanfunctions
}
data {
  int<lower=1> D; // dimension
  int<lower=1> D_b; // number of units of the machine
  matrix[D_b, D] Q; // Q Q' = W + diagonal
  vector[D_b] b; // biases
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/pseudo_samples.standata
}
parameters {
  matrix[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_gamma;
  for (i in 1 : N) {
    log_gamma[i] = sum(log(cosh(Q * x[ : , i] + b)))
                   - 0.5 * dot_self(x[ : , i]);
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


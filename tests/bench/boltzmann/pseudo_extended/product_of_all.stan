// One matrix product for all pseudo-samples, biases and factor included.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
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
transformed data {
  matrix[D_b, D + 1] coefficients = boltzmann_coefficients(Q, b);
}
parameters {
  matrix[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  matrix[D_b, N] v = coefficients * append_row(x, ones_row_vector(N));
  matrix[D_b, N] softplus = log1p_exp(v);
  vector[N] log_gamma = -0.5 * columns_dot_self(x)' - D_b * log2();
  for (i in 1 : N) {
    log_gamma[i] += sum(softplus[ : , i]) - 0.5 * sum(v[ : , i]);
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


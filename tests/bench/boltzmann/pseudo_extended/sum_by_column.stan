// One matrix product, then a loop of sums; the sum of y without y.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  vector[D] total = Q' * ones_vector(D_b);
  real total_bias = sum(b) - D_b * log2();
}
parameters {
  matrix[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  matrix[D_b, N] softplus = log1p_exp(-2 * (Q * x) - rep_matrix(2 * b, N));
  vector[N] log_gamma = x' * total + total_bias - 0.5 * columns_dot_self(x)';
  for (i in 1 : N) {
    log_gamma[i] += sum(softplus[ : , i]);
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


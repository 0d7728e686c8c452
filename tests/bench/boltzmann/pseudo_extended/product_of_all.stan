// One matrix product for all pseudo-samples, biases and factor included.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include boltzmann/prepared.stanblock
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


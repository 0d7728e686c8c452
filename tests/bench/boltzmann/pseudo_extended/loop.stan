// A loop over pseudo-samples, each a product of the matrix and a vector.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include pseudo_extended/data.stanblock
}
parameters {
  matrix[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_gamma;
  for (i in 1 : N) {
    vector[D_b] y = Q * x[ : , i] + b;
    log_gamma[i] = sum(y) + sum(log1p_exp(-2 * y)) - D_b * log2()
                   - 0.5 * dot_self(x[ : , i]);
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


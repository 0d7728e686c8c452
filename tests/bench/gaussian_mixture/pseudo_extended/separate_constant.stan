// A product with x, then terms in x'x and 1 by vectors of their own.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
  matrix[K, D] scaled_mean = coefficients[ : , 1 : D];
  vector[K] half_precision = coefficients[ : , D + 1];
  vector[K] constant = coefficients[ : , D + 2];
}
parameters {
  matrix<lower=lower_bound, upper=upper_bound>[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_gamma;
  for (i in 1 : N) {
    log_gamma[i] = log_sum_exp(
                               scaled_mean * x[ : , i]
                               + half_precision * dot_self(x[ : , i])
                               + constant);
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


// A loop over components calling squared_distance.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  int<lower=1> N; // number of pseudo-samples
  int<lower=0, upper=1> sample_inv_temp; // 0: inverse temperatures are fixed
  vector<lower=0, upper=1>[sample_inv_temp ? 0 : N] fixed_inv_temp;
}
transformed data {
  vector[K] half_precision = 0.5 * inv_square(sigma);
  vector[K] log_norm = log(weight) - D * log(sigma) - 0.5 * D * log(2 * pi());
}
parameters {
  matrix<lower=lower_bound, upper=upper_bound>[D, N] x; // pseudo-samples
  vector<lower=0, upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_gamma;
  for (n in 1 : N) {
    vector[K] log_component;
    for (k in 1 : K) {
      log_component[k] = log_norm[k]
                         - half_precision[k]
                           * squared_distance(x[ : , n], mu[ : , k]);
    }
    log_gamma[n] = log_sum_exp(log_component);
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


// A loop over components calling squared_distance.
data {
  #include gaussian_mixture/data.stanblock
}
transformed data {
  vector[K] half_precision = 0.5 * inv_square(sigma);
  vector[K] log_norm = log(weight) - D * log(sigma) - 0.5 * D * log(2 * pi());
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
}
model {
  vector[K] log_component;
  for (k in 1 : K) {
    log_component[k] = log_norm[k]
                       - half_precision[k] * squared_distance(x, mu[ : , k]);
  }
  target += log_sum_exp(log_component);
}


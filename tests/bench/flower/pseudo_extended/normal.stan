// A loop over pseudo-samples calling normal_lpdf, its constant taken off.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
}
data {
  #include flower/data.stanblock
  #include pseudo_extended/data.stanblock
}
parameters {
  matrix[2, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_gamma;
  for (i in 1 : N) {
    real first = x[1, i] + 1e-150;
    log_gamma[i] = normal_lpdf(hypot(first, x[2, i]) |
                               r + A * cos(w * atan2(x[2, i], first)), s)
                   + log(s) + 0.5 * log(2 * pi());
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


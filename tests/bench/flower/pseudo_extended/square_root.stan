// A loop over pseudo-samples, the radius by a square root.
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
    real centre = r + A * cos(w * atan2(x[2, i], first));
    log_gamma[i] = -0.5
                   * square(
                            (sqrt(square(first) + square(x[2, i])) - centre)
                            / s);
  }
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


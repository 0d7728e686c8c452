// All pseudo-samples at once.
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
  vector[N] first = x[1]' + 1e-150;
  vector[N] second = x[2]';
  vector[N] centre = r + A * cos(w * atan2(second, first));
  vector[N] log_gamma = -0.5 * square((hypot(first, second) - centre) / s);
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


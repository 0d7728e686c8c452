// The shipped density without base, g, pi and their options.
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
}
parameters {
  matrix<lower=lower_bound, upper=upper_bound>[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_gamma = gaussian_mixture_log_density(x, coefficients);
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


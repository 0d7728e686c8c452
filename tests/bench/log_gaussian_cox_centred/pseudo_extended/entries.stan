// The covariance entry by entry, and a loop over cells.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
  #include log_gaussian_cox/field.stanfunctions
}
data {
  #include log_gaussian_cox/data.stanblock
  #include pseudo_extended/data.stanblock
}
parameters {
  vector<lower=0>[N] sigma2; // variance of the log intensity
  vector<lower=0>[N] range; // range of its correlations
  matrix[n * n, N] x; // log intensity
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  matrix[2, N] part;
  for (i in 1 : N) {
    part[ : , i] = log_gaussian_cox_centred_parts(cell, points, unit_square,
                     n, field_mean, sigma2[i], range[i], x[ : , i]);
  }
  target += pseudo_extended_log_density((part[1] + part[2])',
              part[2]' + inv_temp .* part[1]');
}


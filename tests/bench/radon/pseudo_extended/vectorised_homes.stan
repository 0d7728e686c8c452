// All homes of a pseudo-sample in one call of normal_lpdf.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
  #include radon/density.stanfunctions
}
data {
  #include radon/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  matrix[H, 2] home = append_col(first_floor, log_uranium);
}
parameters {
  vector[N] mu_a; // mean intercept
  vector[N] mu_b; // mean coefficient
  vector<lower=0>[N] sigma_a; // standard deviation of the intercepts
  vector<lower=0>[N] sigma_b; // standard deviation of the coefficients
  vector<lower=0>[N] eps; // standard deviation of a measurement
  matrix[J, N] n; // standardised intercepts of counties
  matrix[2, N] m; // standardised coefficients of floor, uranium
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  vector[N] log_prior = radon_log_prior_each(mu_a, mu_b, sigma_a, sigma_b,
                          eps, n, m, N);
  vector[N] log_likelihood;
  for (i in 1 : N) {
    vector[J] alpha = mu_a[i] + sigma_a[i] * n[ : , i];
    log_likelihood[i] = normal_lpdf(log_radon |
                                    alpha[county]
                                    + home
                                      * (mu_b[i] + sigma_b[i] * m[ : , i]),
                                    eps[i]);
  }
  target += pseudo_extended_log_density(log_prior + log_likelihood,
              log_prior + inv_temp .* log_likelihood);
}


// Sums of squares split into a part within counties and a term a county.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
  #include radon/density.stanfunctions
  #include radon/counties.stanfunctions
}
data {
  #include radon/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  matrix[H, 3] home = append_col(append_col(first_floor, log_uranium),
                                 log_radon);
  matrix[3, 3] scatter = radon_scatter(home, county, J);
  matrix[J, 4] county_means = radon_county_means(home, county, J);
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
    vector[4] coefficient = [mu_b[i] + sigma_b[i] * m[1, i],
                             mu_b[i] + sigma_b[i] * m[2, i], -1, mu_a[i]]';
    vector[J] between = county_means * coefficient
                        + sigma_a[i] * (county_means[ : , 4] .* n[ : , i]);
    log_likelihood[i] = -H * (log(eps[i]) + 0.5 * log(2 * pi()))
                        - 0.5
                          * (quad_form(scatter, coefficient[1 : 3])
                             + dot_self(between))
                          / square(eps[i]);
  }
  target += pseudo_extended_log_density(log_prior + log_likelihood,
              log_prior + inv_temp .* log_likelihood);
}


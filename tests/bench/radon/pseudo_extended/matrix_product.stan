// All pseudo-samples in one matrix product, prior included.
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
  matrix[2, N] beta = rep_matrix(mu_b', 2) + diag_post_multiply(m, sigma_b);
  matrix[3, N] within = append_row(beta, rep_row_vector(-1, N));
  matrix[J, N] intercept = diag_post_multiply(n, sigma_a);
  matrix[J, N] between = county_means * append_row(within, mu_a')
                         + diag_pre_multiply(county_means[ : , 4], intercept);
  row_vector[N] sum_square = columns_dot_product(within, scatter * within)
                             + columns_dot_self(between);
  vector[N] log_likelihood = -H * (log(eps) + 0.5 * log(2 * pi()))
                             - 0.5 * sum_square' ./ square(eps);
  vector[N] square_x = square(mu_a) + square(mu_b)
                       + (columns_dot_self(n) + columns_dot_self(m))';
  vector[N] log_prior = 3 * log(2 / (2.5 * pi()))
                        - 0.5 * (J + 4) * log(2 * pi()) - 0.5 * square_x
                        - log1p(square(sigma_a / 2.5))
                        - log1p(square(sigma_b / 2.5))
                        - log1p(square(eps / 2.5));
  target += pseudo_extended_log_density(log_prior + log_likelihood,
              log_prior + inv_temp .* log_likelihood);
}


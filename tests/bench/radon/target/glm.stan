// All homes in one call of normal_id_glm_lpdf.
functions {
  #include radon/density.stanfunctions
}
data {
  #include radon/data.stanblock
}
transformed data {
  matrix[H, 2] home = append_col(first_floor, log_uranium);
}
parameters {
  real mu_a; // mean intercept
  real mu_b; // mean coefficient
  real<lower=0> sigma_a; // standard deviation of the intercepts
  real<lower=0> sigma_b; // standard deviation of the coefficients
  real<lower=0> eps; // standard deviation of a measurement
  vector[J] n; // standardised intercepts of counties
  vector[2] m; // standardised coefficients of floor, uranium
}
model {
  vector[J] alpha = mu_a + sigma_a * n;
  target += normal_id_glm_lpdf(log_radon | home, alpha[county],
              mu_b + sigma_b * m, eps);
  target += radon_log_prior(mu_a, mu_b, sigma_a, sigma_b, eps, n, m);
}


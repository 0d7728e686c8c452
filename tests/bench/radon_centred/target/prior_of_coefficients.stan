// The prior of the coefficients themselves, with no Jacobian.
functions {
  #include radon/density.stanfunctions
}
data {
  int<lower=1> H; // number of homes
  int<lower=1> J; // number of counties
  array[H] int<lower=1, upper=J> county; // county of each home
  vector[H] first_floor; // measured on the first floor (1), in the basement (0)
  vector[H] log_uranium; // log of the soil's uranium, by county
  vector[H] log_radon; // log of radon in pCi/l
}
transformed data {
  matrix[H, 4] home = append_col(append_col(first_floor, log_uranium),
                                 append_col(log_radon, ones_vector(H)));
  matrix[4, 4] gram = crossprod(home);
  matrix[J, 4] totals = radon_county_totals(home, county, J);
}
parameters {
  real mu_a; // mean intercept
  real mu_b; // mean coefficient
  real<lower=0> sigma_a; // standard deviation of the intercepts
  real<lower=0> sigma_b; // standard deviation of the coefficients
  real<lower=0> eps; // standard deviation of a measurement
  vector[J] n; // standardised intercepts of counties
  vector[2] beta; // coefficients of floor, uranium
}
model {
  vector[2] m = (beta - mu_b) / sigma_b;
  target += radon_log_likelihood(mu_a, mu_b, sigma_a, sigma_b, eps, n, m,
              gram, totals);
  target += std_normal_lpdf([mu_a, mu_b]) + std_normal_lpdf(n)
            + normal_lpdf(beta | mu_b, sigma_b)
            + cauchy_lpdf([sigma_a, sigma_b, eps] | 0, 2.5) + 3 * log2();
}


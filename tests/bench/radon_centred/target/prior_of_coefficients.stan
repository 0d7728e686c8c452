// The prior of the coefficients themselves, with no Jacobian.
functions {
  #include radon/density.stanfunctions
}
data {
  #include radon/data.stanblock
}
transformed data {
  #include radon/prepared.stanblock
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


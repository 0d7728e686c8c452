// Radon regression with the coefficients themselves as parameters.
// docs/api/models.md explains its data.
//
// The posterior of radon/target.stan, with the same evidence, in place of their
// deviations m = (beta - mu_b) / sigma_b.  The homes tell the coefficients so
// well that the latter make a ridge, which no Gaussian follows.
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
              gram, totals)
            + radon_log_prior(mu_a, mu_b, sigma_a, sigma_b, eps, n, m)
            - 2 * log(sigma_b); // of beta, not of m
}


// Radon in the homes of counties (Graham and Storkey 2017, section 7.3).
// docs/api/models.md explains its data.
//
// A regression on floor and uranium with an intercept for each county, both
// hierarchical and not centred.  Likelihood and prior are normalised, so that
// the integral of the density is the evidence.
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
  vector[2] m; // standardised coefficients of floor, uranium
}
model {
  target += radon_log_likelihood(mu_a, mu_b, sigma_a, sigma_b, eps, n, m,
              gram, totals)
            + radon_log_prior(mu_a, mu_b, sigma_a, sigma_b, eps, n, m);
}


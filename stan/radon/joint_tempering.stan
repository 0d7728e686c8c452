// Radon regression, joint tempering (Graham and Storkey 2017, eq. 16).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include radon/density.stanfunctions
}
data {
  #include radon/data.stanblock
  #include joint_tempering/data.stanblock
}
transformed data {
  #include radon/prepared.stanblock
  #include joint_tempering/prepared.stanblock
}
parameters {
  real mu_a; // mean intercept
  real mu_b; // mean coefficient
  real<lower=0> sigma_a; // standard deviation of the intercepts
  real<lower=0> sigma_b; // standard deviation of the coefficients
  real<lower=0> eps; // standard deviation of a measurement
  vector[J] n; // standardised intercepts of counties
  vector[2] m; // standardised coefficients of floor, uranium
  #include joint_tempering/parameters.stanblock
}
transformed parameters {
  // The base is the prior, or a Gaussian in the unconstrained parameters.
  real log_base = radon_log_prior(mu_a, mu_b, sigma_a, sigma_b, eps, n, m);
  real log_gamma = log_base
                   + radon_log_likelihood(mu_a, mu_b, sigma_a, sigma_b, eps,
                       n, m, gram, totals);
  if (B) {
    log_base = gaussian_base_lpdf(
                 radon_unconstrained(mu_a, mu_b, sigma_a, sigma_b, eps, n, m) |
                 whitened_mean, whiten, base_constant)
               - log(sigma_a * sigma_b * eps);
  }
}
model {
  #include joint_tempering/model.stanblock
}
generated quantities {
  #include joint_tempering/generated.stanblock
}


// Radon regression, pseudo-extended (Nemeth et al. 2019, eq. 8).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include radon/density.stanfunctions
}
data {
  #include radon/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include radon/prepared.stanblock
  #include pseudo_extended/prepared.stanblock
}
parameters {
  // Pseudo-samples, one per entry or column.
  vector[N] mu_a; // mean intercept
  vector[N] mu_b; // mean coefficient
  vector<lower=0>[N] sigma_a; // standard deviation of the intercepts
  vector<lower=0>[N] sigma_b; // standard deviation of the coefficients
  vector<lower=0>[N] eps; // standard deviation of a measurement
  matrix[J, N] n; // standardised intercepts of counties
  matrix[2, N] m; // standardised coefficients of floor, uranium
  #include pseudo_extended/parameters.stanblock
}
transformed parameters {
  // The base is the prior, or a Gaussian in the unconstrained parameters.
  vector[N] log_base = radon_log_prior_each(mu_a, mu_b, sigma_a, sigma_b,
                         eps, n, m, N);
  vector[N] log_gamma = log_base
                        + radon_log_likelihood_each(mu_a, mu_b, sigma_a,
                            sigma_b, eps, n, m, N, gram, totals);
  if (B) {
    log_base = gaussian_base_log_density(
                 radon_unconstrained_each(mu_a, mu_b, sigma_a, sigma_b, eps,
                   n, m, N),
                 N, whitened_mean, whiten, base_constant)
               - log(sigma_a .* sigma_b .* eps);
  }
}
model {
  #include pseudo_extended/model.stanblock
}
generated quantities {
  #include pseudo_extended/generated.stanblock
}


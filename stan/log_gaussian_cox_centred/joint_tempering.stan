// Log-Gaussian Cox process, centred, joint tempering.
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include log_gaussian_cox/density.stanfunctions
}
data {
  #include log_gaussian_cox/data.stanblock
  #include joint_tempering/data.stanblock
}
transformed data {
  #include log_gaussian_cox/prepared.stanblock
  #include joint_tempering/prepared.stanblock
}
parameters {
  real<lower=0> sigma2; // variance of the log intensity
  real<lower=0> range; // range of its correlations
  vector[n * n] x; // log intensity
  #include joint_tempering/parameters.stanblock
}
transformed parameters {
  // The base is the prior, or a Gaussian in the unconstrained parameters.
  real log_base = log_gaussian_cox_centred_log_prior(sigma2, range, x, place,
                    n, field_mean);
  real log_gamma = log_base + log_gaussian_cox_log_likelihood(points, x);
  if (B) {
    log_base = gaussian_base_lpdf(append_row([log(sigma2), log(range)]', x) |
                 whitened_mean, whiten, base_constant)
               - log(sigma2 * range);
  }
}
model {
  #include joint_tempering/model.stanblock
}
generated quantities {
  #include joint_tempering/generated.stanblock
}


// Mixture for the stamps, collapsed tempering (beta integrated out).
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include stamps/density.stanfunctions
}
data {
  #include stamps/data.stanblock
  #include collapsed_tempering/data.stanblock
}
transformed data {
  #include stamps/prepared.stanblock
  #include collapsed_tempering/prepared.stanblock
}
parameters {
  vector[K] mu; // means of the components
  vector<lower=0>[K] lambda; // precisions of the components
  vector[K - 1] logit_z; // weights: log z_k - log z_K
  real<lower=0> rate; // rate of the precisions' prior
}
transformed parameters {
  // The base is the prior, or a Gaussian in the unconstrained parameters.
  real log_base = stamps_log_prior(mu, lambda, rate, centre, spread)
                  + sum(stamps_log_weights(logit_z));
  real log_gamma = log_base
                   + stamps_log_likelihood(thickness, stamps, mu, lambda,
                       stamps_log_weights(logit_z), K);
  if (B) {
    log_base = gaussian_base_lpdf(
                 append_row(append_row(mu, log(lambda)),
                            append_row(logit_z, log(rate))) |
                 whitened_mean, whiten, base_constant)
               - sum(log(lambda)) - log(rate);
  }
}
model {
  #include collapsed_tempering/model.stanblock
}
generated quantities {
  #include collapsed_tempering/generated.stanblock
}


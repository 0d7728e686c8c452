// Mixture for the thickness of Hidalgo stamps (Leimkuhler et al. 2018, 4.1).
// docs/api/models.md explains its data.
//
// The weights' logits against the last component stand for the weights, whose
// Jacobian is sum(log_z).  Likelihood and prior are normalised, so that the
// integral of the density is the evidence.
functions {
  #include stamps/density.stanfunctions
}
data {
  #include stamps/data.stanblock
}
transformed data {
  #include stamps/prepared.stanblock
}
parameters {
  vector[K] mu; // means of the components
  vector<lower=0>[K] lambda; // precisions of the components
  vector[K - 1] logit_z; // weights: log z_k - log z_K
  real<lower=0> rate; // rate of the precisions' prior
}
model {
  vector[K] log_z = stamps_log_weights(logit_z);
  target += sum(log_z)
            + stamps_log_likelihood(thickness, stamps, mu, lambda, log_z, K)
            + stamps_log_prior(mu, lambda, rate, centre, spread);
}


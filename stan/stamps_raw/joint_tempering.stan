// Mixture for the stamps in weights themselves, joint tempering.
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include stamps/density.stanfunctions
}
data {
  #include stamps/data.stanblock
  #include joint_tempering/data.stanblock
}
transformed data {
  #include stamps/prepared.stanblock
  #include joint_tempering/prepared.stanblock
}
parameters {
  vector[K] mu; // means of the components
  vector[K] lambda; // precisions of the components, positive
  vector[K - 1] z; // weights of all components but the last, positive
  real rate; // rate of the precisions' prior, positive
  #include joint_tempering/parameters.stanblock
}
transformed parameters {
  // The base is the prior, or a Gaussian that is cut to the support.
  real log_base;
  real log_gamma;
  {
    vector[2] part = stamps_raw_parts(thickness, stamps, mu, lambda, z, rate,
                                      centre, spread, K);
    log_base = part[2];
    log_gamma = sum(part);
  }
  if (B) {
    log_base = gaussian_base_lpdf(
                 append_row(append_row(mu, lambda), append_row(z, rate)) |
                 whitened_mean, whiten, base_constant);
  }
}
model {
  #include joint_tempering/model.stanblock
  // At every inverse temperature, also at 0.
  target += stamps_log_inside(lambda, z, rate);
}
generated quantities {
  #include joint_tempering/generated.stanblock
}


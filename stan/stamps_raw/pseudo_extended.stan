// Mixture for the stamps in weights themselves, pseudo-extended.
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include stamps/density.stanfunctions
}
data {
  #include stamps/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include stamps/prepared.stanblock
  #include pseudo_extended/prepared.stanblock
}
parameters {
  // Pseudo-samples, one per entry or column.
  matrix[K, N] mu; // means of the components
  matrix[K, N] lambda; // precisions of the components, positive
  matrix[K - 1, N] z; // weights of all components but the last, positive
  vector[N] rate; // rate of the precisions' prior, positive
  #include pseudo_extended/parameters.stanblock
}
transformed parameters {
  // The base is the prior, or a Gaussian that is cut to the support.
  vector[N] log_base;
  vector[N] log_gamma;
  {
    matrix[2, N] part = stamps_raw_parts_each(thickness, stamps, mu, lambda,
                          z, rate, N, centre, spread, K);
    log_base = part[2]';
    log_gamma = (part[1] + part[2])';
  }
  if (B) {
    log_base = gaussian_base_log_density(
                 append_row(append_row(mu, lambda), append_row(z, rate')), N,
                 whitened_mean, whiten, base_constant);
  }
}
model {
  #include pseudo_extended/model.stanblock
  // Of each pseudo-sample, at every inverse temperature, also at 0.
  target += stamps_log_inside_each(lambda, z, rate, N);
}
generated quantities {
  #include pseudo_extended/generated.stanblock
}


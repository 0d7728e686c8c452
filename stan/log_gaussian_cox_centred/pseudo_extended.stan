// Log-Gaussian Cox process, centred, pseudo-extended.
// docs/adding-a-model.md explains its data.
functions {
  #include tempering.stanfunctions
  #include log_gaussian_cox/density.stanfunctions
}
data {
  #include log_gaussian_cox/data.stanblock
  #include pseudo_extended/data.stanblock
}
transformed data {
  #include log_gaussian_cox/prepared.stanblock
  #include pseudo_extended/prepared.stanblock
}
parameters {
  // Pseudo-samples, one per entry or column.
  vector<lower=0>[N] sigma2; // variance of the log intensity
  vector<lower=0>[N] range; // range of its correlations
  matrix[n * n, N] x; // log intensity
  #include pseudo_extended/parameters.stanblock
}
transformed parameters {
  // The base is the prior, or a Gaussian in the unconstrained parameters.
  vector[N] log_base;
  vector[N] log_gamma;
  for (i in 1 : N) {
    log_base[i] = log_gaussian_cox_centred_log_prior(sigma2[i], range[i],
                    x[ : , i], place, n, field_mean);
    log_gamma[i] = log_base[i]
                   + log_gaussian_cox_log_likelihood(points, x[ : , i]);
  }
  if (B) {
    log_base = gaussian_base_log_density(
                 append_row(append_row(log(sigma2'), log(range')), x), N,
                 whitened_mean, whiten, base_constant)
               - log(sigma2 .* range);
  }
}
model {
  #include pseudo_extended/model.stanblock
}
generated quantities {
  #include pseudo_extended/generated.stanblock
}


// Log-Gaussian Cox process with the log intensity itself as a parameter.
// docs/api/models.md explains its data.
//
// The posterior of log_gaussian_cox/target.stan, with the same evidence, as a
// density of the log intensity x in place of its whitened form z.
functions {
  #include log_gaussian_cox/density.stanfunctions
}
data {
  #include log_gaussian_cox/data.stanblock
}
transformed data {
  #include log_gaussian_cox/prepared.stanblock
}
parameters {
  real<lower=0> sigma2; // variance of the log intensity
  real<lower=0> range; // range of its correlations
  vector[n * n] x; // log intensity
}
model {
  target += log_gaussian_cox_log_likelihood(points, x)
            + log_gaussian_cox_centred_log_prior(sigma2, range, x, place, n,
                field_mean);
}


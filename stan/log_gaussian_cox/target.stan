// Log-Gaussian Cox process on a square grid (Leimkuhler et al. 2018, 4.2).
// docs/api/models.md explains its data.
//
// The whitened log intensity z is a parameter, so that variance and range do
// not change its prior.  Likelihood and prior are normalised, so that the
// integral of the density is the evidence.
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
  vector[n * n] z; // whitened log intensity
}
model {
  vector[n * n] x = field_mean
                    + sqrt(sigma2)
                      * (log_gaussian_cox_factor(place, n, range) * z);
  target += log_gaussian_cox_log_likelihood(points, x)
            + log_gaussian_cox_log_prior(sigma2, range) + std_normal_lpdf
            (z);
}


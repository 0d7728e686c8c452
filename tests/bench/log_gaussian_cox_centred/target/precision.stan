// The density of the log intensity by the inverse of its covariance.
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
  matrix[n * n, n * n] covariance = gp_exponential_cov(place, sqrt(sigma2),
                                      n * range);
  vector[n * n] residual = x - field_mean;
  target += log_gaussian_cox_log_likelihood(points, x)
            + log_gaussian_cox_log_prior(sigma2, range)
            - 0.5 * n ^ 2 * log(2 * pi()) - 0.5 * log_determinant(covariance)
            - 0.5 * dot_product(residual, covariance \ residual);
}


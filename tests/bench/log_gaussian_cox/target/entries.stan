// The covariance entry by entry, and a loop over cells.
functions {
  #include log_gaussian_cox/field.stanfunctions
}
data {
  #include log_gaussian_cox/data.stanblock
}
parameters {
  real<lower=0> sigma2; // variance of the log intensity
  real<lower=0> range; // range of its correlations
  vector[n * n] z; // whitened log intensity
}
model {
  target += log_gaussian_cox_two_parts(cell, points, unit_square, n,
              field_mean, sigma2, range, z);
}


// One matrix product for x, the rest of each component apart.
data {
  int<lower=1> D; // dimension
  int<lower=1> K; // number of mixture components
  simplex[K] weight; // mixture weights
  matrix[D, K] mu; // component means, one a column
  vector<lower=0>[K] sigma; // component standard deviations
  real lower_bound; // the box is [lower_bound, upper_bound]^D
  real<lower=lower_bound> upper_bound;
}
transformed data {
  vector[K] precision = inv_square(sigma);
  matrix[K, D] linear = diag_post_multiply(mu, precision)';
  vector[K] half_precision = -0.5 * precision;
  vector[K] constant = log(weight) - D * log(sigma) - 0.5 * D * log(2 * pi())
                       - 0.5 * precision .* columns_dot_self(mu)';
}
parameters {
  vector<lower=lower_bound, upper=upper_bound>[D] x;
}
model {
  target += log_sum_exp(linear * x + half_precision * dot_self(x) + constant);
}


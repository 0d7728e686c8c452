// One matrix product for x, the rest of each component apart.
data {
  #include gaussian_mixture/data.stanblock
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


// Coordinates of all pseudo-samples at once.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
}
data {
  #include banana/data.stanblock
  #include pseudo_extended/data.stanblock
}
parameters {
  matrix[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  row_vector[N] second = x[2] - b * (square(x[1]) - v);
  row_vector[N] sum_square = square(x[1]) / v + square(second);
  if (D > 2) {
    sum_square += columns_dot_self(x[3 : ]);
  }
  vector[N] log_gamma = -0.5 * sum_square'
                        - 0.5 * (D * log(2 * pi()) + log(v));
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


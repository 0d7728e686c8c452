// One matrix product, and sums over units by columns_dot_product.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include pseudo_extended/data.stanblock
  real<lower=0, upper=1> highest_inv_temp;
}
parameters {
  matrix[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=highest_inv_temp>[N] free_inv_temp;
}
model {
  matrix[D_b, N] y = Q * x + rep_matrix(b, N);
  vector[N] log_gamma = columns_dot_product(rep_matrix(1, D_b, N),
                          y + log1p_exp(-2 * y))'
                        - D_b * log2() - 0.5 * columns_dot_self(x)';
  target += pseudo_extended_log_density(log_gamma,
              free_inv_temp .* log_gamma);
}


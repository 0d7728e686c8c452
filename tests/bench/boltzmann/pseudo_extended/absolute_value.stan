// One matrix product, and log cosh y by the absolute value of y.
functions {
  #include tempering.stanfunctions
  #include pseudo_extended.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include pseudo_extended/data.stanblock
}
parameters {
  matrix[D, N] x; // pseudo-samples
  vector<lower=g_knot[1], upper=1>[sample_inv_temp ? N : 0] free_inv_temp;
}
model {
  vector[N] inv_temp = sample_inv_temp ? free_inv_temp : fixed_inv_temp;
  matrix[D_b, N] y = abs(Q * x + rep_matrix(b, N));
  vector[N] log_gamma = (rep_row_vector(1, D_b) * (y + log1p_exp(-2 * y)))'
                        - D_b * log2() - 0.5 * columns_dot_self(x)';
  target += pseudo_extended_log_density(log_gamma, inv_temp .* log_gamma);
}


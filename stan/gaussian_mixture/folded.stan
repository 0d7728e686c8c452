// Mixture of Gaussians folded onto one point y by another mixture b, which
// approximates it (the Warp-U transformation of Wang, Jones and Meng 2016):
// with x_f = mean_f + sign_f scale_f y and D_f = log p(x_f) - log b(x_f),
// r(y) = N(y | 0, I) sum_f w_f exp(D_f).  It needs no box.
functions {
  #include gaussian_mixture/fold.stanfunctions
}
data {
  int<lower=1> D; // dimension
  int<lower=1> K; // number of mixture components
  simplex[K] weight; // mixture weights
  matrix[D, K] mu; // component means, one a column
  vector<lower=0>[K] sigma; // component standard deviations
  #include blocks/fold.standata
}
transformed data {
  // Both mixtures at every x_f, as functions of y.
  matrix[F * K, 1 + D + D * D] target_at_places;
  matrix[F * F, 1 + D + D * D] base_at_places;
  {
    array[K] matrix[D, D] sd;
    for (k in 1 : K) {
      sd[k] = diag_matrix(rep_vector(sigma[k], D));
    }
    target_at_places = unfolded_coefficients(
                         quadratic_coefficients(weight, mu, sd), fold_mean,
                         fold_scale, fold_sign);
    base_at_places = unfolded_coefficients(
                       quadratic_coefficients(fold_weight, fold_mean,
                         fold_scale),
                       fold_mean, fold_scale, fold_sign);
  }
}
parameters {
  vector[D] y;
}
transformed parameters {
  // log w_f + D_f
  vector[F] log_weight = log(fold_weight)
                         + unfolded_log_density(F, y, target_at_places)
                         - unfolded_log_density(F, y, base_at_places);
}
model {
  target += std_normal_lpdf(y);
  target += log_sum_exp(log_weight);
}


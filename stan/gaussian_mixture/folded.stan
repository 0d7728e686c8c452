// Mixture of Gaussians, folded by another one (Wang, Jones and Meng 2016).
// docs/adding-a-model.md explains its data.
functions {
  #include gaussian_mixture/fold.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include folded/data.stanblock
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
  #include folded/parameters.stanblock
}
transformed parameters {
  vector[F] log_weight = log(fold_weight)
                         + unfolded_log_density(F, y, target_at_places)
                         - unfolded_log_density(F, y, base_at_places);
}
model {
  #include folded/model.stanblock
}


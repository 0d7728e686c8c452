// A loop over places, both mixtures evaluated at each.
functions {
  #include gaussian_mixture/density.stanfunctions
}
data {
  #include gaussian_mixture/data.stanblock
  #include folded/data.stanblock
}
transformed data {
  #include gaussian_mixture/prepared.stanblock
  vector[F] constant = log(fold_weight) - 0.5 * D * log(2 * pi());
  array[F] matrix[D, D] whiten;
  for (f in 1 : F) {
    whiten[f] = inverse(fold_scale[S == 1 ? 1 : f]);
    constant[f] += log_determinant(whiten[f]);
  }
}
parameters {
  vector[D] y;
}
model {
  vector[F] log_weight;
  for (f in 1 : F) {
    vector[D] x = fold_mean[ : , f]
                  + fold_sign[f] * (fold_scale[S == 1 ? 1 : f] * y);
    vector[F] log_component;
    for (j in 1 : F) {
      log_component[j] = constant[j]
                         - 0.5
                           * dot_self(whiten[j] * (x - fold_mean[ : , j]));
    }
    log_weight[f] = log(fold_weight[f])
                    + gaussian_mixture_lpdf(x | coefficients)
                    - log_sum_exp(log_component);
  }
  target += std_normal_lpdf(y) + log_sum_exp(log_weight);
}


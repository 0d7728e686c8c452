// A loop over places, relaxation and mixture evaluated at each.
functions {
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include folded/data.stanblock
}
transformed data {
  #include boltzmann/prepared.stanblock
  matrix[D, D] whiten = inverse(fold_scale[1]);
  matrix[D, F] centre = whiten * fold_mean;
  vector[F] constant = log(fold_weight) + log_determinant(whiten)
                       - 0.5 * D * log(2 * pi());
}
parameters {
  vector[D] y;
}
model {
  vector[D] step = fold_scale[1] * y;
  vector[F] log_weight;
  for (f in 1 : F) {
    vector[D] place = centre[ : , f] + fold_sign[f] * y;
    vector[F] log_component;
    for (j in 1 : F) {
      log_component[j] = constant[j]
                         - 0.5 * squared_distance(place, centre[ : , j]);
    }
    log_weight[f] = log(fold_weight[f])
                    + boltzmann_lpdf(
                                     fold_mean[ : , f] + fold_sign[f] * step |
                                     coefficients)
                    - log_sum_exp(log_component);
  }
  target += std_normal_lpdf(y) + log_sum_exp(log_weight);
}


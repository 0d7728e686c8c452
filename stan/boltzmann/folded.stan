// Boltzmann machine, folded (Wang, Jones and Meng 2016).
// docs/adding-a-model.md explains its data.
functions {
  #include boltzmann/density.stanfunctions
}
data {
  #include boltzmann/data.stanblock
  #include folded/data.stanblock
}
transformed data {
  #include boltzmann/fold.stanblock
}
parameters {
  #include folded/parameters.stanblock
}
transformed parameters {
  vector[F] log_weight;
  {
    vector[F] along = centre * y;
    vector[F] log_base; // without what all of them share
    for (f in 1 : F) {
      log_base[f] = log_sum_exp(
                                apart[ : , f]
                                + fold_sign[f] * (along - along[f]));
    }
    log_weight = height + slope * y
                 + 0.5 * (dot_self(y) - dot_self(fold_scale[1] * y))
                 + (ones * log1p_exp(turn * y * fold_sign' + start))'
                 - log_base;
  }
}
model {
  #include folded/model.stanblock
}


// Relaxation of a Boltzmann machine folded onto one point y by a mixture b of
// Gaussians with one scale matrix, which approximates it (the Warp-U
// transformation of Wang, Jones and Meng 2016): with
// x_f = mean_f + sign_f scale y and D_f = log gamma(x_f) - log b(x_f),
// r(y) = N(y | 0, I) sum_f w_f exp(D_f).  All x_f share scale * y, so that
// they cost one product, not F.
functions {
  #include boltzmann/density.stanfunctions
}
data {
  int<lower=1> D; // dimension
  int<lower=1> D_b; // number of units of the machine
  matrix[D_b, D] Q; // Q Q' = W + diagonal
  vector[D_b] b; // biases
  #include blocks/fold.standata
}
transformed data {
  row_vector[D_b] ones = rep_row_vector(1, D_b);
  matrix[D_b, D] turn; // -2 Q scale
  matrix[D_b, F] start; // -2 (Q mean_f + b)
  matrix[F, D] centre; // scale^-1 mean_f, one a row
  matrix[F, F] apart; // log w_j - |centre_f - centre_j|^2 / 2, a column an f
  matrix[F, D] slope; // what of log w_f + D_f is linear in y
  vector[F] height; // and what is constant
  if (S != 1 || D_f != D) {
    reject("a Boltzmann machine relaxation in ", D,
           " dimensions is folded by ",
           "Gaussians with one scale matrix that all share; found ", S,
           " in ", D_f, " dimensions");
  }
  {
    matrix[D_b, D + 1] coefficients = boltzmann_coefficients(Q, b);
    matrix[D, D] scale = fold_scale[1];
    turn = coefficients[ : , 1 : D] * scale;
    start = coefficients * append_row(fold_mean, rep_row_vector(1, F));
    centre = (scale \ fold_mean)';
    for (f in 1 : F) {
      for (j in 1 : F) {
        apart[j, f] = log(fold_weight[j])
                      - 0.5 * squared_distance(centre[f], centre[j]);
      }
      slope[f] = -fold_sign[f]
                 * (fold_mean[ : , f]' * scale + 0.5 * ones * turn);
      height[f] = log(fold_weight[f]) - 0.5 * dot_self(fold_mean[ : , f])
                  - 0.5 * sum(start[ : , f]);
    }
    height += 0.5 * D * log(2 * pi()) + log_determinant(scale) - D_b * log2();
  }
}
parameters {
  vector[D] y;
}
transformed parameters {
  // log w_f + D_f
  vector[F] log_weight;
  {
    vector[F] along = centre * y;
    vector[F] log_base; // but for what all share
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
  target += std_normal_lpdf(y);
  target += log_sum_exp(log_weight);
}


// Pseudo-extended relaxation of a Boltzmann machine (Nemeth et al. 2019,
// eq. 3) with each inverse temperature integrated out of its own
// instrumental density, q(x) = b(x) times the integral of
// g(beta) exp(-beta Delta(x)), so that NUTS moves in the pseudo-samples
// alone.  Without a Gaussian base b = 1 on all of R^D: the mass of q is
// finite where g starts above 0, and anything else is refused if D > 1.
functions {
  #include tempering.stanfunctions
  #include boltzmann/density.stanfunctions
}
data {
  int<lower=1> D; // dimension
  int<lower=1> D_b; // number of units of the machine
  matrix[D_b, D] Q; // Q Q' = W + diagonal
  vector[D_b] b; // biases
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/ladder.standata
  int<lower=1> N; // number of pseudo-samples
}
transformed data {
  matrix[D_b, D + 1] coefficients = boltzmann_coefficients(Q, b);
  #include blocks/whitened_base.standata
  if (B == 0 && N > 1 && boltzmann_infinite_mass(D, g_knot[1], 1 - ladder)) {
    reject("pure tempering has infinite mass near inverse temperature 0: ",
           "start g above 0, or use a Gaussian base");
  }
}
parameters {
  matrix[D, N] x; // pseudo-samples
}
model {
  vector[N] log_gamma = boltzmann_log_density(x, coefficients);
  vector[N] log_base = B
                       ? gaussian_base_log_density(x, N, whitened_mean,
                           whiten, base_constant)
                       : zeros_vector(N);
  vector[N] log_q = log_base;
  for (n in 1 : N) {
    log_q[n] += log_tempered_mass(log_base[n] + log_zeta - log_gamma[n],
                  g_knot, log_g, ladder);
  }
  target += pseudo_extended_log_density(log_gamma, log_q);
}
generated quantities {
  vector[N] inv_temp; // drawn from its conditional under q
  vector[N] delta; // log b + log zeta - log gamma
  vector[N] log_weight;
  {
    vector[N] log_gamma = boltzmann_log_density(x, coefficients);
    vector[N] log_base = B
                         ? gaussian_base_log_density(x, N, whitened_mean,
                             whiten, base_constant)
                         : zeros_vector(N);
    vector[N] log_q = log_base;
    delta = log_base + log_zeta - log_gamma;
    for (n in 1 : N) {
      log_q[n] += log_tempered_mass(delta[n], g_knot, log_g, ladder);
      inv_temp[n] = inv_temp_rng(delta[n], g_knot, log_g, ladder);
    }
    log_weight = pseudo_extended_log_weight(log_gamma, log_q);
  }
}


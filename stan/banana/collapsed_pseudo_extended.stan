// Banana (Haario et al. 1999), pseudo-extended (Nemeth et al. 2019, eq. 3)
// with each inverse temperature integrated out of its own instrumental
// density, q(x) = b(x) times the integral of g(beta) exp(-beta Delta(x)).
// Without a Gaussian base b = 1: x is not bounded, so that its mass is
// finite only where beta is bounded away from 0, by g_knot[1].
functions {
  #include tempering.stanfunctions
  #include banana/density.stanfunctions
}
data {
  int<lower=2> D; // dimension
  real<lower=0> v; // variance of x_1
  real b; // bend
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/ladder.standata
  int<lower=1> N; // number of pseudo-samples
}
transformed data {
  #include blocks/whitened_base.standata
}
parameters {
  matrix[D, N] x; // pseudo-samples
}
model {
  vector[N] log_gamma;
  vector[N] log_q;
  for (n in 1 : N) {
    log_gamma[n] = banana_lpdf(x[ : , n] | v, b);
    real log_base = B
                    ? gaussian_base_lpdf(x[ : , n] | whitened_mean, whiten,
                        base_constant)
                    : 0;
    log_q[n] = log_base
               + log_tempered_mass(log_base + log_zeta - log_gamma[n],
                   g_knot, log_g, ladder);
  }
  target += pseudo_extended_log_density(log_gamma, log_q);
}
generated quantities {
  vector[N] inv_temp; // drawn from its conditional under q
  vector[N] delta; // log b + log zeta - log gamma
  vector[N] log_weight;
  {
    vector[N] log_gamma = banana_log_density(x, v, b);
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


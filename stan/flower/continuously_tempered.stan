// Flower (Sejdinovic et al. 2014), continuously tempered (Graham and Storkey
// 2017, eq. 16): log p(x, beta) = log gamma_beta(x) + log g(beta) on the
// geometric path from the base.  It needs a Gaussian base: x is not bounded,
// so that a flat one (B = 0) has infinite mass.
functions {
  #include tempering.stanfunctions
  #include flower/density.stanfunctions
}
data {
  real<lower=0> r; // mean radius
  real<lower=0> A; // amplitude
  int<lower=1> w; // number of petals
  real<lower=0> s; // half width of the ring
  #include blocks/base.standata
  #include blocks/g.standata
  #include blocks/inv_temp.standata
}
transformed data {
  #include blocks/whitened_base.standata
  int uniform_g = is_uniform(log_g, ones_vector(2));
  if (B == 0) {
    reject("continuous tempering of the flower needs a Gaussian base: x is ",
           "not bounded, and a flat base has infinite mass");
  }
}
parameters {
  vector[2] x;
  vector<lower=0, upper=1>[sample_inv_temp] free_inv_temp;
}
model {
  real beta = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  target += geometric_path(flower_lpdf(x | r, A, w, s),
                           gaussian_base_lpdf(x | whitened_mean, whiten,
                             base_constant),
                           log_zeta, beta);
  if (!uniform_g) {
    target += sum(piecewise_linear([beta]', g_knot, log_g));
  }
}
generated quantities {
  real inv_temp = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  real delta = log_zeta - flower_lpdf(x | r, A, w, s)
               + gaussian_base_lpdf(x | whitened_mean, whiten, base_constant);
  vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot,
                           log_g, 0);
}


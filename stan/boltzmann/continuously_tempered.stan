// Continuously tempered relaxation of a Boltzmann machine (Graham and Storkey
// 2017, eq. 16): log p(x, beta) = log gamma_beta(x) + log g(beta) on the
// geometric path from a Gaussian base.  Pure tempering is refused: on all of
// R^D its mass at beta = 0 is infinite, and log Z is relative to the base.
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
  #include blocks/inv_temp.standata
}
transformed data {
  matrix[D_b, D + 1] coefficients = boltzmann_coefficients(Q, b);
  #include blocks/whitened_base.standata
  int uniform_g = is_uniform(log_g, ones_vector(2));
  if (B == 0) {
    reject("continuous tempering of a Boltzmann machine relaxation needs a ",
           "Gaussian base: x is unbounded, and a flat base has infinite mass");
  }
}
parameters {
  vector[D] x;
  vector<lower=0, upper=1>[sample_inv_temp] free_inv_temp;
}
model {
  real beta = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  target += geometric_path(boltzmann_lpdf(x | coefficients),
                           gaussian_base_lpdf(x | whitened_mean, whiten,
                             base_constant),
                           log_zeta, beta);
  if (!uniform_g) {
    target += sum(piecewise_linear([beta]', g_knot, log_g));
  }
}
generated quantities {
  real inv_temp = sample_inv_temp ? free_inv_temp[1] : fixed_inv_temp[1];
  real delta = gaussian_base_lpdf(x | whitened_mean, whiten, base_constant)
               + log_zeta - boltzmann_lpdf(x | coefficients);
  vector[2] log_weight = continuous_tempering_log_weight(delta, g_knot,
                           log_g, 0);
}


// The prior written out, its constants beforehand.
data {
  #include horseshoe/data.stanblock
}
transformed data {
  real constant = -0.5 * (d + 1) * log(2 * pi()) - log(scale_icept)
                  + (d + 1) * log(2 / pi()) - log(scale_global)
                  + 0.5 * slab_df * log(0.5 * slab_df * square(slab_scale))
                  - lgamma(0.5 * slab_df);
}
parameters {
  real beta0; // intercept
  vector[d] z; // standardised coefficients
  vector<lower=0>[d] lambda; // local scales
  real<lower=0> tau; // global scale
  real<lower=0> c2; // squared slab width
}
model {
  target += -0.5 * (square(beta0 / scale_icept) + dot_self(z))
            - sum(log1p(square(lambda))) - log1p(square(tau / scale_global))
            - (0.5 * slab_df + 1) * log(c2)
            - 0.5 * slab_df * square(slab_scale) / c2 + constant;
  target += bernoulli_logit_glm_lpmf(y | X, beta0,
              z .* lambda ./ sqrt(inv_square(tau) + square(lambda) / c2));
}


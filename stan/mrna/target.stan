// Expression of a gene whose mRNA enters a cell (Ballnus et al. 2017).
// docs/hard/mrna.md explains its data.
//
// The curve does not change if the two rates trade places, so there are two
// modes of equal mass.  Parameters are log10 of the natural ones.
functions {
  /**
   * Expected measurement at a time.
   *
   * @param u time since the mRNA was released
   * @param km0 transfection efficiency times amount of mRNA
   * @param beta rate at which the protein decays
   * @param delta rate at which the mRNA decays
   * @return km0 (exp(-beta u) - exp(-delta u)) / (delta - beta)
   */
  real expression(real u, real km0, real beta, real delta) {
    real slow = fmin(beta, delta);
    real fast = fmax(beta, delta);
    if (-fast * u > 300) {
      return 1e4; // far from any data, as is exp(300), which would overflow soon
    }
    if (fast == slow) {
      return km0 * u * exp(-slow * u);
    }
    return -km0 * exp(-slow * u) * expm1(-(fast - slow) * u) / (fast - slow);
  }
}
data {
  int<lower=1> N; // number of measurements
  vector[N] t; // their times
  vector[N] y; // measurements
  int<lower=0, upper=1> zero_before; // whether the curve is 0 before t0
}
parameters {
  real<lower=-2, upper=1> log10_t0; // time at which the mRNA is released
  real<lower=-5, upper=5> log10_km0;
  real<lower=-5, upper=5> log10_beta;
  real<lower=-5, upper=5> log10_delta;
  real<lower=-2, upper=2> log10_sigma; // standard deviation of a measurement
}
transformed parameters {
  real<lower=0> t0 = 10 ^ log10_t0;
  real<lower=0> km0 = 10 ^ log10_km0;
  real<lower=0> beta = 10 ^ log10_beta;
  real<lower=0> delta = 10 ^ log10_delta;
  real<lower=0> sigma = 10 ^ log10_sigma;
}
model {
  vector[N] f;
  for (n in 1 : N) {
    real u = zero_before ? fmax(t[n] - t0, 0) : t[n] - t0;
    f[n] = expression(u, km0, beta, delta);
  }
  log10_t0 ~ uniform(-2, 1);
  log10_km0 ~ uniform(-5, 5);
  log10_beta ~ uniform(-5, 5);
  log10_delta ~ uniform(-5, 5);
  log10_sigma ~ uniform(-2, 2);
  y ~ normal(f, sigma);
}


functions {
  matrix sir(real beta, real gamma, real i0, int T, real pop) {
    matrix[T, 3] state;
    real s = pop - i0;
    real i = i0;
    real r = 0;
    for (t in 1 : T) {
      real infections = beta * s * i / pop;
      real recoveries = gamma * i;
      s -= infections;
      i += infections - recoveries;
      r += recoveries;
      state[t] = [s, i, r];
    }
    return state;
  }
}
data {
  int<lower=1> n_days;
  int<lower=1> N;
  array[n_days] int<lower=0> cases;
}
parameters {
  real<lower=0, upper=1> gamma;
  real<lower=0, upper=1> beta;
  real<lower=0> phi_inv;
}
transformed parameters {
  matrix[n_days, 3] y = sir(beta, gamma, 2.0, n_days, N);
  real<lower=0> phi = 1 / phi_inv;
}
model {
  beta ~ normal(0.5, 0.3);
  gamma ~ normal(0.4, 0.5);
  phi_inv ~ exponential(5);
  cases ~ neg_binomial_2(col(y, 2), phi); // likelihood
}
generated quantities {
  real R0 = beta / gamma;
  real recovery_time = 1 / gamma;
}

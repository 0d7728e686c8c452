data {
  int<lower=1> T;
  int<lower=1> K;
  array[T] int<lower=0> y;
}
parameters {
  simplex[K] rho;
  array[K] simplex[K] gamma;
  positive_ordered[K] rate;
}
transformed parameters {
  matrix[K, K] Gamma;
  for (k in 1 : K) Gamma[k] = gamma[k]';
}
model {
  matrix[K, T] log_omega;
  rate ~ exponential(0.2);
  rho ~ dirichlet(rep_vector(1, K));
  for (k in 1 : K) {
    gamma[k] ~ dirichlet(rep_vector(1.5, K));
    for (t in 1 : T) log_omega[k, t] = poisson_lpmf(y[t] | rate[k]);
  }
  target += hmm_marginal(log_omega, Gamma, rho); // likelihood
}

data {
  int<lower=1> T;
  int<lower=1> K;
  vector[T] y;
}
parameters {
  array[K] simplex[K] gamma;
  ordered[K] mu;
  real<lower=0> sigma;
}
model {
  array[K] real acc;
  array[T, K] real lp;
  for (k in 1 : K) {
    gamma[k] ~ dirichlet(rep_vector(2.0, K));
  }
  mu ~ normal(0, 3);
  sigma ~ gamma(2, 1);
  for (k in 1 : K) lp[1, k] = normal_lpdf(y[1] | mu[k], sigma) - log(K);
  for (t in 2 : T) {
    for (k in 1 : K) {
      for (j in 1 : K) {
        acc[j] = lp[t - 1, j] + log(gamma[j, k]) + normal_lpdf(y[t] | mu[k], sigma);
      }
      lp[t, k] = log_sum_exp(acc);
    }
  }
  target += log_sum_exp(lp[T]); // likelihood
}

data {
  int<lower=1> N;
  int<lower=1> G;
  int<lower=1> R;
  array[N] int<lower=1, upper=G> g;
  array[N] int<lower=1, upper=R> r;
  vector[N] y;
}
parameters {
  real mu;
  sum_to_zero_vector[G] a;
  sum_to_zero_matrix[G, R] ab;
  real<lower=0> sigma_a;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 5);
  sigma_a ~ normal(0, 1);
  sigma ~ normal(0, 1);
  a ~ normal(0, sigma_a * sqrt(G * inv(G - 1)));
  to_vector(ab) ~ normal(0, 0.5);
  for (n in 1 : N) {
    y[n] ~ normal(mu + a[g[n]] + ab[g[n], r[n]], sigma); // likelihood
  }
}

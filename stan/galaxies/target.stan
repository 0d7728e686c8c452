// Velocities of galaxies as a mixture of normals, in no order (Chib 1995).
// docs/hard/galaxies.md explains its data.
data {
  int<lower=1> N; // number of galaxies
  int<lower=1> K; // number of components
  vector[N] y; // velocities, in 1000 km/s
}
parameters {
  simplex[K] q; // weights
  vector[K] mu; // means
  vector<lower=0>[K] s; // variances
}
transformed parameters {
  vector<lower=0>[K] sigma = sqrt(s);
}
model {
  q ~ dirichlet(rep_vector(1, K));
  mu ~ normal(20, 10);
  s ~ inv_gamma(3, 20);
  for (n in 1 : N) {
    vector[K] part = log(q);
    for (k in 1 : K) {
      part[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    }
    target += log_sum_exp(part);
  }
}


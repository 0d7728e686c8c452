// The prior of kinds.stan.
parameters {
  real mu;
  real<lower=0> s;
  array[2] vector[2] a;
  simplex[3] p;
  matrix[2, 2] m;
}
model {
  target += normal_lpdf(mu | 0, 1);
  target += normal_lpdf(s | 0, 2) - normal_lccdf(0 | 0, 2);
  target += std_normal_lpdf(a[1]) + std_normal_lpdf(a[2]);
  target += dirichlet_lpdf(p | [2, 3, 4]');
  target += std_normal_lpdf(to_vector(m));
  target += normal_lpdf(exp(a[1]) | 1, 2);
}

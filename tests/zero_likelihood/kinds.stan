// Statements of every kind, with a likelihood that underflows where s is small.
functions {
  real noted_lp(vector y, real mu, real s) {
    target += normal_lpdf(y | mu, s);
    return s;
  }
}
data {
  int<lower=0> N;
  vector[N] y;
  array[N] int<lower=0, upper=1> hit;
}
parameters {
  real mu;
  real<lower=0> s;
  array[2] vector[2] a;
  simplex[3] p;
  matrix[2, 2] m;
}
transformed parameters {
  vector<lower=0>[2] e = exp(a[1]);
  real shift = mu + 1;
}
model {
  mu ~ normal(0, 1);
  s ~ normal(0, 2) T[0, ];
  for (i in 1 : 2) {
    a[i] ~ std_normal();
  }
  p ~ dirichlet([2, 3, 4]');
  to_vector(m) ~ std_normal();
  target += normal_lpdf(e | 1, 2) + normal_lpdf(y[1] | shift, s);
  real noted = noted_lp(y, mu, s);
  for (n in 1 : N) {
    real half = noted / 2;
    y[n] ~ normal(m[1, 1], half) T[-9, 9];
    hit[n] ~ bernoulli(exp(-1 / noted ^ 2));
  }
}

functions {
  real skew_laplace_lpdf(vector y, real mu, real left, real right) {
    int N = num_elements(y);
    real lp = -N * log(left + right);
    for (n in 1 : N) {
      lp += y[n] < mu ? (y[n] - mu) / left : (mu - y[n]) / right;
    }
    return lp;
  }
  real half_cauchy_lpdf(real x, real scale) {
    return cauchy_lpdf(x | 0, scale) + log2();
  }
}
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> left;
  real<lower=0> right;
}
model {
  mu ~ normal(0, 10);
  left ~ half_cauchy(2);
  target += half_cauchy_lpdf(right | 2);
  y ~ skew_laplace(mu, left, right); // likelihood
}

data {
  int<lower=0> N;
  int<lower=0, upper=1> robust;
  vector[N] y;
  vector[N] x;
}
parameters {
  real a;
  real b;
  real<lower=0> s;
  array[robust] real<lower=0> nu;
}
model {
  a ~ normal(0, 1);
  {
    vector[N] fitted = a + b * x;
    b ~ normal(0, 1);
    if (robust) {
      nu[1] ~ gamma(2, 0.1);
      {
        real inflated = s * sqrt(2.0);
        inflated ~ lognormal(0, 1);
        target += student_t_lpdf(y | nu[1], fitted, s); // likelihood
      }
    } else {
      y ~ normal(fitted, s); // likelihood
    }
  }
}

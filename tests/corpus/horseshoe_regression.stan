data {
  int<lower=1> N;
  int<lower=1> D;
  matrix[N, D] X;
  vector[N] y;
  real<lower=0> scale_global;
}
parameters {
  real alpha;
  real<lower=0> sigma;
  vector[D] z;
  vector<lower=0>[D] lambda;
  real<lower=0> tau;
}
transformed parameters {
  vector[D] beta = z .* lambda * tau;
}
model {
  z ~ std_normal();
  lambda ~ cauchy(0, 1);
  tau ~ cauchy(0, scale_global * sigma);
  sigma ~ inv_gamma(3, 2);
  alpha ~ normal(0, 5);
  y ~ normal(alpha + X * beta, sigma); // likelihood
}

data {
  int<lower=1> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> county;
  vector[N] x;
  vector[N] y;
}
parameters {
  real<lower=0> sigma_y;
  vector<lower=0>[2] sigma_ab;
  matrix[2, J] z;
  row_vector[2] mu_ab;
}
transformed parameters {
  matrix[2, J] ab;
  for (j in 1 : J) {
    ab[:, j] = mu_ab' + sigma_ab .* z[:, j];
  }
}
model {
  to_vector(z) ~ std_normal();
  mu_ab ~ normal(0, 5);
  sigma_ab ~ normal(0, 1);
  sigma_y ~ normal(0, 1);
  y ~ normal(ab[1, county]' + ab[2, county]' .* x, sigma_y); // likelihood
}

// No options: the inverse temperature is sampled, and g is uniform.
functions {
  #include tempering.stanfunctions
}
data {
  int<lower=2> D; // dimension
  real<lower=0> v; // variance of x_1
  real b; // bend
  #include blocks/base.standata
}
transformed data {
  real constant = -0.5 * (D * log(2 * pi()) + log(v));
  matrix[B, B] whiten = whitener(base_cholesky);
  vector[B] shift = whiten * base_mean;
  real log_norm = sum(log(diagonal(whiten))) - 0.5 * B * log(2 * pi());
}
parameters {
  vector[D] x;
  real<lower=0, upper=1> inv_temp;
}
model {
  real square_1 = square(x[1]);
  real log_gamma = constant
                   - 0.5 * (square_1 / v + square(x[2] - b * (square_1 - v)));
  real log_base = log_norm - 0.5 * dot_self(whiten * x - shift);
  target += log_base + inv_temp * (log_gamma - log_zeta - log_base);
}


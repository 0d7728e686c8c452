// A wave seen at almost regular times, so that one frequency looks like another.
data {
  int<lower=1> N;
  vector[N] t;
  vector[N] y;
  real<lower=0> sigma;
}
parameters {
  real<lower=0.05, upper=0.95> frequency;
  vector[2] amplitude;
}
model {
  vector[N] angle = 2 * pi() * frequency * t;
  amplitude ~ normal(0, 1);
  y ~ normal(amplitude[1] * cos(angle) + amplitude[2] * sin(angle), sigma); // likelihood
}

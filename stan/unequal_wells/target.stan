// A wide and a narrow mode: one of two measurements of x is right.
// docs/hard/unequal_wells.md explains its data.
data {
  int<lower=1> D; // dimension
  array[2] vector[D] y; // the two measurements
  array[2] real<lower=0> sigma; // their standard errors
}
parameters {
  vector[D] x;
}
model {
  x ~ normal(0, 5);
  target += log_mix(0.5, normal_lpdf(y[1] | x, sigma[1]),
                    normal_lpdf(y[2] | x, sigma[2]));
}


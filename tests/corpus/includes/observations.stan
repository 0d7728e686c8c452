int<lower=1> N;
vector[N] y;

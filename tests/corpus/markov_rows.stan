data {
  int<lower=2> K;
  array[K, K] int<lower=0> moves;
  array[K, 3] int<lower=0> seen;
}
parameters {
  row_stochastic_matrix[K, K] P;
  column_stochastic_matrix[3, K] Q;
}
model {
  for (k in 1 : K) {
    P[k] ~ dirichlet(rep_vector(1.5, K));
    moves[k] ~ multinomial(P[k]'); // likelihood
    Q[ : , k] ~ dirichlet(rep_vector(2, 3));
    seen[k] ~ multinomial(Q[ : , k]); // likelihood
  }
}

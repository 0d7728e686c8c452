functions {
  real swing(data real t, real amplitude, array[] real w) {
    return amplitude * sin(w[1] * t) ^ 2 / 2;
  }
}
data {
  int<lower=1> N;
  matrix[N, 3] X;
  vector[N] y;
  array[N] int<lower=0> k;
}
transformed data {
  int half = N %/% 2;
  int odd = N % 2;
  array[3] int which = {1, 3, 2};
  matrix[3, 3] G = X' * X + diag_matrix(rep_vector(1e-1, 3));
  print("rows ", N, " half ", half);
  if (!(half > 0 && odd != 2) || half == -1) {
    reject("odd sizes: ", half);
  }
}
parameters {
  vector[3] b;
  real<lower=0> s;
  row_vector[2] c;
  array[2] real w;
}
model {
  vector[N] m = X[ : , which] * b;
  b ~ normal([0.5, -0.5, 1e0]', {1.0, 2.0, 1.5});
  s ~ normal(0, 1);
  c ~ normal(0, 1);
  w ~ normal(1, .5);
  m[1 : half] += c[1];
  m[(half + 1) : ] -= c[2];
  m .*= 1 + 0.1 * square(m) ./ (1 + square(m));
  for (n in 1 : N) {
    real lift = n <= half ? swing(n, s, w) : n >= N - 1 ? -0.5 : c * c';
    if (n == 2) {
      continue;
    } else if (n == N) {
      break;
    }
    y[n] ~ normal(m[n] + lift + (b' * (G \ b)) / 10 + b' / G * b / 10, sqrt(s .^ 2 + 1)); // likelihood
    k[n] ~ poisson_log(fmin(m[n], 2) - !odd); // likelihood
  }
}

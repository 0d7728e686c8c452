// Lip cancer in the counties of Scotland: sparse conditional autoregression.
// docs/hard/sparse_car.md explains its data.
functions {
  /**
   * Conditionally autoregressive density with precision tau (D - alpha W).
   *
   * @param phi effects of N regions
   * @param tau scale of the precision
   * @param alpha strength of the dependence between neighbours
   * @param edge pairs of neighbours: the nonzero entries of W
   * @param degree number of neighbours of each region: the diagonal of D
   * @param lambda eigenvalues of D^(-1/2) W D^(-1/2)
   * @return log density
   */
  real sparse_car_lpdf(vector phi, real tau, real alpha, array[,] int edge,
                       vector degree, vector lambda) {
    int N = rows(phi);
    real between = dot_product(phi[edge[ : , 1]], phi[edge[ : , 2]]);
    real within = dot_product(degree, square(phi));
    return 0.5
           * (N * log(tau / (2 * pi())) + sum(log(degree))
              + sum(log1m(alpha * lambda))
              - tau * (within - 2 * alpha * between));
  }
}
data {
  int<lower=1> N; // number of regions
  array[N] int<lower=0> y; // cases
  vector<lower=0>[N] E; // expected cases
  vector[N] x; // percentage of people who work outdoors, standardised
  int<lower=1> num_edges; // number of pairs of neighbours
  array[num_edges, 2] int<lower=1, upper=N> edge; // these pairs
}
transformed data {
  vector[N] log_E = log(E);
  vector[N] degree = rep_vector(0, N);
  vector[N] lambda;
  {
    matrix[N, N] W = rep_matrix(0, N, N);
    for (n in 1 : num_edges) {
      W[edge[n, 1], edge[n, 2]] = 1;
      W[edge[n, 2], edge[n, 1]] = 1;
    }
    degree = W * rep_vector(1, N);
    lambda = eigenvalues_sym(quad_form_diag(W, inv_sqrt(degree)));
  }
}
parameters {
  real<lower=0, upper=1> alpha; // strength of the dependence
  real<lower=0> tau; // scale of the precision
  real slope;
  real intercept;
  vector[N] phi; // effects of regions
}
model {
  alpha ~ uniform(0, 1);
  tau ~ gamma(2, 2);
  slope ~ std_normal();
  intercept ~ std_normal();
  phi ~ sparse_car(tau, alpha, edge, degree, lambda);
  y ~ poisson_log(log_E + intercept + slope * x + phi);
}


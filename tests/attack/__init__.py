"""An attack with random cases: `nox -s attack`.  Not collected by the ordinary run of the tests."""

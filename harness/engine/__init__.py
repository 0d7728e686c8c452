"""Everything that runs Stan: the toolchain, CmdStan's NUTS, stanli, and batched log densities."""

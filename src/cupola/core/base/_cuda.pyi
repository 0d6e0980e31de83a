# The driver's table and the helpers around it are for compiled modules only: see _cuda.pxd.

# Nothing here is for Python; other compiled modules use what _dlpack.pxd declares.

# Nothing here is for Python; other compiled modules use what _retained.pxd declares.

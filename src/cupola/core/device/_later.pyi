# Nothing here is for Python; other compiled modules use what _later.pxd declares.

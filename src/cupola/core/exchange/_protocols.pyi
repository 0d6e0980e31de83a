# Nothing here is for Python; other compiled modules use what _protocols.pxd declares.

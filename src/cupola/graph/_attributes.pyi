# Nothing here is for Python; other compiled modules use what _attributes.pxd declares.

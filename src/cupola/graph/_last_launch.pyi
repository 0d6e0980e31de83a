# Nothing here is for Python; other compiled modules use what _last_launch.pxd declares.

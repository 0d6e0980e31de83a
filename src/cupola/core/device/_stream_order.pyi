# Nothing here is for Python; other compiled modules use what _stream_order.pxd declares.

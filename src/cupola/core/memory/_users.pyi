from typing import final

@final
class User: ...

@final
class Users: ...

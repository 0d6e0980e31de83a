"""Arrays whose layout only the device knows, and the textures and surfaces through which kernels reach them."""

from importlib import import_module as _import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cupola.core.texture._array import MipmappedArray as MipmappedArray
    from cupola.core.texture._array import OpaqueArray as OpaqueArray
    from cupola.core.texture._objects import SurfaceObject as SurfaceObject
    from cupola.core.texture._objects import TextureObject as TextureObject
    from cupola.core.texture._options import MipmappedArrayOptions as MipmappedArrayOptions
    from cupola.core.texture._options import OpaqueArrayOptions as OpaqueArrayOptions
    from cupola.core.texture._options import TextureObjectOptions as TextureObjectOptions
    from cupola.core.texture._resource import ResourceDescriptor as ResourceDescriptor

# Name -> module that has it.
_HOMES = {
    "MipmappedArray": "_array",
    "MipmappedArrayOptions": "_options",
    "OpaqueArray": "_array",
    "OpaqueArrayOptions": "_options",
    "ResourceDescriptor": "_resource",
    "SurfaceObject": "_objects",
    "TextureObject": "_objects",
    "TextureObjectOptions": "_options",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'cupola.texture' has no attribute {name!r}")
    value = getattr(_import_module(f"cupola.core.texture.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

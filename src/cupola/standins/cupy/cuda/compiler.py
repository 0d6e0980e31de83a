"""The error of sources that do not compile."""

from cupola.standins.cupy._errors import CompileException as CompileException

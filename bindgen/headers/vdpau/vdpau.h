#ifndef CODEGEN_VDPAU_H
#define CODEGEN_VDPAU_H
#include <stdint.h>
typedef int VdpStatus;
typedef uint32_t VdpDevice;
typedef uint32_t VdpVideoSurface;
typedef uint32_t VdpOutputSurface;
typedef uint32_t VdpFuncId;
typedef VdpStatus VdpGetProcAddress(VdpDevice device, VdpFuncId function_id, void **function_pointer);
#endif

/* What texture and surface instructions have in common: the objects they are given, and what is wrong with those. */
#ifndef CUPOLA_CPU_OBJECTS_H
#define CUPOLA_CPU_OBJECTS_H

#include "engine/above.h"
#include "engine/fault/fault.h"
#include "engine/running.h"
#include "texture.h"

/* Whether an instruction for a geometry (enum geometry) may be used on texels. */
bool cpu_fits_geometry(const struct cpu_texels *texels, unsigned geometry);

/* The faults for a value that is not such an object, and for an object with another geometry. */
void cpu_wrong_object(cpu_context *context, const cpu_warp *warp, int lane, uint32_t site, uint64_t object,
                      bool is_surface);
void cpu_wrong_geometry(cpu_context *context, const cpu_warp *warp, int lane, uint32_t site,
                        const struct cpu_texels *texels, unsigned geometry, const char *what);

/* Whether the memory of the texels is allocated, and the launch's device may access it; else a fault is raised. */
bool cpu_image_is_there(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site,
                        const struct cpu_texels *texels);

#endif

/* What the generated modules (driver.c, nvrtc.c) and the hand-written files beside them share.
 *
 * A generated module describes its library with the constant tables below and has one short function for each
 * CUDA function, made of the conversions declared here. Each extension module is linked with its own copy of
 * the support files, so their static state belongs to one library. Classes are made when they are first
 * needed. */
#ifndef CUPOLA_SUPPORT_H
#define CUPOLA_SUPPORT_H

#include "module/module.h"

#endif

"""Turns analysed PTX into LLVM IR: values and the builder, the meaning of each instruction, the emitter."""

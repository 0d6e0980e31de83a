"""LLVM IR for a prepared PTX kernel: one function that runs the threads of a unit as lanes of vectors."""

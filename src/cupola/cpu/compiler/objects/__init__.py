"""Machine code: made of LLVM IR, for which processor, called how, kept where."""

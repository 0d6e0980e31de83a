"""Drive CUDA GPUs from Python, and run the same programs where there is no GPU."""

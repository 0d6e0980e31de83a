"""Which threads run which block of a kernel, where they wait for each other, and how they call."""

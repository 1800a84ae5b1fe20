"""The loop level's optimiser: passes over `codegen.loops` programs between lowering and LLVM. See `pipeline`."""

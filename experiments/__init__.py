"""The published experiments: each module or package here that has no underscore defines one."""

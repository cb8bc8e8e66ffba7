"""The experiment that decides about the fixed prompts: `python -m bench.prompt_ab` (PR-84 to PR-89)."""

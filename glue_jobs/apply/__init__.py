"""From the log to the state: the pending changes, folded and merged under the guard."""

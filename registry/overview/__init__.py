"""What people look over before they ask: runs with their newest checkpoint, identities, the scores of a run."""

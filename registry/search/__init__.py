"""Search by capability: a question in English or Chinese, or the same as conditions, answered in order."""

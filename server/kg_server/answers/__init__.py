"""How the tools answer: result models, fact lines, budgets, and one module per tool."""

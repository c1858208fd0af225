"""Privacy core: curator, releases, mechanisms, noise, budgets, reports, audits."""

"""Privacy core: session, releases, mechanisms, noise, budgets, reports, audits."""

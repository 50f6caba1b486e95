"""How often injected instructions in tool results succeed, in several forms, with the tasks and checkers of AgentDojo.

worker.py     runs AgentDojo in .venv-injection: its tools, attacks, loop and checkers; asks for each model turn
dojo.py       starts workers, and lets a speaker of bench/accuracy take the model's turns
cases.py      which user task, injection task and attack: a seeded sample
run.py        `just injection`
report.py     `just injection-report`
quick.py      `just injection-quick`: scripted models that obey and that do not
"""

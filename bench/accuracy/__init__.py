"""The accuracy laboratory: the same tasks, the same model and server, asked in many forms.

run.py       `just accuracy`: asks, and keeps every answer       report.py    the table, the lifts, the plots
data.py      the tasks of BFCL v4                                score.py     which answers are right
languages.py twenty tasks of our own in eleven languages         shapes.py    many tools, nested schemas, agents' tools
talks.py     twenty conversations with tools that run            forms.py     the forms, and how each is asked
relay.py     a proxy for the model's server: counts the cost of each form, and sends no question twice
"""

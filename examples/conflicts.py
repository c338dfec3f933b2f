"""Answers that cannot all hold: find the chain that contradicts itself, drop one answer, check again."""

from clew import Constraints

names = ["ann", "bob", "cy", "dee", "eve"]
answers = Constraints.of(
    {
        "must_link": [("ann", "bob"), ("bob", "cy"), ("dee", "eve")],
        "cannot_link": [("cy", "ann"), ("cy", "dee")],
    },
    ids=names,
)

for conflict in answers.conflicts():
    print(conflict)

repaired = Constraints(answers.must_link, answers.cannot_link[1:], ids=names)
found = repaired.check(2)
print(found.message)
print({name: int(label) for name, label in zip(names, found.labels, strict=True)})

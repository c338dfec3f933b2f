"""What answers are worth: cluster the irises with more and more answers, some of them wrong."""

from clew import Constraints, PCKMeans
from clew.datasets import load_iris
from clew.evaluation import adjusted_rand_score

iris = load_iris()

print("answers   all right   one in ten wrong")
for n_answers in (0, 50, 100, 200, 400):
    scores = []
    for noise in (0.0, 0.1):
        answers = Constraints.sample(iris.y, n_answers, noise=noise, random_state=0)
        # What a wrong answer entails is wrong too, so entailed pairs count only where all answers are right.
        model = PCKMeans(n_clusters=3, entailed=noise == 0, random_state=0).fit(iris.X, constraints=answers)
        scores.append(adjusted_rand_score(iris.y, model.labels_))
    print(f"{n_answers:7}   {scores[0]:9.2f}   {scores[1]:16.2f}")

/** Scores of classes: the largest first, with probabilities. */

export interface ClassScore {
  readonly index: number
  readonly label: string
  readonly score: number
  readonly probability: number
}

/** Whether scores are probabilities already: 0 to 1, and 1 in all. */
export const areProbabilities = (scores: ArrayLike<number>): boolean => {
  let sum = 0
  for (let index = 0; index < scores.length; index++) {
    const score = scores[index] ?? NaN
    if (!(score >= 0 && score <= 1.0001)) return false
    sum += score
  }
  return Math.abs(sum - 1) < 0.01
}

export const softmax = (scores: ArrayLike<number>): ReadonlyArray<number> => {
  const all = Array.from(scores)
  const most = all.reduce((maximum, score) => Math.max(maximum, score), -Infinity)
  const powers = all.map((score) => Math.exp(score - most))
  const sum = powers.reduce((total, power) => total + power, 0)
  return powers.map((power) => power / sum)
}

/** The classes with the largest scores. */
export const top = (
  scores: ArrayLike<number>,
  labels: ReadonlyArray<string>,
  count: number,
): ReadonlyArray<ClassScore> => {
  const probabilities = areProbabilities(scores) ? scores : softmax(scores)
  return Array.from(scores, (score, index) => ({
    index,
    label: labels[index] ?? String(index),
    score,
    probability: probabilities[index] ?? NaN,
  }))
    .toSorted((one, other) => other.score - one.score)
    .slice(0, count)
}

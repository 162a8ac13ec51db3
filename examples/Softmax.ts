/** What the examples' classifiers end with. Not a model of its own: three lines need no queue. */

/** Logits as probabilities, which add up to 1. Any size of logit is fine; none at all gives none. */
export const softmax = (logits: Float32Array): Float32Array => {
  const largest = Math.max(...logits)
  const powers = logits.map((logit) => Math.exp(logit - largest))
  const sum = powers.reduce((total, power) => total + power, 0)
  return powers.map((power) => power / sum)
}
